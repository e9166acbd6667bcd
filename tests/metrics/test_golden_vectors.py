"""Every hand-checked vector of the reference passes through the public functions.

The vectors speak in seconds and strings of exact decimals; the adapters below only translate units and names.
"""

from __future__ import annotations

import json
import math
import os
from dataclasses import asdict, is_dataclass
from fractions import Fraction
from pathlib import Path

import pytest

from tracetool.measures import Measure
from tracetool.metrics import (
    bins,
    convergence,
    fairness,
    flent,
    host_fairness,
    jain_by_scale,
    latency,
    loss,
    queue_drops,
    reorder_density,
    reordering,
    repetitions,
    response_function,
    responsiveness,
    rfc6349,
    rtt,
    slow_start,
    throughput,
    utilisation,
    variation,
)
from tracetool.metrics.out_of_sequence import out_of_sequence_class

SHARED = Path(os.environ.get("TRACETOOL_SHARED", Path(__file__).parents[2].parent / "shared"))
GOLDEN = SHARED / "golden" / "metrics.json"
VECTORS = json.loads(GOLDEN.read_text())["vectors"] if GOLDEN.is_file() else []


def number(value):
    return Fraction(value) if isinstance(value, str) else value


def numbers(values):
    return [number(value) for value in values]


def ns(seconds):
    return int(Fraction(str(seconds)) * 10**9)


def per_second(pieces, run_s):
    """Bytes per 1 s bin (in tenths, to stay whole) of a piecewise constant rate."""
    series = [0] * run_s
    for start, end, rate in pieces:
        for second in range(start, end):
            series[second] = round(10 * rate)
    return series


def events(rows, run_s):
    times, sizes = [ns(time) for time, _ in rows], [size for _, size in rows]
    return bins.bin_bytes(times, sizes, start_ns=0, end_ns=ns(run_s), bin_ns=10**9)


def by_scale(inputs, params):
    flows = [inputs["flow1"], inputs["flow2"]]
    if "piece" in inputs:
        series = [per_second(pieces, inputs["run_s"]) for pieces in flows]
        found = jain_by_scale.fairness_over_time_scale(series, inputs["scales"], absent=params["absent"])
        return {str(scale): result.jain.value for scale, result in found.items()}
    found = jain_by_scale.fairness_over_time_scale([events(flow, inputs["run_s"]) for flow in flows], inputs["scales"])
    assert found[1].jain.reason == "degenerate"
    return {
        str(scale): {
            "coverage": result.coverage,
            "mean_of_defined": result.mean_of_defined,
            "windows_where_all_flows_moved": result.moved_windows,
        }
        for scale, result in found.items()
    }


def converge(inputs, params):
    series = inputs.get("jain") or jain_by_scale.jain_series([inputs["flow1"], inputs["flow2"]])
    tau = inputs["tau"]
    theta, stamp = params.get("theta", 0.95), params.get("stamp", "end")
    if "hold" not in params:
        return {f"hold{h}": convergence.convergence_time(series, tau, theta=theta, hold=h).value for h in (1, 3)}
    found = convergence.convergence_time(series, tau, theta=theta, hold=params["hold"], stamp=stamp)
    if found.value is None:
        assert found.reason == "not-reached"
        return {"value": None, "censored_at": found.censored_at}
    return found


def repeat(inputs, _):
    found = repetitions.mean_over_repetitions(inputs["values"], censored_at=inputs.get("censored_at"))
    if "censored_at" not in inputs:
        return found.mean
    return {
        "mean_of_converged": found.mean.value,
        "mean_with_censored_as_duration": found.mean_with_censored,
        "n": found.n,
        "n_converged": found.n_defined,
    }


def drops(inputs, _):
    if "in_packets" in inputs:
        return queue_drops.capture_drop_ratio(inputs["in_packets"], inputs["out_packets"])
    return queue_drops.queue_drop_ratio(inputs["dropped"], inputs["forwarded"])


def rates(inputs, _):
    found = throughput.goodput(inputs["sent_payload_bytes"], inputs["unique_payload_bytes"], ns(inputs["elapsed_s"]))
    return {
        "throughput_mbps": found.throughput_bps.value / 1e6,
        "goodput_mbps": found.goodput_bps.value / 1e6,
        "goodput_ratio": found.goodput_ratio.value,
    }


def losses(inputs, _):
    found = loss.loss_events(numbers(inputs["loss_times"]), rtt=number(inputs["rtt"]), packets=inputs["packets"])
    return {"events": found.events, "loss_rate": found.loss_rate, "event_rate": found.event_rate}


def intervals(inputs, params):
    found = loss.average_loss_interval(inputs["I"], n=params["n"])
    return {"I_mean": found.mean, "p": found.event_rate}


def smoothed(inputs, _):
    found = rtt.rfc6298([ns(sample) for sample in inputs["samples"]])
    return {
        "rto": found.rto_ns / 1e9,
        "rto_raw": found.rto_raw_ns / 1e9,
        "rttvar": found.rttvar_ns / 1e9,
        "srtt": found.srtt_ns / 1e9,
    }


def trace(rows):
    """Columns is_ack, time, start, end of a list of data and ACK rows."""
    return zip(*((kind == "ack", ns(time), where[0], where[-1]) for kind, time, *where in rows), strict=True)


def data_ack(inputs, _):
    found = rtt.rtt_data_ack(*map(list, trace(inputs["trace"])))
    return asdict(found) | {"samples": [sample / 1e9 for sample in found.samples_ns]}


def timestamps(inputs, _):
    import polars as pl

    rows = [
        ("x", 0, "a2b" if way == "AB" else "b2a", ns(time), tsval, tsecr, 16)
        for time, way, tsval, tsecr in inputs["packets"]
    ]
    names = ["input", "flow", "direction", "time", "tsval", "tsecr", "flags"]
    return [value / 1e9 for value in rtt.rtt_timestamp(pl.DataFrame(rows, schema=names, orient="row"))["rtt_ns"]]


def handshake(inputs, _):
    found = rtt.rtt_handshake(
        *(ns(inputs[name]) for name in ("syn", "synack", "ack")), retransmitted=inputs["syn_retransmitted"]
    )
    if found.total_ns.value is None:
        return None
    return {
        "client_side": found.client_side_ns.value / 1e9,
        "server_side": found.server_side_ns.value / 1e9,
        "total": found.total_ns.value / 1e9,
    }


def rfc4737(inputs, _):
    count = len(inputs["arrival"])
    found = reordering.rfc4737(inputs["arrival"], dst_time=inputs.get("dst_ms"), payload_bytes=[100] * count)

    def each(values):
        return {str(index): value for index, value in zip(found.send_index, values, strict=True)}

    return {
        "byte_offset": each(found.byte_offset),
        "extent": each(found.extent),
        "gaps": found.gaps,
        "late_time": each(found.late_time or [None] * len(found.positions)),
        "n_reordering": {key: n for key, n in each(found.n_reordering).items() if n},
        "ratio": found.ratio,
        "reordered": found.send_index,
        "runs": found.runs,
    }


def densities(inputs, _):
    found = reorder_density.rfc5236(inputs["arrival"], DT=inputs["DT"], BT=inputs["BT"])
    return {"RD": {str(k): v for k, v in found.rd.items()}, "RBD": {str(k): v for k, v in found.rbd.items()}}


def cells(inputs, _):
    table = pytest.importorskip("tracetool.report.tables.grid")
    return table.format_cell(inputs["values"])


def seed_table(inputs, _):
    table = pytest.importorskip("tracetool.report.tables.seed")
    lines = ["Protocol\t\t16ms\t42ms\t82ms\t162ms"]
    for row in range(inputs["rows_of_4"] + inputs["rows_of_5"]):
        values = ["0.5"] * (4 if row < inputs["rows_of_4"] else 5)
        lines.append("\t".join([f"P{row // 7}" if row % 7 == 0 else "", f"{row % 7}sec", *values]))
    with pytest.warns(UserWarning, match="without a heading"):
        found = table.parse_scale_table("\n".join(lines))
    extra = [row for row in found if row["column"].startswith("extra_")]
    return {"values": len(found), "without_heading": len(extra)}


def smoothed_plot(inputs, _):
    found = flent.flent_plot_smoothing(inputs["x"], inputs["smoothing"])
    return [found[0], found[5], found[-6], found[-1]]


def harmed(inputs, _):
    return {
        "fct": fairness.harm(inputs["fct_solo"], inputs["fct_together"], more_is_better=False),
        "goodput": fairness.harm(inputs["goodput_solo"], inputs["goodput_together"]),
    }


ADAPTERS = {
    "jain_index": lambda i, p: fairness.jain_index(numbers(i["x"]), **p),
    "throughput_ratio": lambda i, p: fairness.throughput_ratio(numbers(i["x"])),
    "fairness_thresholds": lambda i, p: fairness.fairness_thresholds(i["jain"]),
    "product_measure": lambda i, p: fairness.product_measure(i["x"]),
    "epsilon_fair": lambda i, p: fairness.epsilon_fair(i["x"], number(i["epsilon"])),
    "maxmin_allocation": lambda i, p: fairness.maxmin_allocation(i["demand"], i["capacity"]),
    "jain_index_normalised": lambda i, p: fairness.jain_index_normalised(i["measured"], i["optimal"]),
    "closeness_to_one": lambda i, p: fairness.closeness_to_one(i),
    "host_fairness": lambda i, p: host_fairness.host_fairness({"a": i["hostA_flows"], "b": i["hostB_flows"]}),
    "harm": harmed,
    "bin_bytes": lambda i, p: bins.bin_bytes(
        [ns(time) for time, _ in i["events"]],
        [size for _, size in i["events"]],
        start_ns=ns(i["t0"]),
        end_ns=ns(i["t1"]),
        bin_ns=ns(i["tau"]),
    ),
    "fairness_over_time_scale": by_scale,
    "cov": lambda i, p: variation.cov(i["x"], **p),
    "cov_over_time_scale": lambda i, p: {
        str(scale): found.value
        for scale, found in variation.cov_over_time_scale(i["total_per_1s"], i["scales"], **p).items()
    },
    "jain_series": lambda i, p: jain_by_scale.jain_series([i["flow1"], i["flow2"]]),
    "convergence_time": converge,
    "mean_over_repetitions": repeat,
    "link_utilisation": lambda i, p: utilisation.link_utilisation(i["bytes"], i["capacity_bps"], ns(i["interval_s"])),
    "payload_ceiling": lambda i, p: [utilisation.payload_ceiling(i["mss"], frame) for frame in i["frame"]],
    "queue_drop_ratio": drops,
    "loss_synchronisation": lambda i, p: loss.loss_synchronisation(i["flows_losing_per_event"], i["flows"]),
    "format_cell": cells,
    "parse_seed_scale_table": seed_table,
    "goodput": rates,
    "tcp_efficiency_percent": lambda i, p: rfc6349.tcp_efficiency_percent(i["transmitted"], i["retransmitted"]),
    "transfer_time_ratio": lambda i, p: rfc6349.transfer_time_ratio(i["actual_s"], i["ideal_s"]),
    "max_tcp_throughput_bps": lambda i, p: rfc6349.max_tcp_throughput_bps(i["link_bps"], i["mss"], i["wire_frame"]),
    "bdp": lambda i, p: rfc6349.bdp(i["capacity_bps"], number(i["rtt_s"]), i["mss"]),
    "loss_events": losses,
    "average_loss_interval": intervals,
    "tcp_rate_simple": lambda i, p: response_function.tcp_rate_simple(i["p"], i["rtt_s"]),
    "tfrc_rate": lambda i, p: response_function.tfrc_rate(i["s"], i["R"], i["p"]),
    "rfc6298": smoothed,
    "rtt_data_ack": data_ack,
    "rtt_timestamp": timestamps,
    "rtt_handshake": handshake,
    "rfc4737": rfc4737,
    "reordering_free_runs": lambda i, p: reordering.reordering_free_runs(i["runs"], in_order_after=i["in_order_after"]),
    "rfc5236": densities,
    "flent_sum_avg": lambda i, p: flent.flent_sum_avg(i["series"]),
    "flent_mean_span": lambda i, p: flent.flent_mean_span(i["ping"]),
    "flent_plot_smoothing": smoothed_plot,
    "ecdf": lambda i, p: latency.ecdf(i["x"]),
    "responsiveness_rpm": lambda i, p: responsiveness.responsiveness_rpm(**i),
    "hystart_delay_threshold_ms": lambda i, p: [slow_start.hystart_delay_threshold_ms(x) for x in i["delay_min_ms"]],
    "slow_start_exit": lambda i, p: slow_start.slow_start_exit([tuple(row) for row in i["samples"]]),
    "exit_window_over_bdp": lambda i, p: [
        slow_start.exit_window_over_bdp(w, Fraction(i["bdp_segments"])).value for w in i["exit_segments"]
    ],
    "overshoot_loss": lambda i, p: slow_start.overshoot_loss(i["lost_in_first_episode"], i["sent_in_last_ss_round"]),
    "bytes_in_flight": lambda i, p: slow_start.bytes_in_flight(
        [kind == "ack" for kind, *_ in i["trace"]], [row[-1] for row in i["trace"]]
    ),
    "out_of_sequence_class": lambda i, p: out_of_sequence_class(**i),
}


def same(found, expected, tol, path=""):
    """Compare a result with what was worked by hand, as deep as that goes."""
    if isinstance(found, Measure):
        assert (found.value is None) == (found.reason is not None)
        found = found.value
    if is_dataclass(found):
        found = {name: getattr(found, name) for name in found.__dataclass_fields__}
    if isinstance(expected, dict):
        for key, value in expected.items():
            same(found[key], value, tol, f"{path}.{key}")
        if path in (".RD", ".RBD", ".extent", ".n_reordering"):
            assert set(found) == set(expected)
    elif isinstance(expected, list):
        assert len(found) == len(expected), path
        for position, value in enumerate(expected):
            same(found[position], value, tol, f"{path}[{position}]")
    elif isinstance(expected, int | float) and not isinstance(expected, bool):
        assert math.isclose(found, expected, rel_tol=1e-9, abs_tol=tol), path
    elif isinstance(expected, str) and isinstance(found, Fraction):
        assert found == Fraction(expected), path
    else:
        assert found == expected, path


@pytest.mark.skipif(not VECTORS, reason="the shared golden vectors are missing")
def test_vectors_are_there():
    assert {vector["metric"] for vector in VECTORS} <= set(ADAPTERS)


@pytest.mark.parametrize("vector", VECTORS, ids=lambda vector: vector["id"])
def test_vector(vector):
    found = ADAPTERS[vector["metric"]](vector["inputs"], vector["params"])
    same(found, vector["expected"], vector["tol"])
    same(found, vector["hand"], max(vector["tol"], 1e-6))
