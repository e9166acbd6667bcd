"""A small dataset made by hand: two flows, captured at both ends, with a kernel log, names that bite, and oddities."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from tracetool import tables
from tracetool.dataset import Dataset

START = datetime(2026, 1, 1, tzinfo=UTC)
HOSTILE = "</script><script>alert(1)</script><img src=x onerror=alert(2)> \x1b[31m\u202e"
MSS = 1448
SECONDS = 8
STEP = 0.02


def at(seconds: float) -> datetime:
    return START + timedelta(microseconds=round(seconds * 1e6))


def window(flow: int, seconds: float) -> int:
    """Segments per round: slow start to 32 within a second, then a saw-tooth; the second flow begins at 2 s."""
    age = seconds - 2 * flow
    return min(32, round(4 * 2 ** (3 * age))) if age < 1 else 24 + round(age * 5) % 16


def make(path, *, cc="cubic", started="slow_start") -> Dataset:
    """Make the dataset in a folder, with the congestion control that was inferred and the phase that flows begin in."""
    dataset = Dataset.create(path)
    packets: dict[str, list[dict[str, Any]]] = {"sender": [], "receiver": []}
    samples, rtts = [], []
    for flow in (0, 1):
        seq, last = 1, {"sender": 0, "receiver": 0}
        steps = int((SECONDS - 2 * flow) / STEP)
        for step in range(steps):
            seconds = 2 * flow + step * STEP
            cwnd = window(flow, seconds)
            delay = 0.010 + 0.0002 * cwnd
            lost = step in (60, 61)
            for part in range(3):
                when = seconds + part * 0.001
                common = {"seq": seq + part * MSS, "payload_bytes": MSS, "ip_id": step * 3 + part, "tsval": step}
                packets["sender"].append(_packet(flow, "a2b", when, last, "sender", **common))
                late = 0.004 if step % 40 == 7 and part == 0 else 0.0
                if not lost or part:
                    packets["receiver"].append(_packet(flow, "a2b", when + delay + late, last, "receiver", **common))
            seq += 3 * MSS
            reply = {"seq": 1, "payload_bytes": 0, "ack": seq, "window_bytes": 100_000, "ip_id": step, "tsval": step}
            sack = [seq - MSS, seq] if lost else None
            packets["sender"].append(_packet(flow, "b2a", seconds + 2 * delay, last, "sender", sack=sack, **reply))
            packets["receiver"].append(_packet(flow, "b2a", seconds + delay, last, "receiver", sack=sack, **reply))
            rtts.append(_row(flow, seconds + 2 * delay, rtt_ns=round(2e9 * delay), method="ack", seq=seq))
            samples.append(
                _row(flow, seconds + 2 * delay, origin="inferred", cwnd_segments=cwnd, cwnd_low_segments=cwnd - 1)
                | {"cwnd_high_segments": cwnd + 1, "ssthresh_segments": 32 if seconds - 2 * flow >= 1 else None}
                | {"srtt_ns": round(2e9 * delay), "min_rtt_ns": 20_800_000, "inflight_bytes": (cwnd - 1) * MSS}
                | {"mss_bytes": MSS, "snd_una": seq - 3 * MSS, "snd_nxt": seq, "limited_by": "cwnd"}
                | {"phase": started if seconds - 2 * flow < 1 else "congestion_avoidance"}
            )
    for name in ("sender", "receiver"):
        numbered = sorted(packets[name], key=lambda row: row["time"])
        rows = [row | {"input": name, "frame": number} for number, row in enumerate(numbered, 1)]
        flows = [_flow(name, flow, vantage=name) for flow in (0, 1)]
        with dataset.reserve([name]) as writer:
            _write(writer, "packets", rows)
            _write(writer, "flows", flows)
            _write(writer, "inputs", [_input(name, "pcap", len(rows))])
            _write(writer, "diagnostics", _diagnostics(name))
            writer.commit()
        with dataset.writer(name, "reconstruct") as writer:
            if name == "sender":
                _write(writer, "samples", samples)
                _write(writer, "rtts", rtts)
                _write(writer, "events", [_event(0, 3.2), _event(1, 3.2)])
                _write(writer, "recoveries", [_recovery(0), _recovery(1)])
                _write(writer, "slow_starts", [_slow_start(0), _slow_start(1)])
                _write(writer, "flow_stats", [_stats(0, cc), _stats(1, cc)])
            writer.commit()
    kernel = [
        row
        | {"input": "log", "origin": "tcp_probe", "cwnd_low_segments": None, "cwnd_high_segments": None}
        | {"delivery_rate_bps": row["cwnd_segments"] * 100_000, "pacing_rate_bps": row["cwnd_segments"] * 120_000}
        | {"cc": "cubic", "phase": None, "limited_by": None}
        for row in samples
    ]
    with dataset.reserve(["log"]) as writer:
        _write(writer, "samples", kernel)
        _write(writer, "flows", [_flow("log", flow, stream=None) for flow in (0, 1)])
        _write(writer, "inputs", [_input("log", HOSTILE, len(kernel))])
        writer.commit()
    return dataset


def _write(writer, table, rows):
    names = tables.columns(table)
    writer.write(table, tables.from_rows(table, [{name: row.get(name) for name in names} for row in rows]))


def _packet(flow, direction, when, last, side, **values):
    last[side] += 1
    protocol = {"protocol": "tcp", "segments": 1 if values["payload_bytes"] else 0, "flags": 16, "ack": 1}
    size = values["payload_bytes"] + 66
    sizes = {"ip_bytes": size - 14, "frame_bytes": size, "captured_bytes": min(size, 96)}
    return {"flow": flow, "direction": direction, "time": at(when)} | protocol | sizes | values


def _row(flow, when, **values):
    return {"input": "sender", "flow": flow, "direction": "a2b", "time": at(when)} | values


def _event(flow, when):
    return _row(flow, when, frame=77, kind="retransmission", trigger="fast", seq=200_000, bytes=MSS, segments=1)


def _recovery(flow):
    values = {"end": at(3.3), "kind": "fast", "cwnd_before_segments": 40, "ssthresh_after_segments": 28, "beta": 0.7}
    return _row(flow, 0.0) | {"start": at(3.2), "lost_segments": 2, "undone": False} | values


def _slow_start(flow):
    begun = 2.0 * flow
    return _row(flow, 0.0) | {
        "episode": 0,
        "start": at(begun),
        "end": at(begun + 1),
        "exit_cause": "hystart_train",
        "cwnd_exit_segments": 32,
        "ssthresh_segments": 32,
        "rounds": 4,
        "bdp_segments": 40.0,
        "exit_to_bdp": 0.8,
        "verdict": "reasonable",
        "confidence": 0.9,
        "evidence": f"ACKs followed one another {HOSTILE}",
    }


def _stats(flow, cc):
    known = {"cc": cc, "cc_confidence": 0.9, "data_segments": 1200, "retransmitted_segments": 2}
    return _row(flow, 0.0) | known | {"goodput_bps": 1.7e6, "rtt_min_ns": 20_800_000, "rtt_mean_ns": 2.5e7}


def _flow(name, flow, *, vantage=None, stream=0):
    payload = int((SECONDS - 2 * flow) / STEP) * 3 * MSS
    return {
        "input": name,
        "flow": flow,
        "stream": None if stream is None else flow,
        "protocol": "tcp",
        "addr_a": "192.0.2.1",
        "port_a": 4000 + flow,
        "addr_b": "2001:db8::2",
        "port_b": 80,
        "start": at(2.0 * flow),
        "end": at(SECONDS),
        "payload_bytes_a2b": None if stream is None else payload,
        "payload_bytes_b2a": None if stream is None else 0,
        "packets_a2b": 10,
        "packets_b2a": 10,
        "vantage": vantage,
        "handshake": "full",
        "handshake_rtt_ns": 21_000_000,
        "isn_a": 0,
        "isn_b": 0,
        "close": "open",
    }


def _input(name, form, records):
    return {"input": name, "format": form, "first_time": at(0), "last_time": at(SECONDS), "records": records} | {
        "damaged": name == "receiver",
        "snaplen_bytes": 96,
        "time_resolution_ns": 1000,
    }


def _diagnostics(name):
    message = f"record cut short {HOSTILE}"
    row = {"input": name, "severity": "error", "code": "cut", "message": message, "offset_bytes": 123_456, "count": 3}
    return [row] if name == "receiver" else []
