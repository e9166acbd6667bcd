"""Every chart, from a dataset: it holds what it should, and is neither blank nor unreadable in any medium."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl
import pytest
import vl_convert

from tests.report.made import make
from tracetool.api import prepared
from tracetool.errors import NothingMatchedError, UsageError
from tracetool.reconstruct.connections import Connection
from tracetool.report import charts
from tracetool.report.ascii import _Ascii, render_ascii
from tracetool.report.charts.bbr import _no_bbr
from tracetool.report.deliveries import delivered, deliveries, round_scales, unique_names
from tracetool.report.export import render
from tracetool.report.figure import Series
from tracetool.report.selection import (
    capture_of,
    display_filter,
    heaviest,
    one_view,
    rows,
    samples_of,
    short_names,
    title_of,
)
from tracetool.report.unicode import _Braille
from tracetool.report.vega import to_spec


@pytest.fixture(scope="session")
def dataset(tmp_path_factory):
    return make(tmp_path_factory.mktemp("made") / "dataset")


def series(figure, panel=0):
    return {part.name: part for part in figure.panels[panel].parts}


@pytest.mark.parametrize("name", sorted(charts.CHARTS))
def test_every_chart_in_ascii(dataset, name, golden):
    text = render_ascii(charts.build(name, dataset))
    assert "no data" not in text
    assert text.isascii()
    assert max(map(len, text.splitlines())) <= 79
    golden(f"chart-{name}.txt", text)


@pytest.mark.parametrize("flows", [1, 2, 8])
@pytest.mark.parametrize("name", sorted(charts.CHARTS))
@pytest.mark.parametrize("medium", [_Ascii(), _Braille(color=False)], ids=["ascii", "unicode"])
def test_without_colour_no_two_series_look_alike(dataset, medium, name, flows):
    found = heaviest(dataset, 2, share=0.0)
    if (flows > 1 and not charts.CHARTS[name].several) or (flows < 2 and name in ("convergence", "fairness")):
        pytest.skip("not for so many flows")
    figure = charts.build(name, dataset, [found[n % len(found)] for n in range(flows)])
    for panel in figure.panels:
        looks = [medium.sample(part) if isinstance(part, Series) else part.style.mark for part in panel.parts][:9]
        assert len(set(looks)) == len(looks), (looks, [part.name for part in panel.parts])


@pytest.mark.parametrize("name", sorted(charts.CHARTS))
def test_every_chart_as_a_picture_is_not_blank(dataset, name, pixels):
    picture = str(render(charts.build(name, dataset), "svg", width=400, height=300))
    image = pixels(vl_convert.svg_to_png(picture, scale=0.5))[..., :3]
    assert 0.01 < (image != 255).any(axis=2).mean() < 0.95
    assert len(np.unique(image.reshape(-1, 3), axis=0)) > 30


@pytest.mark.parametrize("name", ["time-sequence", "throughput", "slow-start"])
def test_specifications(dataset, name, golden_spec):
    golden_spec(f"chart-{name}.vl.json", to_spec(charts.build(name, dataset), columns=12))


@pytest.mark.parametrize("name", sorted(charts.CHARTS))
def test_every_chart_takes_a_logarithmic_axis(dataset, name):
    assert not charts.build(name, dataset, log=True).is_empty


def test_an_unknown_chart_names_the_known(dataset):
    with pytest.raises(UsageError, match="time-sequence"):
        charts.build("pie", dataset)


def test_connections_join_inputs_and_leave_out_nothing_that_carries_data(dataset):
    found = heaviest(dataset, 8)
    assert [len(connection.parts) for connection in found] == [3, 3]
    assert title_of(dataset, found[0]) == "flow 0, 192.0.2.1:4000 > [2001:db8::2]:80, cubic"
    assert short_names(dataset, found) == {0: "flow 0 cubic", 1: "flow 1 cubic"}
    assert display_filter(found[1]) == "tcp.stream eq 1"
    assert capture_of(found[0], "receiver").parts[0].input == "receiver"


def test_connections_of_several_inputs_say_whose_number_theirs_is():
    samples = Path(__file__).resolve().parents[2] / "sample_traces"
    with prepared([samples / "reno-sawtooth.pcap.gz", samples / "reno-ecn.pcap.gz"]) as dataset:
        found = heaviest(dataset, 2)
        assert {each.parts[0].flow for each in found} == {0}
        assert sorted(short_names(dataset, found).values()) == [
            "flow 0 of reno-ecn reno",
            "flow 0 of reno-sawtooth reno",
        ]
        assert title_of(dataset, found[0]).startswith(f"flow 0 of {found[0].parts[0].input}, ")


def test_rows_of_both_directions_are_named_from_the_data(dataset):
    one = capture_of(heaviest(dataset, 1)[0])
    both = rows(dataset, "packets", one, both=True)
    assert both.filter(pl.col("direction") == "a2b")["payload_bytes"].min() == 1448
    assert both.filter(pl.col("direction") == "b2a")["payload_bytes"].max() == 0
    assert both["time"].is_sorted()


def test_cwnd_overlays_kernel_and_inference(dataset):
    parts = series(charts.build("cwnd", dataset))
    assert {"cwnd (tcp_probe)", "cwnd (inferred)", "cwnd bounds (inferred)", "retransmission"} <= set(parts)
    assert parts["slow-start exit"].labels == ("hystart_train",)


def test_time_sequence_has_tcptraces_parts(dataset):
    parts = series(charts.build("time-sequence", dataset))
    assert {"segments", "ACKs", "receiver's window", "SACK blocks", "retransmission"} == set(parts)
    bars = parts["segments"]
    np.testing.assert_allclose(bars.y2 - bars.y, 1.448)
    assert np.all(np.diff(parts["ACKs"].y) >= 0)
    assert len(parts["SACK blocks"].x) == 2
    assert parts["segments"].frame[0] == 1


def test_rtt_and_its_distribution(dataset):
    figure = charts.build("rtt", dataset)
    values = series(figure)["RTT, data to ACK"].y
    share = series(figure, 1)["RTT, data to ACK"]
    assert share.y[-1] == 1.0
    assert np.all(np.diff(share.x) >= 0)
    assert share.x[0] == values.min()
    assert f"{len(values)} samples: min" in figure.subtitle


def test_goodput_stacks_to_the_total_and_counts_each_byte_once(dataset):
    figure = charts.build("throughput", dataset, bin_ns=1_000_000_000)
    parts = series(figure)
    np.testing.assert_allclose(parts["flow 1 cubic"].y2, parts["total"].y)
    # 50 rounds of three segments a second
    assert parts["flow 0 cubic"].y2[1] == pytest.approx(50 * 3 * 1448 * 8 / 1e6)
    index = series(figure, 1)["Jain's index"].y
    assert index[0] == pytest.approx(0.5)
    assert index[4] == pytest.approx(1.0)


def test_one_flow_has_goodput_but_no_fairness(dataset):
    one = heaviest(dataset, 1)
    assert len(charts.build("throughput", dataset, one).panels) == 1
    for name in ("fairness", "convergence"):
        with pytest.raises(NothingMatchedError, match="only one"):
            charts.build(name, dataset, one)


def test_fair_flows_have_index_one_and_converge_in_the_first_bin(dataset):
    assert series(charts.build("fairness", dataset))["mean of all windows"].y == pytest.approx(1.0, abs=0.03)
    figure = charts.build("convergence", dataset, bin_ns=1_000_000_000)
    assert series(figure)["converged"].x.tolist() == [1.0, 1.0, 1.0]


def test_the_queue_shows_delay_above_the_least_and_what_was_lost(dataset):
    figure = charts.build("queue", dataset)
    parts = series(figure)
    assert parts["lost"].details == ("flow 0 cubic",) * 2 + ("flow 1 cubic",) * 2
    delays = np.concatenate([parts["flow 0 cubic"].y, parts["flow 1 cubic"].y])
    assert delays.min() == 0.0
    assert delays.max() < 12
    with pytest.raises(NothingMatchedError, match="both sides"):
        charts.build("queue", dataset, capture_of(heaviest(dataset, 1)[0]))


def test_reordered_packets_are_those_that_came_late(dataset):
    figure = charts.build("reordering", dataset)
    assert len(series(figure)["extent"].x) == 10
    assert "10 of 1,198 packets reordered" in figure.subtitle


def test_slow_start_shows_rounds_until_shortly_after_the_exit(dataset):
    figure = charts.build("slow-start", dataset)
    assert figure.x.high == pytest.approx(1.5, abs=0.05)
    assert {"delay test's limit", "smallest of the round"} <= set(series(figure, 1))
    assert series(figure, 1)["delay test's limit"].y[0] > series(figure, 1)["RTT"].y.min()
    assert len(series(figure)["round trip"].x) > 5


def test_bbr_takes_the_largest_rate_of_ten_rounds(dataset):
    figure = charts.build("bbr", dataset)
    bandwidth = series(figure)["bandwidth (largest of 10 rounds)"].y
    assert np.all(bandwidth >= series(figure)["delivery rate"].y)
    assert [panel.y.label for panel in figure.panels] == ["rate", "gain", "window", "RTT"]


@pytest.mark.parametrize(
    ("cc", "started", "drawn"),
    [
        ("bbr", "startup", True),
        ("unknown", "startup", False),
        (None, "startup", False),
        ("reno", "startup", False),
        ("unknown", "slow_start", True),
    ],
)
def test_phases_of_bbr_are_drawn_of_bbr_alone(tmp_path, cc, started, drawn):
    figure = charts.build("cwnd", make(tmp_path / "made", cc=cc, started=started))
    names = {span.name for span in figure.panels[0].spans}
    assert names == {"congestion avoidance"} | ({started.replace("_", " ")} if drawn else set())


def test_the_chart_of_bbr_says_that_a_sender_is_not_bbr(dataset):
    assert charts.build("bbr", dataset).notes == (
        "This sender is cubic, not BBR: the curves are what was seen of it, not BBR's model.",
    )
    assert _no_bbr("bbr (inferred)") == ()
    assert _no_bbr("")[0].startswith("Nothing shows that this sender is BBR: ")


def test_in_flight_stays_below_cwnd(dataset):
    parts = series(charts.build("inflight", dataset))
    assert np.all(parts["in flight"].y <= parts["cwnd"].y)


def test_deliveries_count_new_bytes_only():
    time = [1, 2, 3, 4]
    base = {"flow": [0] * 4, "time": time, "protocol": ["tcp"] * 4, "direction": ["a2b"] * 4, "ack": [None] * 4}
    again = pl.DataFrame(
        base | {"seq": [1, 101, 1, 201], "payload_bytes": [100] * 4}, schema_overrides={"ack": pl.Int64}
    )
    assert delivered(again)["payload_bytes"].to_list() == [100, 100, 100]
    udp = again.with_columns(seq=pl.lit(None, pl.Int64))
    assert delivered(udp)["payload_bytes"].sum() == 400


def test_deliveries_of_nothing_say_so(dataset):
    nothing = rows(dataset, "packets", capture_of(heaviest(dataset, 1)[0]), both=True).clear()
    with pytest.raises(NothingMatchedError, match="nothing"):
        deliveries(nothing, {0: "a"})


def test_names_of_flows_never_meet_the_columns_of_bins():
    assert unique_names(["total", "x", "x", "start_ns"]) == ["total (2)", "x", "x (2)", "start_ns (2)"]


def test_scales_are_round():
    assert round_scales(100, 1) == [1, 2, 5, 10, 20, 50]
    assert round_scales(1, 1) == []


def test_several_flows_are_overlaid_or_each_have_a_panel(dataset):
    both = heaviest(dataset, 2)
    names = set(series(charts.build("cwnd", dataset, both)))
    assert {"flow 0 cubic (tcp_probe)", "flow 1 cubic (inferred)"} <= names
    panels = charts.build("cwnd", dataset, both, layout="multiples").panels
    assert [panel.title for panel in panels] == ["flow 0 cubic", "flow 1 cubic"]


def test_inference_from_the_receiver_is_left_out(dataset):
    one = heaviest(dataset, 1)[0]
    assert set(samples_of(dataset, one).filter(pl.col("origin") == "inferred")["input"]) == {"sender"}
    assert set(samples_of(dataset, one)["origin"]) == {"inferred", "tcp_probe"}
    apart = Connection(one.sender, one.receiver, one.parts[::-1])
    assert one_view(apart).parts[0].input == "sender"


def test_only_columns_that_are_asked_for_are_read(dataset):
    table = rows(dataset, "packets", heaviest(dataset, 1)[0], columns=("seq",))
    assert table.columns == ["seq", "time"]
