"""What the plot commands take: several flows, layouts, the zoom into slow start, router counters, two captures."""

from __future__ import annotations

import csv
import io
from pathlib import Path

import pytest

from tests.report.made import make

SAMPLES = Path(__file__).resolve().parents[2] / "sample_traces"
POLL = """\
{time:.3f}
qdisc htb 1: dev eth1 root refcnt 2 r2q 10 default 0x10 direct_packets_stat 0 direct_qlen 1000
 Sent {sent} bytes {packets} pkt (dropped {dropped}, overlimits 12 requeues 0)
 backlog {backlog}b 8p requeues 0
qdisc fq_codel 10: dev eth1 parent 1:10 limit 10240p flows 1024 quantum 1514 target 5ms interval 100ms ecn
 Sent {sent} bytes {packets} pkt (dropped {dropped}, overlimits 0 requeues 0)
 backlog {backlog}b 8p requeues 0
  maxpacket 1514 drop_overlimit 0 new_flow_count 1 ecn_mark {marked}
"""


@pytest.fixture(scope="session")
def dataset(tmp_path_factory):
    return make(tmp_path_factory.mktemp("plotted") / "dataset").path


def names(text: str, panel: int = 0) -> set[str]:
    return {row["name"] for row in csv.DictReader(io.StringIO(text)) if row["panel"] == str(panel)}


def panels(text: str) -> int:
    return 1 + max(int(row["panel"]) for row in csv.DictReader(io.StringIO(text)))


def test_flows_by_name_and_by_weight_are_overlaid(run, dataset):
    code, by_name, _ = run("plot-cwnd", dataset, "--flow", 0, "--flow", 1, "--to", "csv")
    assert code == 0
    assert {"flow 0 cubic (tcp_probe)", "flow 1 cubic (tcp_probe)"} <= names(by_name)
    assert run("plot-cwnd", dataset, "--flows", 2, "--to", "csv")[1] == by_name
    assert "cwnd (tcp_probe)" in names(run("plot-cwnd", dataset, "--flows", 1, "--to", "csv")[1])


def test_a_flow_named_twice_is_drawn_once(run, dataset):
    once = run("plot-cwnd", dataset, "--flow", 1, "--to", "csv")[1]
    assert run("plot-cwnd", dataset, "--flow", 1, "--flow", "stream 1", "--to", "csv")[1] == once


def test_multiples_give_each_flow_a_panel(run, dataset):
    out = run("plot-cwnd", dataset, "--flows", 2, "--layout", "multiples", "--to", "csv")[1]
    assert panels(out) == 2
    assert "cwnd (tcp_probe)" in names(out, 1)


def test_charts_that_compare_take_chosen_flows(run, dataset):
    both = run("plot-throughput", dataset, "--flow", 1, "--flow", 0, "--to", "csv")[1]
    assert {"flow 0 cubic", "flow 1 cubic", "total"} <= names(both)
    assert names(run("plot-throughput", dataset, "--flow", 1, "--to", "csv")[1]) == {"flow 1 cubic"}


def test_a_chart_of_one_flow_refuses_several(run, dataset):
    code, out, err = run("plot-time-sequence", dataset, "--flow", 0, "--flow", 1)
    assert (code, out) == (2, "")
    assert err == "tracetool: the chart time-sequence draws one flow, not 2\n"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--flow", "0", "--flows", "2"), "exclude each other"),
        (("--from", "3", "--until", "2"), "--from 3 is not before --until 2"),
        (("--flows", "2", "--slow-start"), "draws one flow"),
        (("--layout", "pie"), "pie"),
    ],
)
def test_words_that_make_no_sense(run, dataset, words, said):
    code, out, err = run("plot-cwnd", dataset, *words)
    assert (code, out) == (2, "")
    assert said in err


def test_layout_belongs_to_cwnd(run, dataset):
    assert run("plot-rtt", dataset, "--layout", "overlay")[0] == 2


@pytest.mark.parametrize("chart", ["cwnd", "rtt", "time-sequence", "throughput", "bbr"])
@pytest.mark.parametrize("ends", [("--from", "100"), ("--until", "-1")])
def test_a_time_outside_of_the_flow_is_told_with_its_range(run, dataset, chart, ends):
    code, out, err = run(f"plot-{chart}", dataset, *ends)
    assert (code, out) == (5, "")
    assert err.count("\n") == 1
    assert "the chart runs from " in err


def test_slow_start_zooms_into_slow_start(run, dataset):
    code, zoomed, _ = run("plot-cwnd", dataset, "--slow-start", "--ascii")
    assert code == 0
    assert zoomed == run("plot-slow-start", dataset, "--ascii")[1]
    assert "round trip" in zoomed
    assert "delay test's limit" in zoomed


def test_the_sequence_axis_fits_the_time_shown(run, dataset):
    out = run("plot-time-sequence", dataset, "--from", 4, "--until", 4.2, "--to", "csv")[1]
    rows = [row for row in csv.DictReader(io.StringIO(out)) if row["name"] == "segments"]
    assert rows
    assert all(4 <= float(row["x"]) <= 4.2 for row in rows)
    drawn = run("plot-time-sequence", dataset, "--from", 4, "--until", 4.2, "--ascii")[1]
    lowest = [float(line.split()[0]) for line in drawn.splitlines() if " + " in line[:12] and line[0] == " "][-1]
    assert lowest > 0.9 * min(float(row["y"]) for row in rows)


def test_a_queue_by_a_routers_counters(run, tmp_path):
    polls = [
        {"time": 1796026431 + k, "sent": 125_000 * k, "packets": 100 * k, "dropped": 3 * k, "backlog": 1500 * k}
        | {"marked": 2 * k}
        for k in range(5)
    ]
    log = tmp_path / "router.txt"
    log.write_text("".join(POLL.format(**poll) for poll in polls))
    code, out, err = run("plot-queue", log, "--to", "csv", "-q")
    assert (code, err) == (0, "")
    rows = list(csv.DictReader(io.StringIO(out)))
    got = {name: [float(row["y"]) for row in rows if row["panel"] == str(p) and row["name"] == name]
           for p, name in ((0, "fq_codel 10:"), (1, "dropped"), (1, "marked CE"))}  # fmt: skip
    assert got == {"fq_codel 10:": [0, 1.5, 3, 4.5, 6], "dropped": [3] * 5, "marked CE": [2] * 5}
    assert [float(row["y"]) for row in rows if row["panel"] == "2"] == [1.0] * 5
    assert "htb" not in out  # the root repeats what its child counts
    text = run("plot-queue", log, "--ascii", "-q")[1]
    assert "fq_codel 10: 12 of 412 packets dropped (2.913%), 8 marked" in text


def test_a_queue_by_two_captures(run):
    both = [SAMPLES / f"cubic-hystart-train{end}.pcap.gz" for end in ("", "-receiver")]
    code, out, _ = run("plot-queue", *both, "--ascii", "-q")
    assert code == 0
    assert "queueing delay between two captures" in out


def test_a_queue_by_one_capture_is_none(run, dataset):
    code, out, err = run("plot-queue", SAMPLES / "reno-rto.pcap.gz", "-q")
    assert (code, out) == (5, "")
    assert "a router's counters" in err
