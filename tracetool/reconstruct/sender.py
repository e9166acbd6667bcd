"""What the sender of a flow was doing, inferred from its packets: the state behind every ACK.

The packets are replayed as the sender saw them (`tracetool.kernels.replay`), the window under every hypothesis of the
congestion control (`tracetool.reconstruct.hypotheses`); what fits best is written down with bounds.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tracetool.kernels import replay_columns as rc
from tracetool.kernels import replay_window as rw
from tracetool.kernels import window_columns as wc
from tracetool.kernels.replay import replay
from tracetool.reconstruct.episodes import recoveries, slow_starts
from tracetool.reconstruct.flow import FlowFacts, FlowPackets, Inferred, Retransmissions
from tracetool.reconstruct.hypotheses import UNEXPLAINED, Choice, choose, looseness
from tracetool.reconstruct.projection import project
from tracetool.reconstruct.samples import samples
from tracetool.reconstruct.under_way import likely

if TYPE_CHECKING:
    import numpy.typing as npt

    Ints = npt.NDArray[np.int64]

#: Ticks of timestamp clocks in use, nanoseconds: 1 us, 1 ms, 4 ms and 10 ms, 100 ms.
TICKS_NS = (1_000, 1_000_000, 4_000_000, 10_000_000, 100_000_000)
#: How far a departure that was not seen may be wrong.
BLUR_NS = 1_000_000
ALMOST_ALL = 0.999
TIMESTAMP_OPTION_BYTES = 12
#: No TCP sends smaller full segments (Linux: TCP_MIN_MSS, with its options).
LEAST_SEGMENT_BYTES = 48


def segment_bytes(packets: FlowPackets, facts: FlowFacts) -> int:
    """Payload of a full segment: what the handshake allows, or the largest single segment seen.

    Parameters
    ----------
    packets : FlowPackets
    facts : FlowFacts

    Returns
    -------
    int
        Bytes, at least 1.
    """
    sent = packets.outbound & (packets.payload > 0)
    each = -(-packets.payload[sent] // np.maximum(packets.segments[sent], 1))
    seen = int(each.max()) if len(each) else 0
    offered = [mss for mss in (facts.mss_bytes, facts.mss_own_bytes) if mss]
    if not offered:
        return max(seen, LEAST_SEGMENT_BYTES)
    allowed = min(offered) - (TIMESTAMP_OPTION_BYTES if facts.timestamps else 0)
    # a path with a smaller MTU is told by what is sent; of super-frames only the handshake tells
    super_frames = bool((packets.segments[sent] > 1).any())
    return max(allowed if super_frames or not seen else seen, LEAST_SEGMENT_BYTES)


def timestamp_tick(packets: FlowPackets) -> int:
    """Tick of the sender's timestamp clock, nanoseconds (RFC 7323 leaves it open: 1 ms where it cannot be told).

    Parameters
    ----------
    packets : FlowPackets

    Returns
    -------
    int
        One of `TICKS_NS`.
    """
    with_clock = np.flatnonzero(packets.outbound & (packets.tsval >= 0))
    if len(with_clock) < 2:
        return 1_000_000
    first, last = with_clock[0], with_clock[-1]
    ticks = int(packets.tsval[last] - packets.tsval[first]) & 0xFFFFFFFF
    elapsed = int(packets.time_ns[last] - packets.time_ns[first])
    if ticks <= 1 or ticks >= 1 << 31:
        return 1_000_000
    tick = elapsed / ticks
    return min(TICKS_NS, key=lambda known: abs(np.log(known / max(tick, 1e-9))))


def infer(packets: FlowPackets, facts: FlowFacts) -> Inferred:
    """Infer the state of the sender of one direction of a flow.

    Parameters
    ----------
    packets : FlowPackets
        Packets of the flow in capture order; `outbound` ones carry the data.
    facts : FlowFacts
        What the handshake told, and where the capture was taken.

    Returns
    -------
    Inferred

    Examples
    --------
    >>> infer(packets, facts).cc  # doctest: +SKIP
    'cubic'
    """
    elsewhere = facts.vantage in {"receiver", "middle"}
    if elsewhere:
        packets = project(packets)
    mss = segment_bytes(packets, facts)
    sack = len(packets.sack_edges) > 0 if facts.sack_permitted is None else facts.sack_permitted
    again = np.zeros(len(packets), np.int8)
    again_segments = np.zeros(len(packets), np.int32)
    events = replay(
        packets.time_ns,
        packets.outbound,
        packets.seq,
        packets.ack,
        packets.payload,
        packets.flags,
        packets.window,
        packets.tsval,
        packets.tsecr,
        packets.sack_edges,
        packets.sack_offsets,
        mss,
        timestamp_tick(packets),
        sack,
        again,
        again_segments,
    )
    if facts.window_scale is None:
        _guess_room(packets, events)
    choice = choose(events, mss, begun=facts.syn_seen, tolerance=_blur(events) if elsewhere else 0)
    _threshold_before(choice)
    sent = np.flatnonzero(again)
    return Inferred(
        samples=samples(events, choice, mss),
        recoveries=recoveries(events, choice.best.window),
        slow_starts=slow_starts(events, choice.best, confidence=_cause_confidence(choice)),
        retransmissions=Retransmissions(packets.frame[sent], again[sent], again_segments[sent]),
        cc=choice.cc,
        # without its timestamps a sender elsewhere seems to pace at the rate of the bottleneck, whatever it runs
        cc_confidence=0.0 if choice.cc and elsewhere and (packets.tsval < 0).all() else choice.confidence,
    )


def _cause_confidence(choice: Choice) -> float:
    """How sure the causes of exits are: the part of those that fit as well and see the same one, less the misfit."""
    if not len(choice.best.window):
        return 0.0
    missed = choice.best.misfit - looseness(choice.best.hypothesis, choice.best.spread)
    return round(choice.agreed * max(0.0, 1 - missed / UNEXPLAINED), 3)


def _blur(events: Ints) -> int:
    """Segments that are delivered while a projected departure may be wrong: a tick of the usual timestamp clock."""
    if len(events) < 2:
        return 1
    delivered = int(events[-1, rc.DELIVERED_BEFORE] - events[0, rc.DELIVERED_BEFORE])
    elapsed = max(int(events[-1, rc.TIME] - events[0, rc.TIME]), 1)
    return 1 + delivered * BLUR_NS // elapsed


def _guess_room(packets: FlowPackets, events: Ints) -> None:
    """Without the window scale: the smallest that allows the flight there was, and the room it leaves."""
    raw = packets.window_raw[events[:, rc.PACKET]]
    usable = (events[:, rc.KIND] == rc.ON_ACK) & (raw > 0)
    if not usable.any() or (packets.window[~packets.outbound] > 0).any():
        return
    flight = events[:, rc.NXT] - events[:, rc.UNA]
    needed = np.quantile(flight[usable] / raw[usable], ALMOST_ALL)
    scale = int(np.clip(np.ceil(np.log2(max(needed, 1.0))), 0, 14))
    events[:, rc.ROOM] = np.where(usable, (raw << scale) - flight, -1)


def _threshold_before(choice: Choice) -> None:
    """Fill in the threshold from before the capture, where anything tells it, and note what it rests on.

    CUBIC's growth tells it. Where that leaves several, and for Reno, it is assumed to be that of the first reduction
    that was seen: losses recur at the same window where nothing else changes. Without one it stays unknown.
    """
    window = choice.best.window
    guessed = window[:, rw.OUT_GUESSED] != 0
    if not guessed.any():
        return
    cubic = choice.best.hypothesis.algorithm == wc.CUBIC
    after = np.flatnonzero(~guessed)
    reached = int(window[guessed, rw.OUT_CWND].max())
    lost_at = int(window[guessed, rw.OUT_CWND][-1]) if len(after) else 0
    told = likely(choice.places, lost_at, reached) if cubic else None
    if told is None and len(after) and choice.best.hypothesis.algorithm != wc.BBR:
        told = min(int(window[after[0], rw.OUT_SSTHRESH]), reached), False
    threshold, fitted = told or (0, False)
    window[guessed, rw.OUT_SSTHRESH] = threshold
    window[guessed, rw.OUT_GUESSED] = rw.FITTED if fitted else rw.ASSUMED
