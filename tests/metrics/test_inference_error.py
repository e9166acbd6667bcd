"""The clock offset is found, rows of the same moment meet, and errors are counted as a person would."""

from __future__ import annotations

import polars as pl
import pytest

from tracetool.metrics.inference_error import aligned, clock_offset, inference_error, sequence_shift

NS = pl.Datetime("ns", "UTC")


def samples(times_ns, **columns) -> pl.DataFrame:
    base = {
        "time": pl.Series(times_ns, dtype=pl.Int64).cast(NS),
        **{
            name: pl.Series([None] * len(times_ns), dtype=pl.Int64)
            for name in (
                "snd_una",
                "cwnd_segments",
                "cwnd_low_segments",
                "cwnd_high_segments",
                "ssthresh_segments",
                "srtt_ns",
                "min_rtt_ns",
                "inflight_bytes",
                "mss_bytes",
            )
        },
    }
    return pl.DataFrame(base | {name: pl.Series(values, dtype=pl.Int64) for name, values in columns.items()})


TIMES = [1_000_000 * i for i in range(20)]


def test_the_offset_is_found_though_the_log_counts_from_another_number() -> None:
    capture = samples(TIMES, snd_una=[100 * i for i in range(20)])
    log = samples([t + 7_000_000 for t in TIMES[5:]], snd_una=[100 * i for i in range(15)])
    shift = sequence_shift((2**32 - 100 + 500) % 2**32, 2**32 - 100)  # the log began 500 bytes later; numbers wrap
    assert shift == 500
    clock = clock_offset(log, capture, shift)
    assert (clock.offset_ns, clock.spread_ns, clock.matches) == (7_000_000, 0, 14)


def test_no_offset_is_made_up() -> None:
    rows = samples(TIMES, snd_una=range(20))
    assert clock_offset(rows, rows, None).spread_ns is None
    assert clock_offset(rows, rows, 10_000).offset_ns == 0
    assert sequence_shift(None, 5) is None
    assert sequence_shift(0, 10) == -10


def test_events_meet_the_nearest_row_and_polls_the_next_one() -> None:
    inferred = samples([0, 10_000_000], cwnd_segments=[10, 20])
    kernel = samples([1_000_000], cwnd_segments=[10])
    assert aligned(kernel, inferred)["cwnd_segments_inferred"].to_list() == [10]
    assert aligned(kernel, inferred, polled=True)["cwnd_segments_inferred"].to_list() == [20]
    far = samples([0, 60_000_000_000], cwnd_segments=[10, 20])
    assert aligned(samples([30_000_000_000], cwnd_segments=[1]), far)["cwnd_segments_inferred"].to_list() == [None]


def test_rows_that_the_capture_does_not_cover_are_left_out() -> None:
    inferred = samples([10, 20], cwnd_segments=[1, 1])
    assert aligned(samples([5, 15, 25], cwnd_segments=[1, 1, 1]), inferred).height == 1


def test_errors() -> None:
    kernel = samples([0, 1, 2, 3], cwnd_segments=[100, 100, 100, 100], ssthresh_segments=[None, 50, 50, 60])
    inferred = samples(
        [0, 1, 2, 3],
        cwnd_segments=[100, 101, 110, None],
        cwnd_low_segments=[90, 102, 90, None],
        cwnd_high_segments=[110, 110, None, None],
        ssthresh_segments=[None, None, 51, 50],
    )
    table = {row["quantity"]: row for row in inference_error(aligned(kernel, inferred, tolerance_ns=1)).to_dicts()}
    cwnd = table["cwnd_segments"]
    assert (cwnd["rows"], cwnd["missing"], cwnd["median"]) == (4, 0.25, 0.0)
    assert cwnd["p99"] == pytest.approx(0.1)
    assert table["ssthresh_segments"]["agreement"] == pytest.approx(2 / 3)  # unset by both, set by one, near
    assert table["cwnd bounds"]["agreement"] == pytest.approx(2 / 3)
    assert "srtt_ns" not in table


def test_the_threshold_that_tcp_probe_prints_counts_as_agreement() -> None:
    kernel = samples([0], cwnd_segments=[100], ssthresh_segments=[75])  # tcp_current_ssthresh() of 50 at cwnd 100
    inferred = samples([0], cwnd_segments=[100], ssthresh_segments=[50])
    table = inference_error(aligned(kernel, inferred))
    assert table.filter(pl.col("quantity") == "ssthresh_segments")["agreement"].item() == 1.0
