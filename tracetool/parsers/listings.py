"""Which time belongs to which listing, where a loop writes the time and then, or before, what a tool prints.

A time applies to what follows it. Where a line ``---`` ends each block (Flent's ``ss_iterate.sh``), or the time is
introduced by ``Time:``, it applies to what came before. A log without any time keeps the order of its listings: they
are numbered, one nanosecond apart.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

    from tracetool.diagnostics import DiagnosticLog
    from tracetool.parsers.stamps import Stamp
    from tracetool.sources import Line

WAITING = 1 << 18  # records that wait for a time to follow; more of them are taken to have none


class Listings:
    """Gives each record of a log its time.

    Parameters
    ----------
    log
        Told of missing times and time zones.
    deliver
        Called with each record and its time in nanoseconds, in the order of the log.

    Attributes
    ----------
    numbered
        Whether there were no times, and the records are numbered instead.
    resolution_ns
        What the times are rounded to; None where there are none.

    Examples
    --------
    >>> from tracetool.diagnostics import DiagnosticLog
    >>> from tracetool.parsers.stamps import Stamp
    >>> from tracetool.sources import Line
    >>> listings = Listings(DiagnosticLog("log"), print)
    >>> listings.add("a", "first")
    >>> listings.stamp(Stamp(7, after=True), Line(2, 0, "", True))
    first 7
    """

    def __init__(self, log: DiagnosticLog, deliver: Callable[[Any, int], None]) -> None:
        self.numbered = False
        self.resolution_ns: int | None = None
        self._log = log
        self._deliver = deliver
        self._time: int | None = None  # of what follows
        self._stamped = False
        self._after = False
        self._waiting: list[tuple[Any, int]] = []  # records, each with the number of its listing
        self._number = 0
        self._listed: set[Any] = set()
        self._missing: set[str] = set()

    def add(self, key: Any, record: Any) -> None:
        """Take a record; ``key`` is what occurs once in a listing."""
        if key in self._listed:
            self.next()
        self._listed.add(key)
        if self.numbered:
            self._deliver(record, self._number)
        elif self._time is None:
            self._waiting.append((record, self._number))
            if len(self._waiting) >= WAITING:
                self._count()
        else:
            if self._waiting:
                self._leave_out("before the first time stamp")
            self._deliver(record, self._time)

    def next(self) -> None:
        """Start a new listing."""
        if self._listed:
            self._number += 1
            self._listed.clear()

    def stamp(self, stamp: Stamp, line: Line) -> None:
        """Take a time that stands alone in a line."""
        self._note(stamp, line)
        self.next()
        if stamp.after or self._after:
            self._settle(stamp.time)
        else:
            self._time = stamp.time

    def line_stamp(self, stamp: Stamp, line: Line) -> None:
        """Take the time of the one line it stands in."""
        self._note(stamp, line)
        self._time = stamp.time

    def end_of_block(self) -> None:
        """Take the line ``---``: the time that came last belongs to what was listed before it."""
        if self._time is not None and self._waiting:
            self._settle(self._time)
            self._after = True
        if self._after or self._time is None:
            self._after = True
            self._time = None
        self.next()

    def finish(self) -> None:
        """Take the end of the log."""
        if self._waiting and not self._stamped:
            self._count()
        elif self._waiting:
            self._leave_out("after the last time stamp")

    def _note(self, stamp: Stamp, line: Line) -> None:
        self._stamped = True
        resolution = 10 ** (9 - stamp.digits)
        if self.resolution_ns is None or resolution > self.resolution_ns:
            self.resolution_ns = resolution
        if stamp.missing and stamp.missing not in self._missing:
            self._missing.add(stamp.missing)
            message = f"times have no {stamp.missing}: their differences are right, the date is not"
            self._log.add("clock_not_utc", message, severity="info", line=line.number)

    def _settle(self, time: int) -> None:
        waiting, self._waiting = self._waiting, []
        for record, _ in waiting:
            self._deliver(record, time)

    def _leave_out(self, where: str) -> None:
        count = len(self._waiting)
        self._log.add("no_time", f"{count} records {where} left out", count=count)
        self._waiting.clear()

    def _count(self) -> None:
        self.numbered = True
        self._log.add("no_time", "no time stamps: listings are numbered (1 ns apart), so only their order is right")
        waiting, self._waiting = self._waiting, []
        for record, number in waiting:
            self._deliver(record, number)
