"""One flow as the inference sees it: its packets as NumPy arrays, and what its handshake told.

Tables have nulls; kernels have sentinels. This is where one becomes the other: -1 stands for an unknown number in the
arrays below, and nowhere else.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Mapping

    import numpy.typing as npt
    import polars as pl

    from tracetool.reconstruct.samples import Samples

    Ints = npt.NDArray[np.int64]

#: TCP flag bits, as the column `flags` of the table `packets` has them.
FIN, SYN, RST, PSH, ACK, URG, ECE, CWR = 1, 2, 4, 8, 16, 32, 64, 128


@dataclass(frozen=True, slots=True)
class FlowPackets:
    """Packets of one flow in capture order, both directions; every array has one entry per packet.

    Parameters
    ----------
    time_ns : int64
        Time of capture, nanoseconds since the epoch.
    outbound : bool
        True for packets that the data sender sent.
    seq, ack : int64
        Unwrapped, relative numbers in bytes (`packets.seq`, `packets.ack`); -1 unknown.
    payload : int64
        Payload in bytes.
    segments : int32
        Wire segments the frame stands for; 0 without payload.
    flags : uint16
        TCP flags.
    window, window_raw : int64
        Advertised window in bytes (-1 where the scale is unknown), and the field as sent (-1 unknown).
    tsval, tsecr : int64
        Timestamp option, unsigned 32 bits; -1 without it.
    sack_edges, sack_offsets : int64
        SACK edges of all packets end to end (left, right, left, right, ...), and where each packet's begin: packet i
        has ``sack_edges[sack_offsets[i]:sack_offsets[i + 1]]``; `sack_offsets` has one entry more than the others.
    ecn : uint8
        ECN field of the IP header, 0 where unknown.
    ip_id : int64
        IPv4 identification, -1 where unknown.
    frame : int64
        Frame number in the capture.
    """

    time_ns: Ints
    outbound: npt.NDArray[np.bool_]
    seq: Ints
    ack: Ints
    payload: Ints
    segments: npt.NDArray[np.int32]
    flags: npt.NDArray[np.uint16]
    window: Ints
    window_raw: Ints
    tsval: Ints
    tsecr: Ints
    sack_edges: Ints
    sack_offsets: Ints
    ecn: npt.NDArray[np.uint8]
    ip_id: Ints
    frame: Ints

    def __len__(self) -> int:
        """Return the number of packets."""
        return len(self.time_ns)


@dataclass(frozen=True, slots=True)
class FlowFacts:
    """What is known of a flow beside its packets, seen from the data sender; None is unknown.

    Parameters
    ----------
    mss_bytes : int, optional
        MSS option that the data receiver sent (options of the segments not yet taken off).
    mss_own_bytes : int, optional
        MSS option that the data sender sent.
    window_scale : int, optional
        Shift of the windows the data sender receives.
    window_scale_own : int, optional
        Shift of the windows the data sender advertises.
    sack_permitted, timestamps, ecn : bool, optional
        Options in use.
    handshake_rtt_ns : int, optional
        Round-trip time of the handshake, nanoseconds.
    syn_seen : bool
        Whether the capture holds the data sender's SYN or SYN-ACK.
    opener : bool
        Whether the data sender opened the connection.
    vantage : str
        Where the capture was taken: sender, receiver, middle or unknown.
    """

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


@dataclass(frozen=True, slots=True)
class Retransmissions:
    """Packets that carry data sent before, in the order in which they were sent.

    Attributes
    ----------
    frame : int64
        Frame number.
    trigger : int8
        What made the sender send again: BY_* of `tracetool.kernels.replay_columns`.
    segments : int32
        Wire segments sent again.
    """

    frame: Ints
    trigger: npt.NDArray[np.int8]
    segments: npt.NDArray[np.int32]


@dataclass(frozen=True, slots=True)
class Inferred:
    """What the inference says of one direction of a flow, as arrays and rows; tables are made of many flows at once.

    Attributes
    ----------
    samples : Samples
        The sender's state before each arriving packet of the data receiver is processed.
    recoveries, slow_starts : list of dict
        Rows of the tables of these names, without `input`, `flow` and `direction`; times in nanoseconds.
    retransmissions : Retransmissions
    cc : str, optional
        Congestion control: reno, cubic, bbr or unknown; None where the flow carries too little data to say.
    cc_confidence : float, optional
        How sure `cc` is, 0 to 1.
    """

    samples: Samples
    recoveries: list[dict[str, Any]]
    slow_starts: list[dict[str, Any]]
    retransmissions: Retransmissions
    cc: str | None
    cc_confidence: float | None


def flow_packets(frame: pl.DataFrame, direction: str) -> FlowPackets:
    """Arrays of one flow from its rows of `packets`, sorted by frame.

    Parameters
    ----------
    frame : polars.DataFrame
        Rows of one TCP flow in capture order.
    direction : {"a2b", "b2a"}
        Direction of the data; its packets become ``outbound``.

    Returns
    -------
    FlowPackets

    Examples
    --------
    >>> packets = flow_packets(frame, "a2b")  # doctest: +SKIP
    """
    import polars as pl

    def ints(name: str, unknown: int = -1) -> Ints:
        return frame[name].cast(pl.Int64).fill_null(unknown).to_numpy()

    sack = frame["sack"]
    counts = sack.list.len().fill_null(0).cast(pl.Int64).to_numpy()
    return FlowPackets(
        time_ns=frame["time"].to_physical().cast(pl.Int64).to_numpy(),
        outbound=(frame["direction"] == direction).to_numpy(),
        seq=ints("seq"),
        ack=ints("ack"),
        payload=ints("payload_bytes", 0),
        segments=ints("segments", 0).astype(np.int32),
        flags=ints("flags", 0).astype(np.uint16),
        window=ints("window_bytes"),
        window_raw=ints("window_raw"),
        tsval=ints("tsval"),
        tsecr=ints("tsecr"),
        sack_edges=sack.explode().drop_nulls().cast(pl.Int64).to_numpy(),
        sack_offsets=np.concatenate([np.zeros(1, np.int64), np.cumsum(counts)]),
        ecn=ints("ecn", 0).astype(np.uint8),
        ip_id=ints("ip_id"),
        frame=ints("frame"),
    )


def flow_facts(row: Mapping[str, Any], direction: str, *, syn_seen: bool) -> FlowFacts:
    """Facts of one flow from its row of `flows`, seen from the sender of `direction`.

    Parameters
    ----------
    row : mapping
        One row of the table `flows`.
    direction : {"a2b", "b2a"}
        Direction of the data.
    syn_seen : bool
        Whether the capture holds the SYN (or SYN-ACK) of the data sender.

    Returns
    -------
    FlowFacts

    Examples
    --------
    >>> flow_facts({"mss_b_bytes": 1460, "vantage": "sender"}, "a2b", syn_seen=True).mss_bytes
    1460
    """
    own, peer = ("a", "b") if direction == "a2b" else ("b", "a")
    return FlowFacts(
        mss_bytes=row.get(f"mss_{peer}_bytes"),
        mss_own_bytes=row.get(f"mss_{own}_bytes"),
        window_scale=row.get(f"window_scale_{peer}"),
        window_scale_own=row.get(f"window_scale_{own}"),
        sack_permitted=row.get("sack_permitted"),
        timestamps=row.get("timestamps"),
        ecn=row.get("ecn"),
        handshake_rtt_ns=row.get("handshake_rtt_ns"),
        syn_seen=syn_seen,
        opener=direction == "a2b",
        vantage=row.get("vantage") or "unknown",
    )
