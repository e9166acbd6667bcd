"""A figure as data: what is drawn, with no word about how.

A chart turns tables into a `Figure`; a renderer turns any `Figure` into text, Vega-Lite or xplot. Everything here is
frozen and holds plain NumPy arrays, so that the same figure says the same in every renderer.

Times are float seconds after `Figure.origin_ns`. A double holds integer nanoseconds exactly up to 2**53 ns (104 days),
so nothing is lost against the tables. NaN in `y` is a gap: the value is unknown there, and no line crosses it.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterable

    from numpy.typing import ArrayLike, NDArray

    FloatArray = NDArray[np.float64]
    IntArray = NDArray[np.int64]

SeriesKind = Literal["line", "step", "points", "band", "bars"]
"""Straight lines; steps that hold until the next point; points; an area, or upright bars, from `y` to `y2`."""
ScaleKind = Literal["linear", "log"]

NO_FRAME = -1
"""Frame number of a row that no captured frame stands behind (inside a figure only; tables have null)."""


@dataclass(frozen=True, slots=True)
class Axis:
    """An axis: what it measures, in what unit, and how it is scaled.

    `low` and `high` fix an end of the range; None lets the data decide.
    """

    label: str
    unit: str = ""
    scale: ScaleKind = "linear"
    low: float | None = None
    high: float | None = None

    @property
    def title(self) -> str:
        """Label with its unit: ``time since first packet (s)``."""
        return f"{self.label} ({self.unit})" if self.unit and self.unit != self.label else self.label


@dataclass(frozen=True, slots=True)
class Style:
    """How a series is told from the others, in every medium at once.

    Attributes
    ----------
    color
        Slot in the colour-blind-safe palette.
    dash
        Slot in the list of dash patterns, so that colour is never the only difference.
    mark
        The 7-bit character that stands for it in text plots.
    light
        Background information: drawn thin, and gives way where it meets another series.
    """

    color: int = 0
    dash: int = 0
    mark: str = "*"
    light: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class Series:
    """One curve, cloud of points or band.

    Attributes
    ----------
    x, y
        Same length; `x` finite and not decreasing (except for `points`), NaN in `y` is a gap.
    y2
        Upper edge of a `band` or of `bars`, else None.
    frame
        Frame number of each point in its capture, `NO_FRAME` where there is none; or None.
    """

    name: str
    kind: SeriesKind
    x: FloatArray
    y: FloatArray
    style: Style = field(default_factory=Style)
    y2: FloatArray | None = None
    frame: IntArray | None = None

    def __post_init__(self) -> None:
        """Refuse arrays that do not belong together."""
        lengths = {len(part) for part in (self.x, self.y, self.y2, self.frame) if part is not None}
        if len(lengths) > 1:
            raise ValueError(f"series {self.name!r}: arrays of unequal length {sorted(lengths)}")
        if (self.kind in ("band", "bars")) != (self.y2 is not None):
            raise ValueError(f"series {self.name!r}: bands and bars, and no other, have y2")

    def take(self, rows: NDArray[np.intp]) -> Series:
        """Return the series with these rows only."""
        return replace(
            self,
            x=self.x[rows],
            y=self.y[rows],
            y2=None if self.y2 is None else self.y2[rows],
            frame=None if self.frame is None else self.frame[rows],
        )


@dataclass(frozen=True, slots=True, eq=False)
class Events:
    """Moments of one kind (retransmissions, slow-start exits): never thinned.

    `y` None means the whole height of the panel. `labels`, where given, are drawn; `details` are for tooltips.
    """

    name: str
    x: FloatArray
    style: Style = field(default_factory=Style)
    y: FloatArray | None = None
    labels: tuple[str, ...] = ()
    details: tuple[str, ...] = ()
    frame: IntArray | None = None

    def __post_init__(self) -> None:
        """Refuse arrays that do not belong together."""
        for part in (self.y, self.frame, self.labels or None, self.details or None):
            if part is not None and len(part) != len(self.x):
                raise ValueError(f"events {self.name!r}: {len(part)} values for {len(self.x)} moments")


@dataclass(frozen=True, slots=True)
class Span:
    """A stretch of time with a name, shaded: a phase. `mark` stands for it in text plots."""

    start: float
    end: float
    name: str
    mark: str = "-"
    color: int = 0


@dataclass(frozen=True, slots=True, eq=False)
class Panel:
    """One set of axes. `x` None shares the figure's own x axis with the other panels (linked pan and zoom)."""

    y: Axis
    series: tuple[Series, ...] = ()
    events: tuple[Events, ...] = ()
    spans: tuple[Span, ...] = ()
    x: Axis | None = None
    title: str = ""
    weight: float = 1.0

    @property
    def parts(self) -> tuple[Series | Events, ...]:
        """All series and events that hold anything."""
        drawn: tuple[Series | Events, ...] = (*self.series, *self.events)
        return tuple(part for part in drawn if len(part.x))


@dataclass(frozen=True, slots=True, eq=False)
class Figure:
    """Panels stacked over a common x axis, with the words around them.

    Attributes
    ----------
    origin_ns
        What `x == 0` means, in ns since 1970-01-01 UTC; None where x is no time.
    notes
        One sentence each: where the numbers come from, what was left out.
    display_filter
        Wireshark filter that selects what is drawn (``tcp.stream eq 3``); with a row's frame number it leads back to
        the packet.
    shared_y
        Panels that measure the same have the same y range, as small multiples need to be compared.
    """

    title: str
    x: Axis
    panels: tuple[Panel, ...]
    subtitle: str = ""
    notes: tuple[str, ...] = ()
    origin_ns: int | None = None
    display_filter: str = ""
    shared_y: bool = False

    def x_axis(self, panel: Panel) -> Axis:
        """Return the x axis that `panel` uses."""
        return panel.x or self.x

    @property
    def is_empty(self) -> bool:
        """Whether nothing at all would be drawn."""
        return not any(panel.parts for panel in self.panels)

    def x_values(self, panel: Panel) -> list[FloatArray]:
        """Return all values along x that must be seen on the axis of `panel`, its own and those of its peers."""
        peers = [peer for peer in self.panels if peer.x is None] if panel.x is None else [panel]
        ends = [np.array([span.start, span.end]) for peer in peers for span in peer.spans]
        return [part.x for peer in peers for part in peer.parts] + ends

    def y_values(self, panel: Panel) -> list[FloatArray]:
        """Return all values along y that must be seen in `panel`: those within a fixed x range.

        Background that would push the rest into less than half of the height is not among them.
        """
        peers = [peer for peer in self.panels if peer.y.title == panel.y.title] if self.shared_y else [panel]
        parts = [(part.style.light, self._y_values(peer, part)) for peer in peers for part in peer.parts]
        firm = [values for light, group in parts if not light for values in group]
        known = np.concatenate(firm) if firm else np.empty(0)
        known = known[np.isfinite(known)]
        if not len(known) or panel.y.scale == "log":
            return [values for _, group in parts for values in group]
        low, high = float(known.min()), float(known.max())
        low = low if panel.y.low is None else min(low, panel.y.low)
        room = high - low or np.inf
        behind = [values for light, group in parts if light for values in group]
        kept = [values for values in behind if not np.any((values > high + room) | (values < low - room))]
        return firm + kept

    def _y_values(self, panel: Panel, part: Series | Events) -> list[FloatArray]:
        axis = self.x_axis(panel)
        low, high = axis.low if axis.low is not None else -np.inf, axis.high if axis.high is not None else np.inf
        seen = (part.x >= low) & (part.x <= high)
        if getattr(part, "kind", "event") not in ("points", "bars", "event"):
            # A curve enters the range with the value it had before.
            seen |= np.append((part.x[:-1] < low) & (part.x[1:] > low), False)
        return [y[seen] for y in (part.y, getattr(part, "y2", None)) if y is not None]

    def _repr_mimebundle_(self, **_: Any) -> dict[str, Any]:
        """Let notebooks show the figure: Vega-Lite where they can, text elsewhere."""
        from tracetool.report.ascii import render_ascii
        from tracetool.report.vega import to_chart

        bundle = to_chart(self)._repr_mimebundle_()
        rich = bundle[0] if isinstance(bundle, tuple) else bundle
        return {**(rich or {}), "text/plain": render_ascii(self)}


def floats(values: ArrayLike | Any) -> FloatArray:
    """Return a float64 array; nulls (of a polars column, or None) become NaN.

    Examples
    --------
    >>> floats([1, None, 3]).tolist()
    [1.0, nan, 3.0]
    """
    if hasattr(values, "cast") and hasattr(values, "to_numpy"):  # a polars Series, without importing polars
        from polars import Float64

        return np.asarray(values.cast(Float64).to_numpy(), dtype=np.float64)
    return np.asarray(values, dtype=np.float64)


def frames(values: Iterable[int | None] | Any) -> IntArray:
    """Return frame numbers as int64, `NO_FRAME` where there is none.

    Examples
    --------
    >>> frames([7, None]).tolist()
    [7, -1]
    """
    if hasattr(values, "fill_null"):
        return np.asarray(values.fill_null(NO_FRAME).to_numpy(), dtype=np.int64)
    return np.asarray([NO_FRAME if value is None else value for value in values], dtype=np.int64)


def seconds_after(origin_ns: int, times: Any) -> FloatArray:
    """Return times (polars timestamp column, or integer ns) as float seconds after `origin_ns`.

    The subtraction is done in integers, so no nanosecond is lost.

    Examples
    --------
    >>> seconds_after(1_700_000_000_000_000_000, np.array([1_700_000_000_250_000_001])).tolist()
    [0.250000001]
    """
    return (nanoseconds(times) - np.int64(origin_ns)) / 1e9


def nanoseconds(times: Any) -> IntArray:
    """Return a polars timestamp column (without nulls) or integer ns as an int64 array of ns since the epoch."""
    if hasattr(times, "dt"):
        from polars import Int64

        times = times.dt.cast_time_unit("ns").cast(Int64).to_numpy()
    return np.asarray(times, dtype=np.int64)
