"""Slow starts and recoveries as a kernel log shows them: made logs, whose every number is known."""

from __future__ import annotations

from types import SimpleNamespace

import polars as pl
import pytest

from tracetool.reconstruct.logs import from_samples

MS = 1_000_000
MSS, RTT = 1000, 40
KINDS = {
    "cwnd_segments": pl.Int64, "ssthresh_segments": pl.Int64, "srtt_ns": pl.Int64, "min_rtt_ns": pl.Int64,
    "snd_una": pl.Int64, "snd_nxt": pl.Int64, "mss_bytes": pl.Int64, "ca_state": pl.String,
}  # fmt: skip


def told(*stretches):
    """Tables of a log, a sample each millisecond: (ms, cwnd, ssthresh, segments acknowledged in each, state)."""
    rows, una = [], 0
    for length, cwnd, ssthresh, acked, state in stretches:
        for _ in range(length):
            una += acked * MSS
            rows.append((cwnd, ssthresh, RTT * MS, RTT * MS, una, una + cwnd * MSS, MSS, state))
    frame = pl.DataFrame(rows, KINDS, orient="row").with_columns(
        pl.int_range(pl.len()).mul(MS).cast(pl.Datetime("ns", "UTC")).alias("time"),
        flow=pl.lit(0, pl.Int32), direction=pl.lit("a2b"), origin=pl.lit("tcp_probe"),
    )  # fmt: skip
    found = from_samples(SimpleNamespace(read=lambda _table, _inputs: frame), "made")
    return found["slow_starts"].to_dicts(), found["recoveries"].to_dicts()


def test_an_exit_is_held_against_the_highest_rate_before_the_next_reduction():
    (first,), _ = told(
        (100, 40, None, 1, "open"),
        (500, 40, 40, 1, "open"),  # what the window gives: 40 segments a round trip
        (500, 160, 40, 4, "open"),
        (50, 80, 80, 0, "recovery"),
        (500, 400, 80, 10, "open"),  # on another path
    )
    assert first["bdp_segments"] == pytest.approx(160)
    assert (first["exit_to_bdp"], first["verdict"]) == (pytest.approx(0.25), "too_early")


def test_what_a_recovery_held_back_counts_for_no_rate():
    """``snd_una`` stands still in a recovery that the exit began, and then leaps over all that came meanwhile."""
    (first,), (recovery,) = told(
        (100, 80, None, 1, "open"), (400, 40, 40, 0, "recovery"), (1, 40, 40, 2000, "open"), (500, 40, 40, 1, "open")
    )
    assert (first["exit_cause"], recovery["kind"]) == ("loss", "fast")
    assert first["bdp_segments"] == pytest.approx(40)
    assert first["verdict"] == "reasonable"


def test_each_timeout_begins_a_slow_start_that_ends_where_the_window_reaches_the_threshold():
    timeout = (5, 1, 20, 1, "loss"), (20, 10, 20, 1, "open"), (15, 20, 20, 1, "open")
    starts, recoveries = told((40, 30, 20, 1, "open"), *(3 * timeout), (5, 1, 20, 1, "loss"))
    assert [row["kind"] for row in starts] == ["rto"] * 4
    assert [row["start"].microsecond // 1000 for row in starts] == [40, 80, 120, 160]
    assert [row["end"] and row["end"].microsecond // 1000 for row in starts] == [65, 105, 145, None]
    assert [row["exit_cause"] for row in starts] == [None, None, None, "none"]
    assert [row["verdict"] for row in starts][3] == "no_exit"
    assert [row["end"] is None for row in recoveries] == [False, False, False, True]


def test_a_timeout_ends_the_slow_start_after_the_one_before():
    starts, recoveries = told((40, 30, 20, 1, "open"), *(2 * ((5, 1, 20, 1, "loss"), (20, 10, 20, 1, "open"))))
    assert [row["start"].microsecond // 1000 for row in starts] == [40, 65]
    assert [(row["exit_cause"], row["end"] and row["end"].microsecond // 1000) for row in starts] == [
        ("rto", 65), ("none", None),
    ]  # fmt: skip
    assert len(recoveries) == 2


def test_a_polled_window_that_falls_again_before_it_is_back_ends_one_recovery_and_begins_another():
    _, recoveries = told((40, 30, 20, 1, None), *(2 * ((60, 1, 20, 1, None), (20, 10, 20, 1, None))))
    times = [(row["start"].microsecond // 1000, row["end"] and row["end"].microsecond // 1000) for row in recoveries]
    assert times == [(40, 120), (120, None)]


@pytest.mark.parametrize("states", [(None, None), ("loss", "open")])
def test_a_log_of_nothing_but_timeouts_takes_no_longer_for_each(states):
    """Else so many would take hours: each has the samples up to the next one to look at."""
    starts, recoveries = told(*(60_000 * ((1, 9, 1 << 20, 1, states[1]), (1, 1, 1 << 20, 1, states[0]))))
    assert (len(starts), len(recoveries)) == ((60_001, 60_000) if states[0] else (3_001, 3_000))


@pytest.mark.parametrize(("state", "cause"), [("recovery", "loss"), ("loss", "rto"), ("cwr", "ecn")])
def test_the_reduction_that_ended_a_slow_start_is_its_cause(state, cause):
    starts, _ = told((100, 80, None, 1, "open"), (50, 40, 40, 1, state), (100, 40, 40, 1, "open"))
    assert starts[0]["exit_cause"] == cause
    assert starts[0]["cwnd_exit_segments"] == 80


def test_a_threshold_that_is_set_without_a_reduction_is_hystarts():
    starts, recoveries = told((100, 80, None, 1, "open"), (100, 80, 80, 1, "open"))
    assert starts[0]["exit_cause"] in {"hystart_train", "hystart_delay"}
    assert recoveries == []
