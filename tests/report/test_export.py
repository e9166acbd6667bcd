"""Files: the suffix chooses the format, a failure leaves what was there, CSV and xplot hold what is drawn."""

from __future__ import annotations

import io
import json

import numpy as np
import polars as pl
import pytest

from tracetool.errors import UsageError
from tracetool.report import export
from tracetool.report.charts.cwnd import cwnd_figure
from tracetool.report.figure import Axis, Events, Figure, Panel, Series, Span


@pytest.fixture
def figure(samples, marks):
    return cwnd_figure(samples, **marks, flow_label="flow 0")


@pytest.mark.parametrize("suffix", sorted(export.SUFFIXES))
def test_every_suffix_writes_a_file(figure, tmp_path, suffix):
    path = tmp_path / f"plot{suffix.upper()}"
    export.save(figure, path, width=60 if suffix == ".txt" else 200)
    assert path.stat().st_size > 200
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("name", ["plot.gif", "plot", ".png"])
def test_an_unknown_suffix_is_a_usage_error(figure, tmp_path, name):
    with pytest.raises(UsageError, match=r"\.svg"):
        export.save(figure, tmp_path / name)
    assert not list(tmp_path.iterdir())


def test_an_unknown_format_is_a_usage_error(figure):
    with pytest.raises(UsageError, match="xplot"):
        export.render(figure, "gif")  # type: ignore[arg-type]


def test_a_failure_leaves_the_old_file_and_no_litter(tmp_path, monkeypatch):
    path = tmp_path / "plot.txt"
    path.write_text("old")

    def fail(*_):
        raise OSError("disk full")

    monkeypatch.setattr(export.Path, "replace", fail)
    with pytest.raises(OSError, match="disk full"):
        export.write_atomic(path, b"new")
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_json_is_a_specification_that_renders(figure):
    spec = json.loads(str(export.render(figure, "json")))
    assert spec["$schema"].endswith("vega-lite/v6.json")


def test_csv_holds_every_point_unthinned():
    x = np.arange(20_000) / 1e3
    values = np.where(x > 5, x, np.nan)
    series = Series("cwnd", "step", x, values, frame=np.arange(20_000))
    events = Events("loss", np.array([1.5]), labels=("fast",), frame=np.array([-1]))
    panel = Panel(Axis("window"), (series,), (events,), (Span(0, 1, "slow start", "s"),))
    text = str(export.render(Figure("t", Axis("time", "s"), (panel,)), "csv"))
    table = pl.read_csv(io.StringIO(text), infer_schema_length=None)
    assert len(table) == 20_002
    assert table.filter(pl.col("kind") == "step")["y"].null_count() == int(np.isnan(values).sum())
    assert table.filter(pl.col("kind") == "event").select("x", "y", "frame", "label").row(0) == (
        1.5,
        None,
        None,
        "fast",
    )
    assert table.filter(pl.col("kind") == "span").select("x", "y2", "name").row(0) == (0.0, 1.0, "slow start")


def test_xplot_golden(golden):
    series = Series("cwnd", "step", np.array([0.0, 1.0, 2.0]), np.array([10.0, np.nan, 20.0]))
    dots = Series("rtt", "points", np.array([0.5]), np.array([1.25]))
    band = Series("bounds", "band", np.array([0.0, 1.0]), np.array([1.0, 1.0]), y2=np.array([2.0, 3.0]))
    events = (Events("loss", np.array([1.0])), Events("exit \x1b[0m", np.array([2.0]), y=np.array([20.0])))
    panel = Panel(Axis("window", "segments", low=0.0), (series, dots, band), events)
    golden("figure.xpl", str(export.render(Figure("a title\nline 2", Axis("time", "s"), (panel,)), "xplot")))
