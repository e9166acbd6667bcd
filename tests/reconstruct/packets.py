"""Packets of one flow as tests make them: seen from its sender, not in the batches that the product works on."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass

import numpy as np

from tracetool.kernels import missed
from tracetool.kernels import packet_records as pr
from tracetool.kernels import senders as ks
from tracetool.reconstruct.batch import made_of
from tracetool.reconstruct.vantage import ELSEWHERE

SYN, ACK = 2, 16
COLUMNS = {
    pr.TIME: "time_ns", pr.SEQ: "seq", pr.ACK: "ack", pr.PAYLOAD: "payload", pr.WINDOW: "window", pr.TSVAL: "tsval",
    pr.TSECR: "tsecr", pr.SEGMENTS: "segments", pr.WINDOW_RAW: "window_raw", pr.FRAME: "frame", pr.IP_ID: "ip_id",
    pr.FLAGS: "flags",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class FlowPackets:
    """Packets of one flow in capture order, both directions; every array has one entry per packet, -1 is unknown.

    `outbound` ones the data's sender sent; packet i has ``sack_edges[sack_offsets[i]:sack_offsets[i + 1]]``.
    """

    time_ns: np.ndarray
    outbound: np.ndarray
    seq: np.ndarray
    ack: np.ndarray
    payload: np.ndarray
    segments: np.ndarray
    flags: np.ndarray
    window: np.ndarray
    window_raw: np.ndarray
    tsval: np.ndarray
    tsecr: np.ndarray
    sack_edges: np.ndarray
    sack_offsets: np.ndarray
    ecn: np.ndarray
    ip_id: np.ndarray
    frame: np.ndarray

    def __len__(self):
        return len(self.time_ns)


@dataclass(frozen=True, slots=True)
class FlowFacts:
    """What is known of a flow beside its packets, seen from the data's sender; None is unknown."""

    mss_bytes: int | None = None
    mss_own_bytes: int | None = None
    window_scale: int | None = None
    window_scale_own: int | None = None
    sack_permitted: bool | None = None
    timestamps: bool | None = None
    ecn: bool | None = None
    handshake_rtt_ns: int | None = None
    syn_seen: bool = False
    opener: bool = True
    vantage: str = "unknown"


def columns_of(packets):
    """The columns that kernels take."""
    columns = np.zeros((pr.COLUMNS, len(packets) + 1), np.int64)
    for at, name in COLUMNS.items():
        columns[at, :-1] = getattr(packets, name)
    columns[pr.SACK_AT] = packets.sack_offsets
    return columns


def batch_of(packets):
    """A batch of this one flow; its sender is side a."""
    return made_of(
        columns_of(packets),
        np.zeros(1, np.int64),
        np.array([0, len(packets)]),
        (~packets.outbound).astype(np.uint8),
        packets.ecn,
        np.full(len(packets), -1, np.int32),
        packets.sack_edges.astype(np.int64),
    )


def asked(facts):
    """What is known of its sender."""
    row = np.full((1, ks.ASKED_WIDTH), -1, np.int64)
    row[0, [ks.FLOW, ks.WAY, ks.ELSEWHERE]] = 0, 0, facts.vantage in ELSEWHERE
    known = {
        ks.MSS_PEER: facts.mss_bytes, ks.MSS_OWN: facts.mss_own_bytes, ks.TIMESTAMPS: facts.timestamps,
        ks.SACK: facts.sack_permitted,
    }  # fmt: skip
    for at, value in known.items():
        row[0, at] = -1 if value is None else value
    return row


def project(packets):
    """Packets in the order and at the times at which the sender had them, by the kernels."""
    time, order = np.empty(len(packets), np.int64), np.empty(len(packets), np.int64)
    flags = packets.flags.astype(np.uint16)
    ks.arrange(columns_of(packets)[: pr.REPLAYED], packets.outbound, flags, len(packets), time, order)
    return picked(packets, order, time)


def picked(packets, order, time):
    """Some packets in some order, at other times."""
    edges = [packets.sack_edges[packets.sack_offsets[i] : packets.sack_offsets[i + 1]] for i in order]
    plain = {
        field.name: getattr(packets, field.name)[order]
        for field in dataclasses.fields(packets)
        if field.name not in {"sack_edges", "sack_offsets", "time_ns"}
    }
    return FlowPackets(
        time_ns=time[order],
        sack_edges=np.concatenate([*edges, np.zeros(0, np.int64)]).astype(np.int64),
        sack_offsets=np.concatenate([[0], np.cumsum([len(some) for some in edges])]).astype(np.int64),
        **plain,
    )


def with_missed(packets, mss, tick, sack):
    """Packets as captured at their sender with those that are missing put back, by the kernel; their `frame` is -1."""
    size = len(packets)
    mine, sent, flags, edges_at, edges, origin, count = missed.put_back(
        columns_of(packets)[: pr.REPLAYED], packets.outbound, packets.flags.astype(np.uint16),
        packets.sack_offsets, packets.sack_edges.astype(np.int64), np.arange(size), size, mss, tick, sack, -1,
    )  # fmt: skip
    assert len(origin) == count
    rows = {name: mine[at, :count] for at, name in COLUMNS.items() if at < pr.REPLAYED}
    return dataclasses.replace(
        packets,
        **rows,
        outbound=sent,
        flags=flags,
        sack_edges=edges,
        sack_offsets=edges_at,
        ecn=np.zeros(count, np.uint8),
        frame=np.where(origin < 0, -1, packets.frame[origin] if size else -1),
    )
