"""The window over a stream."""

from __future__ import annotations

import io

import pytest

from tracetool.packets.blocks import Blocks
from tracetool.sources import Stream

BLOCK, RESERVE = 1000, 8000


def sizes(rest: int) -> set[int]:
    """Sizes of the buffers that the window was in, of which so many bytes were left unread each time."""
    seen = {}
    data = bytes(range(250)) * 400
    with Stream("bytes", io.BytesIO(data)) as stream, Blocks(stream, RESERVE, BLOCK) as blocks:
        while not blocks.final:
            blocks.advance()
            blocks.at = max(blocks.at, blocks.used - rest)
            assert bytes(blocks.buffer[blocks.at : blocks.used]) == data[blocks.offset :][: blocks.used - blocks.at]
            seen[id(blocks.buffer)] = blocks.buffer
    assert blocks.offset + rest == len(data)
    assert sum(len(buffer) > 2 * BLOCK for buffer in seen.values()) in {0, 2}
    return {len(buffer) for buffer in seen.values()}


@pytest.mark.parametrize("rest", [1, BLOCK - 1, BLOCK])
def test_short_rests_take_no_more_than_their_blocks(rest):
    assert sizes(rest) == {2 * BLOCK}


@pytest.mark.parametrize("rest", [BLOCK + 1, 3 * BLOCK + 1, RESERVE])
def test_long_rests_take_two_buffers(rest):
    """Else each of the buffers that are read ahead would come to hold the longest record."""
    assert sizes(rest) == {2 * BLOCK, RESERVE + BLOCK}
