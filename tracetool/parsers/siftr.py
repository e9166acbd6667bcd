"""SIFTR, FreeBSD's log of its TCP connections (``sys/netinet/siftr.c``), versions 1.2 and 1.3.

Inbound lines are written before TCP processes the packet, outbound ones after it was made: both show the state of the
local end. Windows and thresholds are **bytes**; segments are bytes over the line's MSS. The smoothed RTT is in
microseconds from 1.3 on, before in ticks times ``tcp_rtt_scale``. Bytes in flight are ``snd_max - snd_una``, SACKed
data included.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from tracetool.errors import FormatError
from tracetool.parsers.logged import FlowBook, Rows, decimal_ns, metadata, pieces, summary

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pyarrow as pa

    from tracetool.diagnostics import DiagnosticLog
    from tracetool.parsers.options import ParseOptions
    from tracetool.sources import Line, Stream

NAME = "siftr"
DESCRIPTION = "FreeBSD SIFTR logs, versions 1.2 and 1.3"

ESTABLISHED = 4  # TCPS_ESTABLISHED
INFINITE_SSTHRESH = 65535 << 14  # TCP_MAXWIN << TCP_MAX_WINSHIFT
_SETTING = re.compile(r"(\w+)=(\S*)")
_ENABLE = re.compile(rb"(?:^|\n)enable_time_secs=\d+\t.*siftrver=")
_DATA = re.compile(rb"(?:^|\n)[io],(?:0x[0-9a-f]{8},)?\d{9,11}\.\d{6},")
_TIME = re.compile(r"(\d{1,10})\.(\d{6})$")
_FIELDS = (25, 27, 28)  # columns of known versions, the hash counted where there is one
#: Columns that are read, the hash left out.
_AT = {
    "ssthresh": 6, "cwnd": 7, "snd_wnd": 9, "rcv_wnd": 10, "snd_scale": 11, "rcv_scale": 12, "state": 13, "mss": 14,
    "srtt": 15, "inflight": 23,
}  # fmt: skip
_UNITS = ("hz", "tcp_rtt_scale")
_TOLD = ("siftrver", "sysname", "sysver", "ipmode", *_UNITS)
_COLUMNS = (
    "flow", "time", "cwnd_segments", "ssthresh_segments", "srtt_ns", "inflight_bytes", "mss_bytes", "snd_wnd_bytes",
    "rcv_wnd_bytes", "phase",
)  # fmt: skip


def sniff(head: bytes) -> bool:
    """Whether it starts with SIFTR's own first line, or with lines of data as SIFTR writes them."""
    return bool(_ENABLE.search(head[:4096]) or _DATA.match(head))


def parse(stream: Stream, log: DiagnosticLog, options: ParseOptions) -> Iterator[tuple[str, pa.Table]]:
    r"""Read a SIFTR log.

    Parameters
    ----------
    stream
        The text.
    log
        Takes what is odd: torn lines, an RTT whose unit the log does not tell, packets that SIFTR skipped.
    options
        ``hz`` where the first line of a log of version 1.2 is missing.

    Yields
    ------
    tuple of str and pyarrow.Table
        Pieces of `samples`, `flows`, `metadata` and `inputs`.

    Raises
    ------
    FormatError
        If the version has another layout (SIFTR2).

    Examples
    --------
    >>> import io
    >>> from tracetool.diagnostics import DiagnosticLog
    >>> from tracetool.parsers.options import ParseOptions
    >>> text = (b"enable_time_secs=1\tenable_time_usecs=0\tsiftrver=1.3.0\tsysname=FreeBSD\tsysver=1400089\tipmode=4\n"
    ...         b"o,1685191814.185109,192.0.2.2,32291,192.0.2.3,5001,1073725440,14600,2,65160,65700,7,9,4,1460,1000,1,"
    ...         b"16778209,230000,33580,0,65700,0,0,0,86707916,130\n")
    >>> pieces = dict(parse(io.BytesIO(text), DiagnosticLog("log"), ParseOptions()))
    >>> pieces["samples"].select(["cwnd_segments", "ssthresh_segments", "srtt_ns"]).to_pylist()
    [{'cwnd_segments': 10, 'ssthresh_segments': None, 'srtt_ns': 1000000}]
    """
    yield from pieces(_Reader(log, options), stream)


class _Reader:
    def __init__(self, log: DiagnosticLog, options: ParseOptions) -> None:
        self.log = log
        self.hz = options.hz
        self.book = FlowBook(log.input)
        self.samples = Rows("samples", _COLUMNS, input=log.input, origin=NAME, direction="a2b")
        self.settings: dict[str, str] = {}
        self.records = 0
        self.blind = False  # whether an RTT's unit was missing

    def read(self, line: Line) -> None:
        """Take one line."""
        if "=" in line.text and "\t" in line.text:
            self.settings |= dict(_SETTING.findall(line.text[:4000]))
            if self.settings.get("siftrver", "1").split(".")[0] != "1":
                version = self.settings["siftrver"]
                raise FormatError(f"{self.log.input}: line {line.number}: SIFTR {version}: only 1.2 and 1.3 are known")
        elif line.text[:2] in ("i,", "o,"):
            self._data(line)
        elif line.text.strip():
            self._torn(line, "neither data nor settings")

    def _data(self, line: Line) -> None:
        fields = line.text.split(",")
        hashed = len(fields) > 1 and fields[1].startswith("0x")
        if len(fields) not in _FIELDS:
            self._torn(line, f"{len(fields)} columns, where SIFTR has {', '.join(map(str, _FIELDS))}")
            return
        if hashed:
            del fields[1]
        time = _TIME.match(fields[1])
        moment = decimal_ns(time.group(1), time.group(2)) if time else None
        named = {name: fields[at] for name, at in _AT.items()}
        if moment is None or not all(text.isdecimal() and len(text) < 19 for text in named.values()):
            self._torn(line, "a column that is no number")
            return
        values = {name: int(text) for name, text in named.items()}
        try:
            flow = self.book.find(*(f"[{fields[at]}]:{fields[at + 1]}" for at in (2, 4)))
        except ValueError as error:
            self._torn(line, str(error))
            return
        self.records += 1
        flow.seen(moment)
        flow.facts["window_scale_b"], flow.facts["window_scale_a"] = (
            values["snd_scale"] % 256,
            values["rcv_scale"] % 256,
        )
        if values["state"] >= ESTABLISHED:
            self.samples.rows.append((flow.number, moment, *self._sample(values, hashed=hashed)))

    def _sample(self, values: dict[str, int], *, hashed: bool) -> tuple[Any, ...]:
        mss = values["mss"] or None
        ssthresh = values["ssthresh"] if 0 < values["ssthresh"] < INFINITE_SSTHRESH else None
        return (
            round(values["cwnd"] / mss) if mss else None,
            round(ssthresh / mss) if mss and ssthresh else None,
            self._rtt_ns(values["srtt"], hashed=hashed),
            values["inflight"],
            mss,
            values["snd_wnd"],
            values["rcv_wnd"],
            "slow_start" if ssthresh is None else None,  # what lowers a window is not told
        )

    def _rtt_ns(self, srtt: int, *, hashed: bool) -> int | None:
        """Smoothed RTT; 0 before the first sample."""
        if not hashed:
            return srtt * 1000 or None
        hz, scale = (int(text) if (text := self.settings.get(key, "")).isdecimal() else None for key in _UNITS)
        if not (hz or self.hz) or not scale:
            self.blind = True
            return None
        return round(srtt * 1e9 / (scale * (hz or self.hz or 1))) or None

    def _torn(self, line: Line, reason: str) -> None:
        self.log.add(
            "torn_line",
            f"line {line.number} left out: {reason}",
            severity="error",
            line=line.number,
            offset_bytes=line.offset_bytes,
        )

    def finish(self) -> Iterator[tuple[str, pa.Table]]:
        """Yield what is left, and what is known at the end only."""
        if self.blind:
            self.log.add("srtt_unit", "srtt left out: the log does not tell hz and tcp_rtt_scale")
        if not self.records:
            self.log.add("no_records", "no packets in the log")
        yield from self.samples.take()
        yield "flows", self.book.table()
        yield metadata(self.log.input, {f"siftr.{key}": value for key, value in self.settings.items() if key in _TOLD})
        skipped = self.settings.get("total_skipped_tcp_pkts", "")
        first, last = self.book.span()
        facts = {"first_time": first, "last_time": last, "time_resolution_ns": 1000 if self.records else None}
        drops = int(skipped) if skipped.isdecimal() and len(skipped) < 19 else None
        yield summary(self.log.input, NAME, self.records, capture_drops=drops, **facts)
