"""Figures hold together: arrays fit, ranges follow what is shown, notebooks see them."""

from __future__ import annotations

import doctest
import importlib
import pkgutil
import subprocess
import sys
from datetime import UTC, datetime

import numpy as np
import polars as pl
import pytest

from tracetool.report.figure import Axis, Events, Figure, Panel, Series, Span, Style, floats, frames, seconds_after

X = np.arange(5.0)


def figure(*panels, **axis):
    return Figure(
        "a title", Axis("time", "s", **axis), panels or (Panel(Axis("window"), (Series("s", "step", X, X),)),)
    )


def test_arrays_must_fit():
    with pytest.raises(ValueError, match="unequal length"):
        Series("s", "line", X, X[:3])
    with pytest.raises(ValueError, match="y2"):
        Series("s", "band", X, X)
    with pytest.raises(ValueError, match="y2"):
        Series("s", "line", X, X, y2=X)
    with pytest.raises(ValueError, match="3 values for 5 moments"):
        Events("e", X, labels=("a", "b", "c"))


def test_a_fixed_range_of_x_decides_the_range_of_y_with_the_value_that_was_held():
    high = Series("s", "step", X, np.array([9.0, 3, 1, 2, 50]))
    panel = Panel(Axis("y"), (high,))
    shown = figure(panel, low=1.5, high=3.5)
    assert shown.y_values(panel)[0].tolist() == [3, 1, 2]
    assert figure(panel).y_values(panel)[0].max() == 50


def test_panels_on_one_axis_share_its_range_and_others_do_not():
    one = Panel(Axis("y"), (Series("a", "line", X, X),))
    two = Panel(Axis("y"), (), (), (Span(-2, 9, "phase"),))
    own = Panel(Axis("y"), (Series("b", "line", X * 100, X),), x=Axis("rtt", "ms"))
    shown = figure(one, two, own)
    assert np.concatenate(shown.x_values(one)).tolist() == [*X, -2, 9]
    assert np.concatenate(shown.x_values(own)).max() == 400


def test_nulls_become_gaps_and_times_keep_their_nanoseconds():
    assert np.isnan(floats(pl.Series([1, None]))[1])
    assert frames(pl.Series([4, None])).tolist() == [4, -1]
    late = pl.Series([datetime(2026, 1, 1, tzinfo=UTC)]).dt.cast_time_unit("ns")
    start = int(late.cast(pl.Int64)[0])
    assert seconds_after(start - 1, late).tolist() == [1e-9]


def test_notebooks_get_a_chart_and_text():
    bundle = figure()._repr_mimebundle_()
    assert any("vegalite" in kind or kind == "text/html" for kind in bundle)  # as Altair's renderer is set
    assert "a title" in bundle["text/plain"]


def test_naming_the_charts_loads_nothing_heavy():
    code = "import sys, tracetool.report.charts; print([m for m in sys.modules if m in sys.argv[1:]])"
    heavy = ["polars", "numpy", "altair", "vl_convert", "numba", "pyarrow", "jinja2"]
    done = subprocess.run([sys.executable, "-c", code, *heavy], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


MODULES = [
    info.name
    for info in pkgutil.walk_packages(importlib.import_module("tracetool.report").__path__, "tracetool.report.")
]


@pytest.mark.parametrize("name", MODULES)
def test_examples_in_docstrings_are_true(name):
    assert doctest.testmod(importlib.import_module(name)).failed == 0


def test_background_that_would_flatten_the_rest_does_not_stretch_the_axis():
    x = np.array([0.0, 1.0])
    data = Series("data", "line", x, np.array([100.0, 200.0]))
    near, far = (Series("window", "line", x, np.array([120.0, top]), Style(light=True)) for top in (290.0, 900.0))
    for window, highest in ((near, 290.0), (far, 200.0)):
        panel = Panel(Axis("sequence number"), (data, window))
        seen = np.concatenate(Figure("t", Axis("time"), (panel,)).y_values(panel))
        assert (seen.min(), seen.max()) == (100.0, highest)
    alone = Panel(Axis("sequence number"), (far,))
    assert np.concatenate(Figure("t", Axis("time"), (alone,)).y_values(alone)).max() == 900.0
