"""Input formats: one file each, chosen by content.

A parser is a module with

``NAME``
    the format's name in the `inputs` table,
``DESCRIPTION``
    one line for the list of known formats,
``sniff(head: bytes) -> bool``
    whether the first `tracetool.sources.HEAD_BYTES` bytes are of this format (fewer where the input is shorter): yes
    only to its own, never an exception,
``parse(stream, log, options) -> Iterator[tuple[str, pyarrow.Table]]``
    pieces of tables, as they are read: the table's name and rows in its schema. It yields exactly one row of
    `inputs`, and `flows` before the end; diagnostics go to ``log``, whose ``input`` is the value for the `input`
    column. It never raises for damage inside the input. (`inputs.damaged` is set by ingest, from the log.)

A new format is one new file and one line here.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from importlib import import_module
from typing import TYPE_CHECKING, Protocol, cast

from tracetool.errors import FormatError, UsageError

if TYPE_CHECKING:
    import pyarrow as pa

    from tracetool.diagnostics import DiagnosticLog
    from tracetool.packets.capture import Capture
    from tracetool.parsers.options import ParseOptions
    from tracetool.sources import Stream

#: Module of each format, in the order in which they are asked.
FORMATS = (
    "pcap",
    "pcapng",
    "tcp_probe",
    "proc_tcpprobe",
    "tcp_probe_plus",
    "ss",
    "tc_qdisc",
    "iperf3",
    "flent",
    "siftr",
    "qlog",
    "nstat",
    "tcp_info",
    "csv_table",
)

#: What is known, and cannot be read: what would be right instead.
REFUSED = (
    (rb"\[ *ID\] Interval", "iperf's text report: record with iperf3 --json"),
    (rb"\Asnoop\x00", "a snoop capture: convert it with editcap -F pcap"),
    (rb"\A#!.*bpftrace", "a bpftrace program: give the table that it prints, with --columns"),
)

Pieces = Iterator[tuple[str, "pa.Table"]]


class Parser(Protocol):
    """What a parser module offers."""

    NAME: str
    DESCRIPTION: str
    sniff: Callable[[bytes], bool]
    parse: Callable[[Stream, DiagnosticLog, ParseOptions], Pieces]


class CaptureParser(Parser, Protocol):
    """What the parser of a capture format offers, too: ``read(stream, capture)`` yields pieces of `packets` only.

    So one `tracetool.packets.capture.Capture` can take the frames of several files.
    """

    read: Callable[[Stream, Capture], Pieces]


def get(name: str) -> Parser:
    """Return the parser of a format by its name.

    Raises
    ------
    UsageError
        If there is none.
    """
    if name not in FORMATS:
        raise UsageError(f"no format {name!r}: known are {', '.join(FORMATS)}")
    return cast("Parser", import_module(f"{__name__}.{name}"))


def detect(head: bytes, where: str, *, table: bool = False) -> Parser:
    """Find the parser whose format an input's first bytes are.

    Parameters
    ----------
    head
        The first bytes.
    where
        Name of the input, for the message.
    table
        Whether an input that no parser knows is a plain table, whose columns the user names.

    Raises
    ------
    FormatError
        If none knows them.
    """
    for name in FORMATS:
        parser = get(name)
        if parser.sniff(head):
            return parser
    if table:
        return get("csv_table")
    for pattern, instead in REFUSED:
        if re.search(pattern, head):
            raise FormatError(f"{where}: unknown format: {instead}")
    told = "'tracetool ingest --help' lists those known; other tables: --columns"
    raise FormatError(f"{where}: unknown format ({_beginning(head)}); {told}")


def _beginning(head: bytes) -> str:
    """What an input starts with, as text where it is text."""
    if not head:
        return "it is empty"
    text = head[:16].decode("ascii", "replace").split("\n")[0].rstrip("\r")
    shown = repr(text) if text and text.isprintable() and text.isascii() else head[:8].hex(" ")
    return f"it starts with {shown}"
