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
        Kernel timer frequency of an old ``/proc/net/tcpprobe`` log whose srtt is in jiffies; None: microseconds, or
        what the values suggest.
    columns
        Column of the input for each column of `samples`, for plain tables (CSV).
    """

    hz: int | None = None
    columns: Mapping[str, str] = field(default_factory=dict)
