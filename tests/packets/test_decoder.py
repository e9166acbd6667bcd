"""Packets are sorted and gathered in groups, by a thread of its own: the rows do not depend on how large those are."""

from __future__ import annotations

from functools import partial

import pytest
from polars.testing import assert_frame_equal

from tests.fuzz import frames as made
from tests.fuzz.captures import pcap
from tests.packets.conftest import Tables, read_capture
from tracetool.packets import capture
from tracetool.packets.decoder import Decoder

#: Packets with SACK in most of them, so that edges are handed over with the packets that they belong to.
FRAMES = made.connection(40)


def in_groups(monkeypatch: pytest.MonkeyPatch, group: int) -> Tables:
    monkeypatch.setattr(capture, "Decoder", partial(Decoder, group=group))
    return read_capture(pcap(FRAMES))


@pytest.mark.parametrize("group", [1, 2, 7, len(FRAMES) - 1, len(FRAMES)])
def test_groups_of_any_size_give_the_same_rows(monkeypatch, group):
    expected = read_capture(pcap(FRAMES))
    assert expected.packets["sack"].drop_nulls().len() == 40
    found = in_groups(monkeypatch, group)
    assert_frame_equal(found.packets, expected.packets)  # one flow: sorted by frame in any case
    assert_frame_equal(found.flows, expected.flows)
    assert_frame_equal(found.inputs, expected.inputs)
