"""Packets are sorted and gathered in groups, by a thread of its own: the rows do not depend on how large those are."""

from __future__ import annotations

import threading
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


def test_interrupted_while_its_thread_starts(monkeypatch):
    """The thread ends: a process waits for such threads before it ends itself."""
    kept = []
    begin = threading.Thread.start

    def interrupted(thread: threading.Thread) -> None:
        begin(thread)
        if thread.name.startswith("gather"):
            kept.append(thread)
            raise KeyboardInterrupt

    monkeypatch.setattr(threading.Thread, "start", interrupted)
    with pytest.raises(KeyboardInterrupt) as caught:  # it holds the frames, and so whoever gives the thread work
        in_groups(monkeypatch, 7)
    kept[0].join(10)
    assert not kept[0].is_alive()
    assert caught.traceback
