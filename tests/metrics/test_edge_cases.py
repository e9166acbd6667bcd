"""One test for each row of the edge-case matrix of the metrics' reference (no flow, one flow, idle, late, gap)."""

from __future__ import annotations

import math

import pytest

from tests.metrics.frames import SECOND, binned, counters, packets, rtts
from tracetool.errors import UsageError
from tracetool.metrics.bins import bin_bytes
from tracetool.metrics.completion_time import completion_time
from tracetool.metrics.convergence import convergence, convergence_time
from tracetool.metrics.fairness import fairness, jain_index, throughput_ratio
from tracetool.metrics.host_fairness import host_fairness
from tracetool.metrics.intervals import interval
from tracetool.metrics.jain_by_scale import fairness_over_time_scale, jain_by_scale
from tracetool.metrics.latency import latency_under_load
from tracetool.metrics.loss import average_loss_interval, loss, loss_events
from tracetool.metrics.out_of_sequence import CLASSES, classified, out_of_sequence
from tracetool.metrics.queue_drops import drops_from_captures, drops_from_counters
from tracetool.metrics.reorder_density import rfc5236
from tracetool.metrics.reordering import reordering, rfc4737
from tracetool.metrics.repetitions import mean_over_repetitions
from tracetool.metrics.responsiveness import responsiveness
from tracetool.metrics.rtt import rfc6298, rtt_statistics, rtt_timestamp
from tracetool.metrics.slow_start import slow_start_exit
from tracetool.metrics.throughput import throughput
from tracetool.metrics.utilisation import link_utilisation
from tracetool.metrics.variation import cov_by_scale, cov_over_time_scale


def data(second, seq, size=1000, **more):
    return {"time": int(second * SECOND), "seq": seq, "payload_bytes": size} | more


def ack(second, number, **more):
    return {"time": int(second * SECOND), "ack": number, "direction": "b2a"} | more


class TestThroughput:
    def test_no_flow(self):
        assert throughput(packets(), start_ns=0, end_ns=SECOND).is_empty()

    def test_idle_time_lowers_the_rate_over_the_stated_interval(self):
        found = throughput(packets(data(0, 1), data(1, 1001)), start_ns=0, end_ns=4 * SECOND)
        assert found["throughput_bps"][0] == 2000 * 8 / 4
        assert found["active_s"][0] == 1

    def test_retransmissions_are_throughput_not_goodput(self):
        found = throughput(packets(data(0, 1), data(1, 1), data(2, 501)), start_ns=0, end_ns=4 * SECOND)
        assert (found["sent_bytes"][0], found["distinct_bytes"][0], found["goodput_source"][0]) == (
            3000,
            1500,
            "payload",
        )

    def test_goodput_is_what_was_acknowledged_without_syn_and_fin(self):
        rows = packets(
            {"time": 0, "seq": 0, "flags": 2, "ack": None}, data(0, 1), data(1, 1001), ack(1, 1001), ack(2, 2002)
        )
        assert throughput(rows, start_ns=0, end_ns=4 * SECOND)["distinct_bytes"][0] == 2000
        assert throughput(rows, start_ns=0, end_ns=2 * SECOND)["distinct_bytes"][0] == 1000

    def test_empty_interval_is_null(self):
        assert throughput(packets(data(0, 1)), start_ns=0, end_ns=0).is_empty()


class TestCompletionTime:
    def test_unfinished_flow_has_none(self):
        import polars as pl

        flows = pl.DataFrame({"input": ["in"], "flow": [0], "start": [0], "handshake": ["full"]}).cast(
            {"flow": pl.Int32}
        )
        rows = [data(1, 1), ack(2, 1001)]
        found = completion_time(packets(*rows), flows)
        assert (found["value_s"][0], found["reason"][0]) == (None, "not-reached")
        found = completion_time(packets(*rows, data(3, 1001, 0, flags=17)), flows)
        assert (found["value_s"][0], found["reason"][0]) == (2.0, None)


def test_utilisation():
    assert link_utilisation(0, 8, SECOND).value == 0
    assert link_utilisation(1, None, SECOND).reason == "no-input"
    assert link_utilisation(2, 8, SECOND).note == "above-capacity"


class TestJain:
    def test_no_flow_one_flow_all_zero(self):
        assert jain_index([]).reason == "no-flows"
        assert jain_index([7]).note == "trivial"
        assert jain_index([0, 0]).reason == "all-zero"
        assert throughput_ratio([]).reason == "no-flows"
        assert throughput_ratio([7]).reason == "one-flow"
        assert throughput_ratio([0, 7]).value == 0
        assert throughput_ratio([0, 0]).reason == "all-zero"

    def test_a_silent_declared_flow_counts_as_zero_or_leaves(self):
        assert jain_index([3, None]).value == 0.5
        assert jain_index([3, None], absent="drop").value == 1

    def test_table(self):
        import polars as pl

        found = fairness(pl.DataFrame({"bytes": [1, 3]}))
        assert dict(found.select("metric", "value").iter_rows())["throughput_ratio"] == 1 / 3

    def test_late_flow_is_cut_away_by_overlap_and_counted_by_whole(self):
        starts, ends = [0, 10], [40, 41]
        assert (interval(starts, ends).start_ns, interval(starts, ends).end_ns) == (10, 41)
        assert interval(starts, ends, "whole").start_ns == 0
        assert interval([0, 50], [40, 60]) is None
        assert interval([None, 5], [None, 9]).start_ns == 5


class TestScales:
    def test_no_flow_and_one_flow(self):
        assert jain_by_scale(binned(), bin_ns=SECOND, scales_ns=[SECOND])["reason"].to_list() == ["no-flows"]
        assert fairness_over_time_scale([[1, 2]], [1])[1].jain.note == "trivial"

    def test_window_without_anyone_is_left_out_and_one_idle_counts(self):
        found = fairness_over_time_scale([[1, 0, 2], [1, 0, 0]], [1])[1]
        assert (found.jain.value, found.coverage) == (0.75, 2 / 3)

    def test_window_that_touches_a_gap_is_left_out(self):
        found = fairness_over_time_scale([[1, None, 1], [1, 1, 3]], [1])[1]
        assert (found.windows, found.coverage) == (3, 2 / 3)
        assert math.isclose(found.jain.value, (1 + 0.8) / 2)

    def test_no_whole_window(self):
        assert fairness_over_time_scale([[1], [1]], [2])[2].jain.reason == "insufficient-windows"

    def test_late_flow_pulls_short_scales_down(self):
        flows = [[2] * 2 + [1] * 14, [0] * 2 + [1] * 14]
        found = fairness_over_time_scale(flows, [2, 16])
        assert found[2].jain.value == (0.5 + 7) / 8
        assert found[16].jain.value > found[2].jain.value


class TestVariation:
    def test_no_flow(self):
        assert cov_by_scale(binned(), bin_ns=SECOND, scales_ns=[SECOND])["reason"].to_list() == ["no-flows"]

    def test_idle_window_counts_and_gap_does_not(self):
        assert math.isclose(cov_over_time_scale([1, 1, 1, 0], [1])[1].value, 3**-0.5)
        assert cov_over_time_scale([1, 1, 1, None], [1])[1].value == 0
        assert cov_over_time_scale([1, None], [1])[1].reason == "insufficient-windows"


class TestConvergence:
    def test_no_flow_and_one_flow(self):
        assert set(convergence(binned())["reason"]) == {"no-flows"}
        assert set(convergence(binned(a=[1]))["reason"]) == {"one-flow"}

    def test_idle_flow_is_unfair_and_gap_cannot_qualify(self):
        assert convergence(binned(a=[1, 1], b=[0, 1]), bin_ns=SECOND)["value"][0] == 2
        assert convergence_time([None, 1.0], 5).value == 10

    def test_flow_that_ends_first_is_censored_at_its_end(self):
        found = convergence(binned(a=[9, 9], b=[1, 1]), bin_ns=SECOND, observed_ns=2_500_000_000)
        assert found.row(0) == ("jain", None, "not-reached", 2.5)

    def test_repetitions_that_never_converge_are_not_averaged_in(self):
        found = mean_over_repetitions([10, None], censored_at=[None, 50], reasons=[None, "not-reached"])
        assert (found.mean.value, found.n_defined, found.n) == (10, 1, 2)


class TestQueueDrops:
    def test_no_arrivals(self):
        found = drops_from_counters(counters((0, 0, 0, 0, 0), (1, 0, 0, 0, 0)))
        assert found["reason"][0] == "all-zero"
        empty = packets().with_columns(src=None, dst=None, time_ns=0)
        assert drops_from_captures(empty, empty)["reason"][0] == "all-zero"

    def test_reset_is_no_number_and_a_certain_wrap_is(self):
        found = drops_from_counters(counters((0, 900, 9, 5, 0), (1, 100, 1, 0, 0)))
        assert (found["value"][0], found["reason"][0]) == (None, "no-input")
        found = drops_from_counters(counters((0, 900, 100, 2**32 - 1, 0), (1, 1900, 109, 0, 0)))
        assert found["value"][0] == 0.1

    def test_interval_takes_the_readings_around_it(self):
        rows = [(t * SECOND, 100 * t, 10 * t, t // 5, 0) for t in range(11)]
        found = drops_from_counters(counters(*rows), start_ns=int(4.5 * SECOND), end_ns=int(5.5 * SECOND))
        assert (found["dropped"][0], found["forwarded"][0]) == (1, 20)

    def test_packets_still_queued_at_the_end_are_no_drops(self):
        rows = packets(*(data(k, 1 + 1000 * k, ip_id=k) for k in range(5))).with_columns(src=0, dst=1, time_ns=0)
        rows = rows.with_columns(time_ns="frame")
        found = drops_from_captures(rows, rows.filter(rows["ip_id"].is_in([0, 2])))
        assert (found["arrived"][0], found["dropped"][0]) == (3, 1)


class TestLoss:
    def test_nothing_sent(self):
        assert loss(packets()).is_empty()
        assert loss_events([], rtt=1, packets=0).loss_rate.reason == "all-zero"

    def test_no_loss(self):
        assert loss_events([], rtt=1, packets=10).event_rate.value == 0
        assert average_loss_interval([100]).mean.value is None

    def test_retransmission_and_dsack(self):
        rows = [data(0, 1), data(1, 1001), data(2, 1), ack(3, 2001, sack=[1, 1001])]
        found = loss(packets(*rows), rtt_ns=SECOND).row(0, named=True)
        assert (found["segments"], found["retransmitted"], found["spurious"]) == (3, 1, 1)
        assert (found["estimate"], found["evidence"], found["events"]) == (0, "dsack", 1)

    def test_keep_alive_is_no_loss(self):
        assert loss(packets(data(0, 1), data(9, 1000, 1)))["retransmitted"][0] == 0


class TestRtt:
    def test_no_samples(self):
        assert rtt_statistics(rtts()).is_empty()
        assert rfc6298([]) is None

    def test_no_timestamps(self):
        assert rtt_timestamp(packets(data(0, 1), ack(1, 1001))).is_empty()

    def test_one_sample(self):
        assert rtt_statistics(rtts((0, 5)))["p99_ns"][0] == 5


class TestLatency:
    def test_idle_only(self):
        found = latency_under_load(rtts((0, 10)), load_start_ns=5, load_end_ns=9)
        assert found["reason"][0] == "no-input"

    def test_no_idle_phase_is_labelled(self):
        found = latency_under_load(rtts((6, 10), (7, 30)), load_start_ns=5, load_end_ns=9)
        assert (found["baseline"][0], found["mean_increase_ns"][0]) == ("min", 10)

    def test_both(self):
        found = latency_under_load(rtts((0, 10), (7, 30)), load_start_ns=5, load_end_ns=9)
        assert (found["baseline"][0], found["mean_increase_ns"][0]) == ("idle", 20)


class TestResponsiveness:
    def test_no_flow(self):
        assert responsiveness(rtts(), load_start_ns=0, load_end_ns=9)["reason"][0] == "no-flows"

    def test_handshakes_alone_are_not_enough_and_tls_is_never_zero(self):
        found = responsiveness(rtts((5, 20_000_000, "handshake"), (6, 50_000_000)), load_start_ns=0, load_end_ns=9)
        assert (found["foreign"][0], found["loaded"][0], found["rpm"][0]) == (3000, 1200, 2100)
        assert responsiveness(rtts((6, 50_000_000)), load_start_ns=0, load_end_ns=9)["reason"][0] == "no-input"


def test_host_fairness():
    assert host_fairness({}).ratio_max_over_min.reason == "no-flows"
    assert host_fairness({"a": [1]}).ratio_max_over_min.reason == "one-flow"
    assert host_fairness({"a": [1], "b": [0]}).ratio_max_over_min.reason == "starved"


class TestReordering:
    def test_nothing(self):
        assert rfc4737([]).ratio.reason == "no-flows"
        assert rfc5236([]).mean_displacement.reason == "no-flows"
        assert reordering(packets()).is_empty()

    def test_first_packet_is_in_order_and_loss_is_no_reordering(self):
        assert rfc4737([7, 9, 12]).ratio.value == 0

    def test_duplicates_are_removed_first(self):
        assert rfc4737([1, 2, 2, 1, 3]).ratio.value == 0

    def test_retransmission_is_no_reordering(self):
        late = [data(0, 1, tsval=10), data(1, 2001, tsval=12), data(2, 3001, tsval=13)]
        original = reordering(packets(*late, data(3, 1001, tsval=11)))
        resent = reordering(packets(*late, data(3, 1001, tsval=30)))
        assert (original["reordered"][0], resent["reordered"][0]) == (1, 0)
        assert (original["max_extent"][0], original["mean_late_ns"][0]) == (2, 2 * SECOND)

    def test_without_timestamps_only_what_comes_within_a_round_trip_counts(self):
        rows = packets(data(0, 1), data(1, 2001), data(1.5, 1001))
        assert reordering(rows, rtt_ns=SECOND)["reordered"][0] == 1
        assert reordering(rows)["reordered"][0] == 0


class TestOutOfSequence:
    def test_nothing(self):
        assert out_of_sequence(packets()).is_empty()

    def test_in_sequence_after_idle(self):
        found = out_of_sequence(packets(data(0, 1), data(100, 1001)))
        assert found.select(CLASSES).row(0) == (0,) * len(CLASSES)

    @pytest.mark.parametrize(
        ("rows", "expected"),
        [
            ([data(0, 1, ip_id=7), data(0.001, 1, ip_id=7)], "network-duplicate"),
            ([data(0, 1, ip_id=7), ack(0.1, 1001), data(0.4, 1, ip_id=9)], "unneeded-retransmission"),
            ([data(0, 1), data(0, 1001), *(ack(0.1, 1) for _ in range(4)), data(0.2, 1)], "retransmission-fast"),
            ([data(0, 1), data(2, 1)], "retransmission-timeout"),
            ([data(0, 1), data(0.1, 1)], "unclassified"),
            ([data(0, 1, tsval=5), data(0.1, 2001, tsval=9), data(0.102, 1001, tsval=8)], "reordered"),
            ([data(0, 1), data(0.1, 2001), data(0.3, 1001)], "unknown"),
        ],
    )
    def test_each_class_from_packets(self, rows, expected):
        assert classified(packets(*rows))["class"].to_list() == [expected]


def test_slow_start():
    assert slow_start_exit([]) is None
    assert slow_start_exit([(0, 10, 2147483647), (1, 20, None), (2, 40, 0)]) is None


def test_bins_are_half_open_and_drop_the_tail():
    assert bin_bytes([0, 9, 10, 24], [1, 2, 4, 8], start_ns=0, end_ns=25, bin_ns=10) == [3, 4]
    with pytest.raises(ValueError, match="more than 0"):
        bin_bytes([], [], start_ns=0, end_ns=1, bin_ns=0)


def test_a_wrong_clock_cannot_ask_for_endless_bins():
    with pytest.raises(UsageError, match="expected at most"):
        bin_bytes([], [], start_ns=0, end_ns=2**63 - 1, bin_ns=10**9)
