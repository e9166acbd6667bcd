"""Vega-Lite specifications: valid, complete, the same each time, and safe inside a page."""

from __future__ import annotations

import json
import time

import numpy as np
import polars as pl
import pytest

from tracetool.report import html, vega, vega_marks
from tracetool.report.charts.cwnd import cwnd_figure
from tracetool.report.export import render
from tracetool.report.figure import Axis, Events, Figure, Panel, Series
from tracetool.report.html import script_json

HOSTILE = "</script><script>alert(1)</script><!-- \u2028 ' \" \\ \x1b[31m {{7*7}} datum['x']"


@pytest.fixture
def figure(samples, marks):
    return cwnd_figure(samples, **marks, flow_label="flow 0", display_filter="tcp.stream eq 3")


def hostile_figure():
    x = np.arange(4.0)
    part = Series(HOSTILE, "step", x, x, frame=np.array([1, 2, -1, 4]))
    events = Events(HOSTILE, np.array([1.0]), labels=(HOSTILE,), details=(HOSTILE,))
    panel = Panel(Axis(HOSTILE), (part,), (events,), title=HOSTILE)
    return Figure(
        HOSTILE, Axis(HOSTILE, "s"), (panel, panel), subtitle=HOSTILE, notes=(HOSTILE,), display_filter=HOSTILE
    )


def test_golden(figure, golden_spec):
    golden_spec("cwnd.vl.json", vega.to_spec(figure))


def test_altair_accepts_it_and_gives_it_back(figure):
    chart = vega.to_chart(figure)
    assert chart.to_dict()["layer"]
    assert "vconcat" in vega.to_chart(hostile_figure()).to_dict()


def test_every_layer_says_which_series_it_is(figure):
    named = [
        json.loads(layer["transform"][0]["calculate"])
        for layer in vega.to_spec(figure)["layer"]
        if "transform" in layer
    ]
    assert {"cwnd", "ssthresh", "in flight", "retransmission", "slow-start exit"} <= set(named)


def test_tooltips_lead_back_to_the_frame(figure):
    spec = json.dumps(vega.to_spec(figure))
    assert "tcp.stream eq 3 and frame.number == " in spec
    assert "tooltip" not in json.dumps(vega.to_spec(figure, interactive=False))


def test_colors_and_dashes_differ_between_series(figure):
    lines = [layer for layer in vega.to_spec(figure)["layer"] if layer.get("mark", {}).get("type") == "line"]
    scale = lines[0]["encoding"]
    assert len(set(scale["stroke"]["scale"]["range"])) == 3
    assert len(set(map(tuple, scale["strokeDash"]["scale"]["range"]))) == 3
    assert len(vega_marks.PALETTE) == len(html.DARK_PALETTE) == len(set(vega_marks.PALETTE))


def test_unknown_is_null_and_no_number():
    series = Series("s", "step", np.arange(3.0), np.array([1.0, np.nan, 2.0]), frame=np.array([5, -1, 6]))
    spec = vega.to_spec(Figure("t", Axis("time", "s"), (Panel(Axis("y"), (series,)),)))
    assert spec["layer"][0]["data"]["values"] == "x,y,frame\n0.0,1.0,5\n1.0,,\n2.0,2.0,6\n"


def test_nanoseconds_survive():
    series = Series("s", "line", np.array([0.0, 86_400.123456789]), np.array([1.0, 2.0]))
    spec = vega.to_spec(Figure("t", Axis("time", "s"), (Panel(Axis("y"), (series,)),)))
    assert "86400.123456789," in spec["layer"][0]["data"]["values"]


def test_script_json_cannot_leave_its_element():
    text = script_json({"a": HOSTILE})
    assert not set("<>&\u2028") & set(text)
    assert json.loads(text) == {"a": HOSTILE}


def test_a_hostile_page_holds_no_markup_from_data():
    page = render(hostile_figure(), "html")
    assert isinstance(page, str)
    assert "alert(1)" in page
    assert "<script>alert" not in page
    assert page.lower().count("</script") == 2


def test_the_page_asks_the_network_for_nothing(figure):
    page = str(render(figure, "html"))
    assert "default-src 'none'" in page
    assert not [part for part in page.split("src=")[1:] if part.startswith(('"http', "http"))]
    assert "cdn.jsdelivr" not in page


def test_a_million_samples_make_a_small_page_quickly():
    count = 1_000_000
    noise = np.random.default_rng(1)
    start = np.datetime64("2026-01-01", "ns").astype(np.int64)
    time_ns = start + np.sort(noise.integers(0, 600_000_000_000, count))
    frame = pl.DataFrame(
        {
            "flow": np.zeros(count, np.int32),
            "origin": ["tcp_probe"] * count,
            "time": pl.Series(time_ns).cast(pl.Datetime("ns")),
            "cwnd_segments": noise.integers(1, 5000, count),
            "ssthresh_segments": noise.integers(1, 5000, count),
            "inflight_bytes": noise.integers(0, 5000, count) * 1448,
            "mss_bytes": np.full(count, 1448),
        }
    )
    started = time.process_time()
    page = render(cwnd_figure(frame), "html")
    assert len(page) < 3_000_000
    assert time.process_time() - started < 60  # it takes about 2 s; this only catches a loop over samples


def test_events_outside_a_fixed_range_do_not_widen_the_picture():
    events = Events("exit", np.array([1.0, 500.0]), labels=("in", "out"))
    axis = Axis("time", "s", low=0.0, high=2.0)
    svg = str(render(Figure("t", axis, (Panel(Axis("y"), (), (events,)),)), "svg", width=300))
    assert float(svg.split('width="')[1].split('"', maxsplit=1)[0]) < 400
    assert ">out<" not in svg


def test_what_has_no_logarithm_is_null_but_events_are_seen():
    x = np.arange(3.0)
    series = Series("s", "line", x, np.array([10.0, 0.0, 1000.0]))
    events = Events("lost", x, y=np.zeros(3))
    panel = Panel(Axis("y", scale="log"), (series,), (events,))
    spec = vega.to_spec(Figure("t", Axis("time", "s"), (panel,)))
    assert spec["layer"][0]["data"]["values"] == "x,y\n0.0,10.0\n1.0,\n2.0,1000.0\n"
    assert [row["y"] for row in spec["layer"][1]["data"]["values"]] == [10.0] * 3


@pytest.mark.parametrize("kind", ["png", "svg", "pdf"])
def test_images_are_not_blank(figure, kind, pixels):
    data = render(figure, kind, width=300)
    if kind == "png":
        image = pixels(data)[..., :3]
        ink = (image != 255).any(axis=2)
        assert 0.02 < ink.mean() < 0.9
        assert len(np.unique(image.reshape(-1, 3), axis=0)) > 50
    elif kind == "svg":
        assert str(data).count("<path") > 10
        assert "flow 0" in str(data)
    else:
        assert bytes(data).startswith(b"%PDF")
