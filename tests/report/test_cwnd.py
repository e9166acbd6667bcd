"""The cwnd chart: steps with gaps where nothing is known, origins and flows told apart, marks where they belong."""

from __future__ import annotations

import numpy as np
import polars as pl

from tracetool.report.charts.cwnd import cwnd_figure


def by_name(figure, panel=0):
    return {part.name: part for part in figure.panels[panel].parts}


def test_ssthresh_that_is_not_set_is_a_gap(samples):
    series = by_name(cwnd_figure(samples))["ssthresh"]
    assert np.isnan(series.y[0])
    assert series.y[-1] == 52
    never = samples.with_columns(ssthresh_segments=pl.lit(None, pl.Int64))
    assert "ssthresh" not in by_name(cwnd_figure(never))


def test_in_flight_is_in_segments(samples):
    series = by_name(cwnd_figure(samples))["in flight"]
    assert series.style.light
    np.testing.assert_allclose(series.y, samples["cwnd_segments"].to_numpy() - 700 / 1448)


def test_times_count_from_the_first_sample_to_the_nanosecond(samples):
    late = samples.with_columns(pl.col("time") + pl.duration(nanoseconds=1))
    figure = cwnd_figure(pl.concat([samples.head(1), late.slice(1)]))
    assert by_name(figure)["cwnd"].x[:2].tolist() == [0.0, 0.050000001]


def test_origins_are_overlaid_with_their_own_marks(samples):
    inferred = samples.with_columns(
        origin=pl.lit("inferred"),
        cwnd_low_segments=pl.col("cwnd_segments") - 2,
        cwnd_high_segments=pl.col("cwnd_segments") + 2,
    )
    figure = cwnd_figure(pl.concat([inferred, samples], how="diagonal"))
    parts = by_name(figure)
    assert {"cwnd (tcp_probe)", "cwnd (inferred)", "cwnd bounds (inferred)"} <= set(parts)
    marks = [part.style.mark for name, part in parts.items() if name.startswith(("cwnd (", "ssthresh ("))]
    assert len(marks) == len(set(marks)) == 4
    assert "240 kernel, tcp_probe, 240 inferred from packets" in figure.subtitle


def test_bounds_known_only_below_draw_no_band(samples):
    low_only = samples.with_columns(
        cwnd_low_segments=pl.col("cwnd_segments"), cwnd_high_segments=pl.lit(None, pl.Int64)
    )
    assert not [part for part in by_name(cwnd_figure(low_only)) if "bounds" in part]


def test_flows_are_overlaid_or_each_have_a_panel(samples):
    both = pl.concat(
        [samples, samples.with_columns(flow=pl.lit(1, pl.Int32), cwnd_segments=pl.col("cwnd_segments") * 2)]
    )
    names = {0: "cubic", 1: "reno"}
    assert set(by_name(cwnd_figure(both, flow_label=names))) == {"cubic", "reno"}
    panels = cwnd_figure(both, flow_label=names, layout="multiples").panels
    assert [panel.title for panel in panels] == ["cubic", "reno"]
    assert by_name(cwnd_figure(both, layout="multiples"), 1)["cwnd"].y[0] == 20


def test_exits_carry_their_cause_and_losses_stand_at_cwnd(samples, marks):
    parts = by_name(cwnd_figure(samples, **marks))
    assert parts["slow-start exit"].labels == ("hystart_train",)
    assert parts["slow-start exit"].x.tolist() == [1.0]
    assert parts["retransmission"].y.tolist() == [52.0]
    assert parts["retransmission"].frame.tolist() == [1042]
    assert parts["fast recovery"].details == ("lost 2, cwnd before 104, ssthresh after 52",)


def test_an_exit_that_never_came_is_not_drawn(samples, marks):
    never = marks["slow_starts"].with_columns(end=pl.lit(None, pl.Datetime("ns", "UTC")))
    figure = cwnd_figure(samples, slow_starts=never)
    assert "slow-start exit" not in by_name(figure)
    assert figure.subtitle.endswith("slow start did not end")
    assert "did not end" not in cwnd_figure(samples, **marks).subtitle


def test_phases_become_runs(samples):
    spans = cwnd_figure(samples).panels[0].spans
    assert [span.name for span in spans] == ["slow start", "congestion avoidance", "recovery", "congestion avoidance"]
    assert spans[0].end == spans[1].start == 1.0
    assert not cwnd_figure(samples, phases=False).panels[0].spans


def test_no_samples_make_an_empty_figure(samples):
    figure = cwnd_figure(samples.clear())
    assert figure.is_empty
    assert figure.subtitle == "no samples"


def test_a_logarithmic_axis_has_no_zero(samples):
    axis = cwnd_figure(samples, log=True).panels[0].y
    assert (axis.scale, axis.low) == ("log", None)
