"""Time stamps that shell loops put between or before the lines of a log.

``date`` in its default, ISO and epoch forms, ``date +%s%N``, Flent's ``Time:``, moreutils ``ts``, ``watch``. Where the
text leaves out the year, the day or the time zone, the stamp says so: differences are right, the date is not.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta, timezone
from typing import NamedTuple

from tracetool.parsers.logged import TIME_MAX_NS, decimal_ns

_SECOND_NS = 1_000_000_000


class Stamp(NamedTuple):
    """A time read from text.

    Attributes
    ----------
    time
        Nanoseconds since the epoch.
    missing
        What the text does not say: ``time zone`` (taken as UTC), ``year`` (taken as 1972), ``date`` (taken as
        1970-01-01), or None.
    after
        Whether it follows what it stamps, as Flent's ``Time:`` does.
    digits
        Digits of the fraction of a second.
    """

    time: int
    missing: str | None = None
    after: bool = False
    digits: int = 0


#: Digits of a whole number since the epoch -> its unit in nanoseconds.
_EPOCH_UNITS = dict.fromkeys((9, 10, 11), _SECOND_NS) | {13: 1_000_000, 16: 1000, 19: 1}
_EPOCH = re.compile(r"(\d{9,19})(?:\.(\d{1,9}))?$")
_LABEL = re.compile(r"(?:([Tt]ime):\s*)(?=\d)")
_ISO = re.compile(
    r"(\d{4}-\d\d-\d\d)[T ](\d\d:\d\d:\d\d)(?:[.,](\d{1,9}))?\s*(?:(Z|UTC|GMT)|([+-]\d\d):?(\d\d)|([A-Z]{3,5}))?$"
)
_CLOCK = re.compile(r"(\d{1,2}):(\d\d):(\d\d)(?:[.,](\d{1,9}))?$")
_PREFIX = re.compile(
    r"\[?(\d{9,19}(?:\.\d{1,9})?|\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:[.,]\d{1,9})?(?:Z|[+-]\d\d:?\d\d)?"
    r"|(?:[A-Z][a-z]{2} [ \d]\d )?\d\d:\d\d:\d\d(?:[.,]\d{1,9})?)\]?(?=\s)"
)
_SUFFIX = re.compile(r"\d\d:\d\d:\d\d\.\d{1,9}$")
_WATCH = re.compile(r"Every [\d.,]+s: .*?: (?=\S+ .*\d\d:\d\d:\d\d)")
#: Month names in the locales that people's loops ran in (English, German, French, Spanish, Italian), by three letters.
_MONTHS = {
    name: month
    for month, names in enumerate(
        (
            "jan ene gen", "feb fév", "mar mär mrz", "apr avr abr", "may mai mag", "jun giu", "jul lug",
            "aug aoû ago", "sep set", "oct okt ott", "nov", "dec dez déc dic",
        ),
        1,
    )
    for name in names.split()
}  # fmt: skip
#: Hours east of UTC of zone names with one meaning (RFC 5322's, and Europe's).
_ZONES = {
    "UTC": 0, "GMT": 0, "UT": 0, "Z": 0, "WET": 0, "WEST": 1, "CET": 1, "CEST": 2, "MEZ": 1, "MESZ": 2, "EET": 2,
    "EEST": 3, "MSK": 3, "JST": 9, "KST": 9, "EST": -5, "EDT": -4, "CDT": -5, "MST": -7, "MDT": -6, "PST": -8,
    "PDT": -7,
}  # fmt: skip
_YEAR = 1972  # stands for a year that is not given; it has a 29 February


def stamp_of(text: str) -> Stamp | None:
    """The time that a line tells, if it tells nothing else.

    Examples
    --------
    >>> stamp_of("1796026431.698928446").time
    1796026431698928446
    >>> stamp_of("Time: 1796026431.5").after
    True
    >>> stamp_of("Sun Oct 15 12:10:25 CEST 2023") == stamp_of("2023-10-15T10:10:25+00:00")
    True
    >>> stamp_of("ESTAB 0 0 192.0.2.1:80 192.0.2.2:5000") is None
    True
    """
    text = text.strip()
    if len(text) > 200:
        return None
    label = _LABEL.match(text)
    if label:
        text = text[label.end() :]
    elif watch := _WATCH.match(text):
        text = text[watch.end() :]
    after = bool(label) and label is not None and label.group(1) == "Time"
    if epoch := _EPOCH.match(text):
        return _from_epoch(epoch, after=after)
    found = _from_iso(text) or _from_words(text)
    return found._replace(after=after) if found else None


def split_prefix(text: str) -> tuple[Stamp, str] | None:
    """The time before a line's own text, as ``ts`` writes it, and that text.

    Examples
    --------
    >>> stamp, rest = split_prefix("1796026431.698928 ESTAB 0 0")
    >>> stamp.time, rest
    (1796026431698928000, ' ESTAB 0 0')
    """
    found = _PREFIX.match(text)
    if not found:
        return None
    stamp = stamp_of(found.group(1)) or _from_time_of_day(found.group(1)) or _from_words(found.group(1))
    return (stamp, text[found.end() :]) if stamp else None


def split_suffix(text: str) -> tuple[Stamp, str] | None:
    """The time of day at the end of a line, and the text before it.

    Examples
    --------
    >>> split_suffix("cubic cwnd:10 00:00:01.5")
    (Stamp(time=1500000000, missing='date', after=False, digits=1), 'cubic cwnd:10')
    """
    before, _, last = text.rstrip().rpartition(" ")
    if not _SUFFIX.match(last):
        return None
    stamp = _from_time_of_day(last)
    return (stamp, before) if stamp else None


def _from_epoch(found: re.Match[str], *, after: bool) -> Stamp | None:
    whole, fraction = found.groups()
    unit = _EPOCH_UNITS.get(len(whole))
    if unit is None or (fraction and unit != _SECOND_NS):
        return None
    time = decimal_ns(whole, fraction or "") if unit == _SECOND_NS else int(whole) * unit
    digits = {_SECOND_NS: len(fraction or ""), 1_000_000: 3, 1000: 6, 1: 9}[unit]
    return Stamp(time, after=after, digits=digits) if time is not None and time <= TIME_MAX_NS else None


def _from_iso(text: str) -> Stamp | None:
    found = _ISO.match(text)
    if not found:
        return None
    day, clock, fraction, utc, hours, minutes, name = found.groups()
    east = 0 if utc else _ZONES.get(name) if name else None
    offset = timedelta(hours=east) if east is not None else timedelta(0)
    if hours:
        offset = timedelta(hours=int(hours), minutes=int(minutes) * (-1 if hours.startswith("-") else 1))
    known = utc or hours or east is not None
    return _stamp(f"{day} {clock}", offset, fraction, None if known else "time zone")


def _from_time_of_day(text: str) -> Stamp | None:
    found = _CLOCK.match(text)
    return (
        _stamp(f"1970-01-01 {text[: found.end(3)].zfill(8)}", timedelta(0), found.group(4), "date") if found else None
    )


def _from_words(text: str) -> Stamp | None:
    """What ``date`` prints: weekday, month, day, time, zone and year, in the order of the locale."""
    day = month = year = clock = None
    half, offset, known = "", timedelta(0), False
    words = text.replace(",", " ").split() if "," not in text.rpartition(":")[2] else text.split()
    if not 3 <= len(words) <= 8:
        return None
    for place, word in enumerate(words):
        bare = word.rstrip(".,")
        if clock is None and (found := _CLOCK.match(word)):
            clock = found
        elif bare.isdecimal() and len(bare) == 4 and year is None:
            year = int(bare)
        elif bare.isdecimal() and len(bare) <= 2 and day is None:
            day = int(bare)
        elif month is None and bare[:3].lower() in _MONTHS and (place > 0 or len(words) == 3):
            month = _MONTHS[bare[:3].lower()]
        elif month is None and bare.lower()[:4] in ("juin", "juil"):
            month = 6 if bare.lower()[:4] == "juin" else 7
        elif bare in ("AM", "PM") and clock is not None:
            half = bare
        elif clock is not None and re.fullmatch(r"[A-Z]{1,5}|[+-]\d\d(?:\d\d)?", bare):
            known = bare in _ZONES or bare[0] in "+-"
            hours = _ZONES.get(bare, 0) if bare[0] not in "+-" else int(bare[:3])
            offset = timedelta(hours=hours, minutes=int(bare[3:] or 0) if bare[0] in "+-" else 0)
        elif place > 0 or not bare.isalpha() or len(bare) > 9:  # only a weekday stands first
            return None
    if day is None or month is None or clock is None:
        return None
    hour = int(clock.group(1)) % 12 + (12 if half == "PM" else 0) if half else int(clock.group(1))
    missing = "year" if year is None else None if known else "time zone"
    told = f"{year or _YEAR:04}-{month:02}-{day:02} {hour:02}:{clock.group(2)}:{clock.group(3)}"
    return _stamp(told, offset, clock.group(4), missing)


def _stamp(told: str, offset: timedelta, fraction: str | None, missing: str | None) -> Stamp | None:
    try:
        moment = datetime.strptime(told, "%Y-%m-%d %H:%M:%S").replace(tzinfo=timezone(offset))
    except ValueError:  # a 31 February, a 25th hour, an offset of days
        return None
    seconds = (moment - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(seconds=1)
    time = seconds * _SECOND_NS + int((fraction or "").ljust(9, "0") or 0)
    return Stamp(time, missing, digits=len(fraction or "")) if abs(time) <= TIME_MAX_NS else None
