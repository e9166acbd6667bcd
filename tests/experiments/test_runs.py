"""From hand-made captures to cells: which flows count, which source fills table 3, what is not averaged."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

from tests.experiments.captures import flow, run
from tracetool.errors import InputError, NothingMatchedError, UsageError
from tracetool.experiments import campaign as campaigns
from tracetool.experiments.campaign import measure_experiment
from tracetool.experiments.cells import long_table, parts
from tracetool.experiments.contenders import contenders
from tracetool.experiments.datasets import dataset_sharing
from tracetool.experiments.layout import layout, name_levels
from tracetool.experiments.run import RunResult
from tracetool.experiments.setting import Setting, rate_bps, with_scenario
from tracetool.experiments.sharing import SharingOptions, sharing
from tracetool.ingest import ingest

RATE = Setting(rate_bps=800_000)


def values(campaign, number=0):
    return {value.table: value for value in campaign.results[number].values if value.scale is None}


def measured(path, **options):
    return measure_experiment(path, **options)


class TestLayout:
    def test_levels_are_guessed_by_their_values(self):
        assert name_levels([("16ms", "cubic", "1")]) == [((("delay", "16ms"), ("protocol", "cubic")), "1")]
        assert name_levels([("reno", "1pct")]) == [((("protocol", "reno"), ("loss", "1pct")), "1")]
        assert name_levels([("rtt-20ms", "8Mbit", "bbr", "aqm", "2")]) == [
            ((("rtt", "20ms"), ("rate", "8Mbit"), ("protocol", "bbr"), ("level4", "aqm")), "2")
        ]
        assert name_levels([()]) == [((), "1")]
        assert name_levels([("scale-2", "x")]) == [((("scale_level", "2"), ("protocol", "x")), "1")]

    def test_given_names_must_fit(self):
        assert name_levels([("a", "7")], ["queue", "repetition"]) == [((("queue", "a"),), "7")]
        with pytest.raises(UsageError, match="expected 1"):
            name_levels([("a", "7")], ["queue"])

    def test_no_run_is_an_error(self, tmp_path):
        (tmp_path / "16ms").mkdir()
        with pytest.raises(InputError, match="no run there"):
            layout(tmp_path)

    @pytest.mark.parametrize(("text", "bps"), [("8mbit", 8_000_000), ("1.5 Gbit/s", 1_500_000_000), ("64kbps", 64_000)])
    def test_rates(self, text, bps):
        assert rate_bps(text) == bps

    @pytest.mark.parametrize("text", ["fast", "0mbit", "9e99", float("inf"), -1, True])
    def test_wrong_rate(self, text):
        with pytest.raises(UsageError, match="expected a number with a unit"):
            rate_bps(text)

    def test_scenario_with_odd_values_says_nothing(self, tmp_path):
        (tmp_path / "scenario.json").write_text(
            '{"rate_mbit": Infinity, "rtt_ms": "x", "queue_bytes": true, "flows": 3}'
        )
        assert with_scenario(Setting(), tmp_path) == Setting()

    def test_manifest_names_runs_roles_and_rate(self, tmp_path):
        run(tmp_path / "first", flow(1, 0, 10, 20), flow(2, 0, 10, 20))
        (tmp_path / "experiment.toml").write_text(
            'title = "Two"\n[setting]\n"Queue size" = "10 packets"\n[bottleneck]\nrate = "1mbit"\nlayer = "ip"\n'
            'roles = { old = 5201, new = 5202, silent = 5203 }\n[[run]]\npath = "first"\nprotocol = "reno"\n'
        )
        campaign = measured(tmp_path)
        assert campaign.layout.manifest.title == "Two"
        assert [one["group"] for one in campaign.results[0].flows] == ["old", "new", "silent"]
        assert values(campaign)["jain"].value == pytest.approx(2 / 3)
        assert values(campaign)["link_utilisation"].value == pytest.approx(2 * 20 * 1040 * 8 / 1e6, rel=0.01)

    @pytest.mark.parametrize(
        "text", ["title = ", "[bottleneck]\nlayer = 'cable'", "speed = 1", "[bottleneck]\nflows = 'x'"]
    )
    def test_wrong_manifest(self, tmp_path, text):
        (tmp_path / "experiment.toml").write_text(text)
        with pytest.raises((InputError, UsageError), match="expected"):
            layout(tmp_path)


class TestRun:
    def test_shares_rates_and_drops(self, tmp_path):
        run(tmp_path / "16ms/reno/1", flow(1, 0, 20, 30), flow(2, 5, 15, 10), dropped=range(100, 110))
        found = values(measured(tmp_path, setting=RATE))
        total = 6 + 20 * 30 + 15 * 10 - 2  # without the two SYN/ACKs, which travel back
        assert found["queue_drop_ratio"].value == pytest.approx(10 / total)
        assert found["queue_drop_ratio"].label == "endpoint-captures"
        assert found["throughput_ratio"].value == pytest.approx(1 / 3, rel=0.01)
        assert found["link_utilisation"].value == pytest.approx(40 * 1054 * 8 / 800_000, rel=0.02)
        assert (found["convergence_time"].value, found["convergence_time"].reason) == (None, "not-reached")

    def test_sender_alone_gives_an_estimate(self, tmp_path):
        run(tmp_path / "16ms/reno/1", flow(1, 0, 10, 30), flow(2, 0, 10, 10))
        (tmp_path / "16ms/reno/1/receiver.pcap").unlink()
        found = values(measured(tmp_path))
        assert (found["queue_drop_ratio"].label, found["queue_drop_ratio"].value) == ("sender-capture", 0)
        assert found["link_utilisation"].reason == "no-input"

    def test_router_counters_go_first(self, tmp_path):
        run(tmp_path / "16ms/reno/1", flow(1, 0, 10, 30), flow(2, 0, 10, 10), dropped=[50])
        poll = (
            "{time}\nqdisc pfifo 8001: dev e0 root refcnt 2 limit 9p\n"
            " Sent {n}000 bytes {n} pkt (dropped {d}, overlimits 0 requeues 0)\n"
        )
        text = "".join(poll.format(time=1_700_000_000 + t, n=100 * t, d=25 * t) for t in range(12))
        (tmp_path / "16ms/reno/1/queue.txt").write_text(text)
        found = values(measured(tmp_path))["queue_drop_ratio"]
        assert (found.value, found.label) == (0.2, "router-counters")

    def test_captures_right_at_the_queue_fill_table_three(self, tmp_path):
        run(tmp_path / "16ms/reno/1", flow(1, 0, 10, 30), flow(2, 0, 10, 10), dropped=[50])
        folder = tmp_path / "16ms/reno/1"
        (folder / "sender.pcap").rename(folder / "queue-in.pcap")
        (folder / "receiver.pcap").rename(folder / "queue-out.pcap")
        found = values(measured(tmp_path))
        assert found["queue_drop_ratio"].label == "two-captures"
        assert found["queue_drop_ratio"].value == pytest.approx(1 / 404)
        assert found["rtt_mean"].reason == "no-input"

    def test_what_contradicts_the_setting_is_warned_of(self, tmp_path):
        run(tmp_path / "16ms/reno/1", flow(1, 0, 10, 30), flow(2, 0, 10, 10))
        (tmp_path / "16ms/reno/1/scenario.json").write_text('{"rate_mbit": 0.1, "flows": [1, 2, 3]}')
        warnings = " ".join(measured(tmp_path).results[0].warnings)
        assert "rate or its layer" in warnings
        assert "3 flows are declared, 2 carry data" in warnings

    def test_a_run_that_fails_leaves_the_others(self, tmp_path):
        run(tmp_path / "16ms/reno/1", flow(1, 0, 10, 30), flow(2, 0, 10, 10))
        run(tmp_path / "16ms/reno/2", flow(1, 0, 1, 2))
        campaign = measured(tmp_path)
        found, warnings = parts(campaign)
        assert campaign.results[1].error is not None
        assert warnings == [f"16ms/reno/2: {campaign.results[1].error}"]
        assert [cell.n for cell in found[0].cells.values() if cell.table == "jain"] == [1]

    def test_kept_results_are_the_same_and_a_changed_file_is_measured_again(self, tmp_path):
        run(tmp_path / "x/16ms/reno/1", flow(1, 0, 10, 30), flow(2, 0, 10, 10))
        first = measured(tmp_path / "x", cache_folder=tmp_path / "kept")
        (kept,) = (tmp_path / "kept").iterdir()
        assert measured(tmp_path / "x", cache_folder=tmp_path / "kept").results == first.results
        kept.write_text("{")
        assert measured(tmp_path / "x", cache_folder=tmp_path / "kept").results == first.results
        (tmp_path / "x/16ms/reno/1/receiver.pcap").unlink()
        again = measured(tmp_path / "x", cache_folder=tmp_path / "kept")
        assert values(again)["queue_drop_ratio"].label == "sender-capture"

    def test_an_interruption_leaves_no_part_of_a_kept_result(self, tmp_path, monkeypatch):
        def interrupted(_path, _target):
            raise KeyboardInterrupt

        run(tmp_path / "x/16ms/reno/1", flow(1, 0, 10, 30), flow(2, 0, 10, 10))
        monkeypatch.setattr(Path, "replace", interrupted)
        with pytest.raises(KeyboardInterrupt):
            campaigns._store(tmp_path / "kept" / "one.json", RunResult())
        assert not list((tmp_path / "kept").iterdir())


class TestCells:
    def test_unequal_repetitions_and_missing_cells(self, tmp_path):
        for where in ("16ms/reno/1", "16ms/reno/2", "42ms/bbr/1"):
            run(tmp_path / where, flow(1, 0, 10, 30), flow(2, 0, 10, 10))
        (part,), warnings = parts(measured(tmp_path))
        assert warnings == []
        assert part.values == (("16ms", "42ms"), ("bbr", "reno"))
        assert part.cells[("jain", ("16ms", "reno"), None)].n == 2
        assert ("jain", ("16ms", "bbr"), None) not in part.cells
        table = long_table([part]).filter(pl.col("table") == "jain", pl.col("protocol") == "reno")
        assert table["repetition"].to_list() == ["1", "2", ""]
        assert table["value"][2] == pytest.approx(table["value"][:2].mean())

    def test_repetitions_of_different_length_are_not_averaged_silently(self, tmp_path):
        run(tmp_path / "16ms/reno/1", flow(1, 0, 10, 30), flow(2, 0, 10, 10))
        run(tmp_path / "16ms/reno/2", flow(1, 0, 20, 30), flow(2, 0, 20, 10))
        campaign = measured(tmp_path)
        (part,), (warning,) = parts(campaign)
        cell = part.cells[("jain", ("16ms", "reno"), None)]
        assert (cell.value, cell.reason) == (None, "ambiguous")
        assert "not averaged" in warning
        (part,), (warning,) = parts(campaign, average_anyway=True)
        assert part.cells[("jain", ("16ms", "reno"), None)].n_defined == 2
        assert "averaged all the same" in warning


class TestCaptures:
    def frames(self, tmp_path, *flows):
        run(tmp_path / "run", *flows)
        return ingest([tmp_path / "run" / "sender.pcap", tmp_path / "run" / "receiver.pcap"], tmp_path / "data")

    def test_a_connection_in_two_captures_is_measured_once(self, tmp_path):
        found = dataset_sharing(self.frames(tmp_path, flow(1, 0, 10, 30), flow(2, 0, 10, 10)))
        assert len(found.flows) == 2
        assert found.flows["share"].to_list() == pytest.approx([0.75, 0.25], rel=0.01)

    def test_interval_and_stated_limits(self, tmp_path):
        dataset = self.frames(tmp_path, flow(1, 0, 20, 30), flow(2, 5, 15, 30))
        overlap = dataset_sharing(dataset)
        whole = dataset_sharing(dataset, SharingOptions(interval="whole"))
        stated = dataset_sharing(dataset, SharingOptions(from_s=0, to_s=5))
        assert overlap.summary["value"][0] == pytest.approx(1, abs=1e-6)
        assert whole.summary["value"][0] < 0.99
        assert stated.summary["value"][0] == pytest.approx(0.5, abs=1e-3)

    def test_flows_that_never_overlap(self, tmp_path):
        dataset = self.frames(tmp_path, flow(1, 0, 5, 30), flow(2, 10, 5, 30))
        with pytest.raises(NothingMatchedError, match="never overlap"):
            dataset_sharing(dataset)

    def test_small_flows_are_left_out_and_groups_named(self, tmp_path):
        dataset = self.frames(tmp_path, flow(1, 0, 10, 30), flow(2, 0, 10, 10), flow(3, 0, 1, 2))
        packets, flows = (dataset.read(name).filter(pl.col("input") == "sender") for name in ("packets", "flows"))
        found = sharing(packets, flows, SharingOptions(group="port", groups={"5201": "old"}))
        assert found.flows["group"].to_list() == ["old", "5202"]
        assert "1 flow of at most 14600 bytes" in found.notes[0]
        assert found.groups["ratio"].to_list() == pytest.approx([1, 3], rel=0.01)

    def test_nothing_to_compare(self, tmp_path):
        dataset = self.frames(tmp_path, flow(1, 0, 1, 2))
        with pytest.raises(NothingMatchedError):
            dataset_sharing(dataset)
        with pytest.raises(UsageError, match="group"):
            contenders(dataset.read("packets"), dataset.read("flows"), group="colour")
