"""Text plots: the same bytes everywhere, inside their width, and legible (read the golden files)."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pytest

from tracetool.report.ascii import render_ascii
from tracetool.report.charts.cwnd import cwnd_figure
from tracetool.report.figure import Axis, Events, Figure, Panel, Series, Span, Style
from tracetool.report.plain import display_width
from tracetool.report.unicode import render_unicode

HOSTILE = "evil \x1b[31mred\x1b]0;owned\x07 </script><b>\u202e\u6f22\u5b57 \x9b2J"


@pytest.fixture
def figure(samples, marks):
    return cwnd_figure(samples, **marks, flow_label="flow 0, 10.0.0.1:4000 > 10.0.0.2:80, cubic", notes=("A note.",))


def ramp(name="ramp", **style):
    return Series(name, "step", np.arange(11.0), np.arange(11.0), Style(**style))


def one_panel(*series, events=(), spans=(), y=None):
    return Figure("title", Axis("time", "s"), (Panel(y or Axis("window", "segments"), series, events, spans),))


@pytest.mark.parametrize("width", [60, 79, 200])
def test_ascii_golden(figure, golden, width):
    text = render_ascii(figure, width=width)
    assert max(map(len, text.splitlines())) <= width
    golden(f"cwnd-{width}.txt", text)


def test_unicode_golden(figure, golden):
    golden("cwnd-unicode.txt", render_unicode(figure))


def test_ascii_is_seven_bit_and_carries_no_trailing_blanks(figure):
    text = render_ascii(figure)
    assert text.isascii()
    assert text.endswith("\n")
    assert all(line == line.rstrip() and line.isprintable() for line in text.splitlines())


def test_color_changes_nothing_but_escapes(figure):
    colored = render_unicode(figure, color=True)
    assert re.sub(r"\x1b\[[0-9;]*m", "", colored) == render_unicode(figure)
    assert "\x1b" not in render_unicode(figure)
    last = [re.findall(r"\x1b\[[0-9;]*m", line)[-1] for line in colored.splitlines() if "\x1b" in line]
    assert set(last) == {"\x1b[0m"}  # no colour runs on into the next line


@pytest.mark.parametrize("render", [render_ascii, render_unicode])
@pytest.mark.parametrize("width", [40, 60, 79, 200])
def test_hostile_names_reach_no_terminal(render, width):
    figure = Figure(
        HOSTILE,
        Axis(HOSTILE, HOSTILE),
        (
            Panel(
                Axis(HOSTILE, HOSTILE),
                (ramp(HOSTILE),),
                (Events(HOSTILE, np.array([5.0]), labels=(HOSTILE,)),),
                (Span(0, 5, HOSTILE),),
                title=HOSTILE,
            ),
        ),
        subtitle=HOSTILE,
        notes=(HOSTILE * 20,),
    )
    text = render(figure, width=width)
    assert all(line.isprintable() and display_width(line) <= width for line in text.splitlines())


def test_height_is_obeyed_where_it_can_be():
    for height in (20, 24, 40):
        assert len(render_ascii(one_panel(ramp()), height=height).splitlines()) == height
    assert len(render_ascii(one_panel(ramp()), height=3).splitlines()) >= 9


def test_series_that_coincide_take_turns():
    body = [
        line for line in render_ascii(one_panel(ramp("a", mark="*"), ramp("b", mark="#"))).splitlines() if "|" in line
    ]
    assert any("*" in line for line in body)
    assert any("#" in line for line in body)


def test_a_light_series_gives_way():
    text = render_ascii(one_panel(ramp("a", mark="*"), ramp("b", mark=".", light=True)))
    assert not any("." in line.split("|")[1] for line in text.splitlines() if line.count("|") == 2)


def test_log_axis_has_decades():
    y = Axis("cwnd", "segments", "log")
    values = Series("cwnd", "line", np.arange(4.0), np.array([1.0, 10.0, 100.0, 1000.0]))
    text = render_ascii(one_panel(values, y=y))
    assert all(f"{tick} +" in text for tick in ("1", "10", "100", "1000"))


def test_no_data_says_so():
    empty = Series("cwnd", "step", np.empty(0), np.empty(0))
    assert "no data" in render_ascii(one_panel(empty))
    assert "no data" in render_unicode(one_panel())


def test_many_full_height_events_do_not_hatch_the_plot():
    few, many = (Events("x", np.linspace(0, 10, n), Style(mark="!")) for n in (3, 60))
    assert ":" in render_ascii(one_panel(ramp(), events=(few,))).split("+\n", 1)[1]
    assert " :" not in render_ascii(one_panel(ramp(), events=(many,))).split("+\n", 1)[1]


def test_panels_on_one_axis_show_its_ticks_once():
    figure = one_panel(ramp())
    two = replace(figure, panels=figure.panels * 2)
    assert render_ascii(two).count("time (s)") == 1
    own = replace(figure, panels=(*figure.panels, replace(figure.panels[0], x=Axis("rtt", "ms"))))
    text = render_ascii(own)
    assert "time (s)" in text
    assert "rtt (ms)" in text


def test_areas_and_bars_differ_without_colour():
    x = np.array([0.0, 1.0])
    areas = [Series("a", "band", x, np.zeros(2), Style(slot, slot), y2=np.ones(2)) for slot in range(5)]
    bars = [Series("b", "bars", x, np.zeros(2), Style(slot, slot), y2=np.ones(2)) for slot in (0, 2)]
    for group in (areas, bars):
        texts = {
            render_unicode(Figure("t", Axis("x"), (Panel(Axis("y"), (series,)),))).splitlines()[1] for series in group
        }
        assert len(texts) == len(group)
