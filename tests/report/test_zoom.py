"""A zoomed figure holds what lies in the range, cut at its ends, and its y axis fits that alone."""

from __future__ import annotations

import numpy as np
import pytest

from tracetool.errors import NothingMatchedError
from tracetool.report.figure import Axis, Events, Figure, Panel, Series, Span, Style
from tracetool.report.textplot import _scales
from tracetool.report.vega import to_spec
from tracetool.report.zoom import zoomed

X = np.array([0.0, 1.0, 2.0, 3.0, 4.0])
Y = np.array([0.0, 10.0, 20.0, 30.0, 1000.0])


def figure(kind="step", **values):
    series = Series("s", kind, X, Y, **values)
    events = (
        Events("e", X, y=Y, labels=tuple("abcde"), details=tuple("vwxyz"), frame=np.arange(5)),
        Events("edge", np.array([4.0])),
    )
    spans = (Span(0, 1, "first", "f"), Span(1, 4, "second", "s"))
    share = Panel(Axis("share"), (Series("c", "step", Y, X),), x=Axis("RTT", "ms"))
    return Figure("t", Axis("time", "s"), (Panel(Axis("window"), (series,), events, spans), share))


def test_without_ends_nothing_changes():
    whole = figure()
    assert zoomed(whole) is whole


def test_steps_begin_and_end_at_the_ends_with_the_value_that_holds():
    series = zoomed(figure(), 1.5, 2.5).panels[0].series[0]
    assert series.x.tolist() == [1.5, 2.0, 2.5]
    assert series.y.tolist() == [10.0, 20.0, 20.0]


def test_lines_end_between_their_neighbours():
    series = zoomed(figure("line"), 1.5, 2.5).panels[0].series[0]
    assert series.y.tolist() == [15.0, 20.0, 25.0]


def test_a_range_between_two_points_holds_the_value():
    assert zoomed(figure(), 1.2, 1.8).panels[0].series[0].y.tolist() == [10.0, 10.0]
    assert zoomed(figure("line"), 1.2, 1.8).panels[0].series[0].y.tolist() == pytest.approx([12.0, 18.0])


@pytest.mark.parametrize(
    ("start", "stop", "asked"), [(5, 6, "after 5 s"), (-3, -1, "before -1 s"), (4.5, None, "after")]
)
def test_outside_of_all_there_is_an_error_that_tells_the_range(start, stop, asked):
    with pytest.raises(NothingMatchedError, match=f"nothing {asked}.*: the chart runs from 0 to 4 s"):
        zoomed(figure(), start, stop)


@pytest.mark.parametrize(("start", "stop"), [(4, None), (None, 0), (-1, 5)])
def test_a_range_that_touches_the_data_is_none(start, stop):
    assert len(zoomed(figure(), start, stop).panels[0].series[0].x)


def test_an_empty_figure_can_be_zoomed():
    assert zoomed(Figure("t", Axis("time", "s"), (Panel(Axis("window")),)), 1, 2).is_empty


@pytest.mark.parametrize(("kind", "y2"), [("points", None), ("bars", Y + 1)])
def test_points_and_bars_are_not_carried_in(kind, y2):
    series = zoomed(figure(kind, y2=y2), 1.5, 3.5).panels[0].series[0]
    assert series.x.tolist() == [2.0, 3.0]


def test_both_edges_of_a_band_are_cut():
    series = zoomed(figure("band", y2=Y + 1), 1.5, 2.5).panels[0].series[0]
    assert (series.y2 - series.y).tolist() == [1.0, 1.0, 1.0]


def test_events_and_spans_outside_are_left_out():
    panel = zoomed(figure(), 1.5, 2.5).panels[0]
    assert panel.events[0].labels == ("c",)
    assert panel.events[0].details == ("x",)
    assert panel.events[0].frame.tolist() == [2]
    assert not len(panel.events[1].x)
    assert [(span.start, span.end, span.name) for span in panel.spans] == [(1.5, 2.5, "second")]


def test_a_panel_on_another_axis_stays_whole():
    whole = figure()
    assert zoomed(whole, 1.5, 2.5).panels[1] is whole.panels[1]


def test_the_y_axis_fits_what_is_shown():
    part = zoomed(figure(), None, 3.0)
    assert _scales(part, part.panels[0], 16, 79)[1].high == 30
    assert _scales(figure(), figure().panels[0], 16, 79)[1].high == 1000
    assert to_spec(part)["vconcat"][0]["layer"][0]["encoding"]["x"]["scale"]["domain"] == [0.0, 3.0]


def test_multiples_share_the_range_of_what_they_measure():
    low, high = (Series("s", "step", X, Y / scale) for scale in (100, 1))
    panels = (Panel(Axis("window"), (low,)), Panel(Axis("window"), (high,)), Panel(Axis("RTT"), (low,)))
    tops = [
        [_scales(drawn, panel, 16, 79)[1].high for panel in panels]
        for drawn in (Figure("t", Axis("time"), panels, shared_y=shared) for shared in (False, True))
    ]
    assert tops == [[10, 1000, 10], [1000, 1000, 10]]


@pytest.mark.parametrize(("shift", "side"), [(900.0, "above"), (-900.0, "below"), (5.0, "")])
def test_background_that_is_out_of_the_picture_is_left_out_and_told(shift, side):
    behind = Series("window", "step", X, Y + shift, Style(light=True))
    firm = Series("data", "step", X, Y)
    whole = Figure("t", Axis("time", "s"), (Panel(Axis("bytes"), (behind, firm)),), notes=("first",))
    part = zoomed(whole, 0.0, 2.5)
    assert [series.name for series in part.panels[0].series] == (["data"] if side else ["window", "data"])
    assert part.notes == (("first", f"window: {side} the picture") if side else ("first",))
