"""M-Lab's tcp-info archives: one JSON object per line, as recorded (raw netlink bytes) or as decoded snapshots.

They hold Linux's ``struct tcp_info`` (``include/uapi/linux/tcp.h``) as ``tcp_get_info()`` fills it: windows in
segments, times in microseconds, rates in **bytes** per second, ssthresh as the kernel has it (2147483647: not set).
"""

from __future__ import annotations

import base64
import binascii
import ipaddress
import json
import re
import struct
from typing import TYPE_CHECKING, Any

from tracetool.parsers.json_text import number
from tracetool.parsers.logged import FlowBook, LoggedFlow, Rows, metadata, pieces, summary
from tracetool.parsers.stamps import stamp_of
from tracetool.parsers.tcp_state import CA_STATES, bbr_phase, in_flight, limited_by, phase_by_window, threshold

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pyarrow as pa

    from tracetool.diagnostics import DiagnosticLog
    from tracetool.parsers.options import ParseOptions
    from tracetool.sources import Line, Stream

NAME = "tcp_info"
DESCRIPTION = "M-Lab tcp-info archives (JSONL, raw or decoded)"

_SNIFF = re.compile(rb'\s*\{(?=[^\n]{0,60000}"(?:RawIDM|TCPInfo|InetDiagMsg)"\s*:|"Metadata"\s*:\s*\{"UUID")')
_CONG, _INFO, _BBR = 4, 2, 16  # INET_DIAG_CONG, INET_DIAG_INFO, INET_DIAG_BBRINFO
_UNSET_FROM = 0x7FFFFFFF
_BBR_UNIT = 256  # gains are fixed-point numbers, BBR_UNIT in net/ipv4/tcp_bbr.c
#: struct tcp_info: name as M-Lab spells it -> (offset, format).
_STRUCT = {
    "State": (0, "B"), "CAState": (1, "B"), "Backoff": (4, "B"), "Options": (5, "B"), "WScale": (6, "B"),
    "AppLimited": (7, "B"), "SndMSS": (16, "I"), "Unacked": (24, "I"), "Sacked": (28, "I"), "Lost": (32, "I"),
    "Retrans": (36, "I"), "RTT": (68, "I"), "RTTVar": (72, "I"), "SndSsThresh": (76, "I"), "SndCwnd": (80, "I"),
    "TotalRetrans": (100, "I"), "PacingRate": (104, "Q"), "BytesAcked": (120, "Q"), "BytesReceived": (128, "Q"),
    "MinRTT": (148, "I"), "DeliveryRate": (160, "Q"), "Delivered": (192, "I"), "BytesSent": (200, "Q"),
    "SndWnd": (228, "I"),
}  # fmt: skip
_COLUMNS = (
    "flow", "time", "cwnd_segments", "ssthresh_segments", "srtt_ns", "rttvar_ns", "min_rtt_ns", "inflight_bytes",
    "mss_bytes", "snd_una", "snd_wnd_bytes", "pacing_rate_bps", "delivery_rate_bps", "phase", "limited_by", "ca_state",
    "cc", "lost_segments", "sacked_segments", "retransmitted_segments", "delivered_segments",
)  # fmt: skip


def sniff(head: bytes) -> bool:
    """Whether its first line is a record of tcp-info."""
    return bool(_SNIFF.match(head))


def parse(stream: Stream, log: DiagnosticLog, options: ParseOptions) -> Iterator[tuple[str, pa.Table]]:
    """Read an archive of tcp-info.

    Parameters
    ----------
    stream
        The text, one JSON object per line.
    log
        Takes what is odd: lines that cannot be read.
    options
        Not used.

    Yields
    ------
    tuple of str and pyarrow.Table
        Pieces of `samples`, `flows`, `metadata` and `inputs`.

    Examples
    --------
    >>> import io
    >>> from tracetool.diagnostics import DiagnosticLog
    >>> from tracetool.parsers.options import ParseOptions
    >>> text = b'''{"Timestamp": "2026-11-30T08:13:51.5Z", "InetDiagMsg": {"ID": {"SPort": 443, "DPort": 5000,
    ... "SrcIP": "192.0.2.1", "DstIP": "192.0.2.2", "Cookie": 7}}, "TCPInfo": {"State": 1, "CAState": 0, "SndCwnd": 10,
    ... "SndSsThresh": 2147483647, "RTT": 4000}}'''.replace(b"\\n", b"")
    >>> pieces = dict(parse(io.BytesIO(text), DiagnosticLog("log"), ParseOptions()))
    >>> pieces["samples"].select(["cwnd_segments", "ssthresh_segments", "srtt_ns"]).to_pylist()
    [{'cwnd_segments': 10, 'ssthresh_segments': None, 'srtt_ns': 4000000}]
    """
    del options
    yield from pieces(_Reader(log), stream)


class _Reader:
    def __init__(self, log: DiagnosticLog) -> None:
        self.log = log
        self.book = FlowBook(log.input)
        self.samples = Rows("samples", _COLUMNS, input=log.input, origin=NAME, direction="a2b")
        self.facts: dict[str, Any] = {}
        self.records = 0

    def read(self, line: Line) -> None:
        """Take one line."""
        if not line.text.strip():
            return
        try:
            self._record(json.loads(line.text))
        except (ValueError, TypeError, KeyError, struct.error, RecursionError) as error:
            reason = f"{type(error).__name__}: {error}" if isinstance(error, KeyError) else str(error)
            self.log.add(
                "torn_line",
                f"line {line.number} left out: {reason[:200]}",
                severity="error",
                line=line.number,
                offset_bytes=line.offset_bytes,
            )

    def _record(self, record: Any) -> None:
        if not isinstance(record, dict):
            raise TypeError("no JSON object")
        told = record.get("Metadata")
        if isinstance(told, dict):
            self.facts |= {f"tcp_info.{key}": value for key, value in told.items() if isinstance(value, (str, int))}
        if "RawIDM" in record:
            ends, cookie, info, cc, bbr = _raw(record)
        elif "InetDiagMsg" in record:
            ends, cookie, info, cc, bbr = _decoded(record)
        else:
            return
        stamp = stamp_of(str(record.get("Timestamp", "")))
        if info is None or stamp is None:
            if stamp is None:
                raise ValueError("no Timestamp")
            return
        flow = self.book.find(*ends, cookie)
        flow.seen(stamp.time)
        self.records += 1
        _note_facts(flow, info)
        if info.get("State") != 1 and not info.get("RTT"):
            return
        self.samples.rows.append((flow.number, stamp.time, *_values(info, cc, bbr)))

    def finish(self) -> Iterator[tuple[str, pa.Table]]:
        """Yield what is left, and what is known at the end only."""
        if not self.records:
            self.log.add("no_records", "no snapshots in the archive")
        yield from self.samples.take()
        yield "flows", self.book.table()
        yield metadata(self.log.input, self.facts)
        first, last = self.book.span()
        facts = {"first_time": first, "last_time": last, "time_resolution_ns": 1_000_000 if self.records else None}
        yield summary(self.log.input, NAME, self.records, **facts)


_Snapshot = tuple[tuple[str, str], str | None, "dict[str, int | None] | None", str | None, "tuple[int, int] | None"]


def _raw(record: dict[str, Any]) -> _Snapshot:
    """A record as netlink delivered it: ``struct inet_diag_msg`` and its attributes, by their numbers."""
    message = _bytes(record["RawIDM"])
    family, sport, dport = *struct.unpack_from("<B", message), *struct.unpack_from(">HH", message, 4)
    size = 16 if family == 10 else 4  # AF_INET6
    if len(message) < 52:
        raise ValueError("RawIDM is cut")
    ends = tuple(f"[{ipaddress.ip_address(message[at : at + size])}]:{port}" for at, port in ((8, sport), (24, dport)))
    cookie = f"{struct.unpack_from('<Q', message, 44)[0]:x}"
    attributes = [_bytes(text) if text else b"" for text in record.get("Attributes") or ()]
    attributes += [b""] * (_BBR + 1 - len(attributes))
    raw, name, bbr = attributes[_INFO], attributes[_CONG], attributes[_BBR]
    info = {key: _field(raw, at, form) for key, (at, form) in _STRUCT.items()}
    gains = struct.unpack_from("<II", bbr, 12) if len(bbr) >= 20 else None
    cc = name.rstrip(b"\0").decode("ascii", "replace") or None
    return (ends[0], ends[1]), cookie, info if raw else None, cc, gains


def _field(raw: bytes, at: int, form: str) -> int | None:
    """A member of the struct; None where an older kernel's ends before it, or it stands for no limit."""
    if len(raw) < at + struct.calcsize(form):
        return None
    value: int = struct.unpack_from("<" + form, raw, at)[0]
    return value if value < 1 << 63 else None


def _bytes(text: Any) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, TypeError) as error:
        raise ValueError(f"no base64: {error}") from None


def _decoded(record: dict[str, Any]) -> _Snapshot:
    """A record as M-Lab's tools decode it."""
    socket = record["InetDiagMsg"]["ID"]
    ends = tuple(
        f"[{socket[f'{end}IP']}]:{socket[f'{end}Port' if f'{end}Port' in socket else f'{end[0]}Port']}"
        for end in ("Src", "Dst")
    )
    cookie = number(socket.get("Cookie"))
    info, bbr = record.get("TCPInfo"), record.get("BBRInfo")
    values = {key: number(info.get(key)) for key in _STRUCT} if isinstance(info, dict) else None
    gains = None
    if isinstance(bbr, dict):
        pair = number(bbr.get("PacingGain")), number(bbr.get("CwndGain"))
        gains = (pair[0], pair[1]) if pair[0] is not None and pair[1] is not None else None
    cc = record.get("CongestionAlgorithm")
    return (
        (ends[0], ends[1]),
        f"{cookie:x}" if cookie else None,
        values,
        cc if isinstance(cc, str) and cc else None,
        gains,
    )


def _note_facts(flow: LoggedFlow, info: dict[str, int | None]) -> None:
    for column, key in (("payload_bytes_a2b", "BytesSent"), ("payload_bytes_b2a", "BytesReceived")):
        if (count := info.get(key)) is not None:
            flow.facts[column] = count
    if flow.facts.get("payload_bytes_a2b") in (None, 0) and info.get("BytesAcked"):
        flow.facts["payload_bytes_a2b"] = info["BytesAcked"]
    if (scales := info.get("WScale")) is not None:
        flow.facts["window_scale_b"], flow.facts["window_scale_a"] = scales & 15, scales >> 4 & 15
    if (options := info.get("Options")) is not None:  # TCPI_OPT_*
        flow.facts |= {"timestamps": bool(options & 1), "sack_permitted": bool(options & 2), "ecn": bool(options & 8)}


def _values(info: dict[str, int | None], cc: str | None, gains: tuple[int, int] | None) -> tuple[Any, ...]:
    """Values of a sample from cwnd on, in the order of `_COLUMNS`."""
    cwnd, mss, snd_wnd = info["SndCwnd"], info["SndMSS"], info["SndWnd"] or None
    printed = info["SndSsThresh"]
    ssthresh = threshold(printed) if printed is not None else None
    unacked, sacked, lost, retrans = (info[key] for key in ("Unacked", "Sacked", "Lost", "Retrans"))
    flight = in_flight(unacked, sacked, lost, retrans)
    state = info["CAState"]
    ca_state = CA_STATES[state] if state is not None and state < len(CA_STATES) else None
    if gains is not None:
        phase: str | None = bbr_phase(gains[0] / _BBR_UNIT, gains[1] / _BBR_UNIT)
    elif ca_state in ("recovery", "loss"):
        phase = ca_state
    else:
        phase = phase_by_window(cwnd, ssthresh, (), _UNSET_FROM)
    return (
        cwnd,
        ssthresh,
        _us(info["RTT"]),
        _us(info["RTTVar"]),
        _us(info["MinRTT"] if info["MinRTT"] != 0xFFFFFFFF else None),
        flight * mss if flight is not None and mss else None,
        mss,
        info["BytesAcked"],
        snd_wnd,
        _bits(info["PacingRate"]),
        _bits(info["DeliveryRate"]),
        phase,
        limited_by(flight, cwnd, unacked, mss, snd_wnd, app_limited=bool((info["AppLimited"] or 0) & 1)),
        ca_state,
        cc,
        lost,
        sacked,
        info["TotalRetrans"],
        info["Delivered"],
    )


def _us(microseconds: int | None) -> int | None:
    return microseconds * 1000 if microseconds else None


def _bits(bytes_per_second: int | None) -> int | None:
    """Bit per second; ~0 stands for no limit."""
    return bytes_per_second * 8 if bytes_per_second and bytes_per_second < 1 << 60 else None
