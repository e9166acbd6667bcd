"""The trust in a capture follows from where it was taken and what it misses."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

from tests.fuzz import captures
from tests.fuzz.frames import connection
from tracetool import tables
from tracetool.ingest import ingest
from tracetool.metrics.trust import PURPOSES, trust
from tracetool.reconstruct import reconstruct

SAMPLES = Path(__file__).resolve().parents[2] / "sample_traces"


def judged(path, folder) -> dict[str, tuple[str, str]]:
    """Verdict and joined reasons for each purpose."""
    dataset = reconstruct(ingest(path, folder / "dataset"))
    given = {name: dataset.read(name) for name in ("inputs", "flows", "flow_stats", "diagnostics", "samples", "events")}
    return {row["purpose"]: (row["verdict"], "; ".join(row["reasons"])) for row in trust(**given).to_dicts()}


def written(folder, frames) -> Path:
    path = folder / "made.pcap"
    path.write_bytes(captures.pcap(frames))
    return path


def test_a_capture_at_the_sender_is_good_for_everything(tmp_path):
    assert judged(SAMPLES / "reno-rto.pcap.gz", tmp_path) == dict.fromkeys(PURPOSES, ("good", ""))


def test_at_the_receiver_the_round_trip_is_inferred(tmp_path):
    verdicts = judged(SAMPLES / "cubic-hystart-train-receiver.pcap.gz", tmp_path)
    assert verdicts["throughput"] == ("good", "")
    for purpose in ("rtt", "retransmissions", "cwnd"):
        assert verdicts[purpose][0] == "limited"
        assert "taken at the receiver" in verdicts[purpose][1]


def test_the_kernels_word_is_good_for_cwnd_but_not_for_what_it_does_not_tell(tmp_path):
    verdicts = judged(SAMPLES / "reno-rto.tcp_probe.txt.gz", tmp_path)
    assert verdicts["cwnd"] == ("good", "")
    assert verdicts["throughput"][0] == "limited"


def test_a_log_of_acks_that_names_no_retransmission_may_have_recorded_none(tmp_path):
    verdict, reason = judged(SAMPLES / "reno-ecn.tcp_probe.txt.gz", tmp_path)["retransmissions"]
    assert verdict == "poor"
    assert "tcp_retransmit_skb was not recorded" in reason


def test_without_acks_there_is_no_rtt(tmp_path):
    frames = [frame for frame in connection(30) if frame[26:30] == bytes([192, 0, 2, 1])]
    verdicts = judged(written(tmp_path, frames), tmp_path)
    assert verdicts["rtt"][0] == verdicts["cwnd"][0] == "poor"
    assert "one direction only" in verdicts["rtt"][1]


def test_data_that_was_not_captured_spoils_retransmissions(tmp_path):
    frames = connection(40)
    verdicts = judged(written(tmp_path, frames[:13] + frames[17:]), tmp_path)
    assert verdicts["retransmissions"][0] == "poor"
    assert "of the data is not in the capture" in verdicts["retransmissions"][1]


def test_nothing_to_judge_is_poor(tmp_path):
    verdicts = judged(written(tmp_path, connection(0)[:2]), tmp_path)
    assert set(verdicts.values()) == {("poor", "no TCP connection with data in it")}


@pytest.mark.parametrize(("count", "verdict"), [(1, "limited"), (50, "poor")])
def test_a_frequent_oddity_weighs_more(count, verdict):
    names = ("flows", "flow_stats", "diagnostics", "samples", "events")
    given = {name: pl.DataFrame(tables.empty(name)) for name in names}
    odd = {"input": "x", "severity": "error", "code": "torn_line", "message": "m", "count": count}
    given["diagnostics"] = pl.DataFrame(tables.from_rows("diagnostics", [odd]))
    sample = {"input": "x", "flow": 0, "direction": "a2b", "origin": "ss", "time": 0, "cwnd_segments": 10}
    given["samples"] = pl.DataFrame(tables.from_rows("samples", [sample]))
    inputs = pl.DataFrame(
        tables.from_rows("inputs", [{"input": "x", "format": "ss", "records": 1000, "damaged": True}])
    )
    verdicts = {row["purpose"]: row["verdict"] for row in trust(inputs, **given).to_dicts()}
    assert verdicts["cwnd"] == verdict
    assert verdicts["rtt"] == "poor"  # the log has no srtt
