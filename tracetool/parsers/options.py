"""What a user can tell a parser that its input does not say."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping


@dataclass(frozen=True, slots=True)
class ParseOptions:
    """Options of all parsers; each takes those that concern it.

    Attributes
    ----------
    hz
        Kernel timer frequency: srtt of an old ``/proc/net/tcpprobe`` log is in jiffies of this length, the plain
        numbers of ftrace's clock `uptime` are such jiffies, and a SIFTR 1.2 log without its first line counts in such
        ticks. None: what the input says, or what its values tell.
    columns
        For plain tables: column of the input (its name, or its number from 1) for each column of `samples`, with a
        unit where it needs one: ``{"time": "when:ms", "cwnd": "2"}``. See `tracetool.parsers.csv_table`.
    """

    hz: int | None = None
    columns: Mapping[str, str] = field(default_factory=dict)
