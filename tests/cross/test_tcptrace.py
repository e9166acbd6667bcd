"""`flow_stats` against ``tcptrace -n -l -r -W``, field by field; docs/agreement.md says what differs, and why."""

from __future__ import annotations

import gzip
import re
import shutil
import subprocess
from pathlib import Path

import polars as pl
import pytest

from tracetool.ingest import ingest
from tracetool.reconstruct import reconstruct

ROOT = Path(__file__).resolve().parents[2]
CAPTURES = sorted((ROOT / "sample_traces").glob("*.pcap.gz"))

pytestmark = pytest.mark.skipif(shutil.which("tcptrace") is None, reason="tcptrace is not installed")

LABELS = {
    "total packets": "packets", "ack pkts sent": "ack_packets", "pure acks sent": "pure_acks",
    "dsack pkts sent": "dsack_packets", "max sack blks/ack": "max_sack_blocks",
    "unique bytes sent": "unique_bytes", "actual data pkts": "data_packets", "actual data bytes": "data_bytes",
    "zwnd probe pkts": "window_probes", "zwnd probe bytes": "window_probe_bytes", "pushed data pkts": "push_packets",
    "adv wind scale": "window_scale", "urgent data pkts": "urgent_packets", "mss requested": "mss_requested_bytes",
    "max win adv": "max_window_bytes", "min win adv": "min_window_bytes", "zero win adv": "zero_windows",
    "truncated data": "truncated_bytes", "truncated packets": "truncated_packets", "data xmit time": "data_transmit_ns",
    "idletime max": "idle_max_ns", "throughput": "throughput_bps", "RTT min": "rtt_min_ns",
    "RTT from 3WHS": "rtt_handshake_ns",
}  # fmt: skip
#: As above, but tcptrace takes a super-frame for one segment: compared where there are none.
ONE_SEGMENT_A_FRAME = {
    "max segm size": "max_segment_bytes", "min segm size": "min_segment_bytes", "avg segm size": "mean_segment_bytes",
    "max # retrans": "max_retransmissions", "min retr time": "retransmit_min_ns", "max retr time": "retransmit_max_ns",
    "avg retr time": "retransmit_mean_ns", "sdv retr time": "retransmit_stdev_ns", "RTT max": "rtt_max_ns",
    "RTT avg": "rtt_mean_ns", "RTT min (last)": "rtt_last_min_ns", "RTT max (last)": "rtt_last_max_ns",
    "RTT avg (last)": "rtt_last_mean_ns", "RTT sdv (last)": "rtt_last_stdev_ns",
}  # fmt: skip
#: Only where the capture was taken at the sender: elsewhere tcptrace calls a retransmission of what it did not see
#: "out of order" (the last byte of a SYN sent again counts there, too).
AT_THE_SENDER = {"rexmt data pkts": "retransmitted_packets", "outoforder pkts": "out_of_order_packets"}
UNITS = {"ms": 1e6, "secs": 1e9, "Bps": 8.0}
#: tcptrace's last digit.
HALF_DIGIT = {"ms": 0.051e6, "secs": 0.00051e9, "Bps": 8.0}


def tcptrace(path):
    """``{(address, port, address, port): [{label: (value, unit)}, ...]}``, a to b first."""
    done = subprocess.run(
        ["tcptrace", "-n", "-l", "-r", "-W", str(path)], capture_output=True, text=True, errors="replace", check=False
    )
    found = {}
    for block in done.stdout.split("TCP connection ")[1:]:
        ends = re.search(r"host \S+:\s+(\S+):(\d+)\s+host \S+:\s+(\S+):(\d+)", block)
        if ends is None:
            continue
        sides = [{}, {}]
        for line in block.splitlines():
            row = re.match(r"\s+([^:]+?):\s+(\S+)(?: (\S+))?\s{2,}\1:\s+(\S+)(?: (\S+))?\s*$", line)
            if row and "/" not in row[2]:
                for side, (value, unit) in enumerate(((row[2], row[3]), (row[4], row[5]))):
                    label = f"{row[1]} {unit}" if row[1] == "initial window" else row[1]
                    if re.fullmatch(r"-?[\d.]+", value):
                        sides[side][label] = (float(value), unit)
        found[ends[1], int(ends[2]), ends[3], int(ends[4])] = sides
    return found


@pytest.fixture(scope="module", params=CAPTURES, ids=lambda path: path.name.removesuffix(".pcap.gz"))
def both(request, tmp_path_factory):
    """Rows of flow_stats beside tcptrace's: ``[(row, labels), ...]``, and whether there are super-frames."""
    folder = tmp_path_factory.mktemp("tcptrace")
    plain = folder / "plain.pcap"
    plain.write_bytes(gzip.decompress(request.param.read_bytes()))
    dataset = reconstruct(ingest([plain], folder / "dataset"))
    flows = {
        (row["addr_a"], row["port_a"], row["addr_b"], row["port_b"]): row["flow"]
        for row in dataset.read("flows").filter(pl.col("protocol") == "tcp").to_dicts()
    }
    stats = {(row["flow"], row["direction"]): row for row in dataset.read("flow_stats").to_dicts()}
    theirs = tcptrace(plain)
    pairs = []
    for (a, port_a, b, port_b), sides in theirs.items():
        turned = (a, port_a, b, port_b) not in flows
        flow = flows[(b, port_b, a, port_a) if turned else (a, port_a, b, port_b)]
        for side, direction in enumerate(("b2a", "a2b") if turned else ("a2b", "b2a")):
            pairs.append((stats[flow, direction], sides[side]))
    assert len(pairs) == 2 * len(flows), "tcptrace sees the same connections"
    packets = dataset.read("packets")
    return pairs, packets["segments"].max() > 1


def agree(pairs, labels):
    """Assert that every field that tcptrace gives is ours, to the last digit it prints."""
    compared = 0
    for row, theirs in pairs:
        for label, column in labels.items():
            if label not in theirs or (label == "RTT sdv (last)" and row["ambiguous_acks"] <= 2):
                continue  # tcptrace takes two samples to have no spread
            value, unit = theirs[label]
            mine = row[column]
            slack = 1.0 if "mean" in column and unit == "bytes" else HALF_DIGIT.get(unit, 0) if unit in UNITS else 0
            where = f"flow {row['flow']} {row['direction']}, {label}: {value} {unit}, {column} {mine}"
            assert (mine or 0) == pytest.approx(value * UNITS.get(unit, 1), abs=slack), where
            compared += 1
    assert compared > 0


def test_counts_and_times(both):
    pairs, _ = both
    agree(pairs, LABELS)


def test_segments_and_retransmissions(both):
    pairs, super_frames = both
    if super_frames:
        pytest.skip("tcptrace takes super-frames for segments")
    agree(pairs, ONE_SEGMENT_A_FRAME)
    agree([pair for pair in pairs if pair[0]["vantage"] == "sender"] or pairs[:0], AT_THE_SENDER) if any(
        row["vantage"] == "sender" for row, _ in pairs
    ) else None


def test_round_trips_and_outstanding_data(both):
    pairs, super_frames = both
    for row, theirs in pairs:
        # an ACK within a RST is a sample for tcptrace; one more, too, where data arrived late and was SACKed before
        samples = theirs["RTT samples"][0]
        if not super_frames:
            assert row["rtt_samples"] == pytest.approx(samples, abs=max(5, 0.01 * samples))
        # tcptrace counts one byte too many; while data is sent again, it counts from the end of that packet only
        assert (row["max_owin_bytes"] or 0) == pytest.approx(theirs["max owin"][0], abs=1)
        assert row["mean_owin_bytes"] == pytest.approx(theirs["avg owin"][0], abs=max(3, 0.1 * theirs["avg owin"][0]))
