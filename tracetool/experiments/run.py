"""One run of an experiment: every number of its tables, from its captures and router counters."""

from __future__ import annotations

import tempfile
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from tracetool.errors import NothingMatchedError, TracetoolError
from tracetool.experiments.contenders import Contenders, contenders
from tracetool.experiments.sender_view import SenderView, late_share, sender_view
from tracetool.experiments.sharing import Sharing, SharingOptions, interval_of, share
from tracetool.ingest import ingest
from tracetool.metrics import queue_drops
from tracetool.metrics.utilisation import link_utilisation

if TYPE_CHECKING:
    import polars as pl

    from tracetool.experiments.layout import Run
    from tracetool.metrics.intervals import Interval

# Shaping bursts and the queue that drains after the interval lift the measured rate a little above the declared one.
ABOVE_CAPACITY = 1.02
# Behind the queue stands what got through; only there rate and utilisation are those of the bottleneck.
BEST_FIRST = ("after", "receiver", "sender", "before")
CAPTURED_SHARE = "share of link used by captured flows"


@dataclass(frozen=True, slots=True)
class Value:
    """One number of one run.

    Parameters
    ----------
    table
        Which table it belongs to.
    value, reason, censored_at
        As in `tracetool.measures.Measure`.
    scale
        The time scale in seconds, for the two tables that have one.
    label
        Source, layer or definition, as it is printed beside the number.
    """

    table: str
    value: float | None
    reason: str | None = None
    scale: float | None = None
    label: str | None = None
    censored_at: float | None = None


@dataclass(frozen=True, slots=True)
class RunResult:
    """All numbers of a run.

    Parameters
    ----------
    values
        The numbers.
    flows
        One dict per measured flow: label, group, start_s, end_s, rate_bps, share, goodput_bps.
    interval, interval_s
        The rule and the length of the interval.
    notes, warnings
        What was left out; what contradicts the declared setting.
    error
        Why there are no numbers.
    """

    values: tuple[Value, ...] = ()
    flows: tuple[dict[str, Any], ...] = ()
    interval: str | None = None
    interval_s: float | None = None
    notes: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    error: str | None = None


def measure_run(run: Run, options: SharingOptions) -> RunResult:
    """Measure one run; a run that cannot be read gives a result with the reason."""
    try:
        with tempfile.TemporaryDirectory(prefix="tracetool-") as folder:
            return _measure(run, options, folder)
    except TracetoolError as error:
        return RunResult(error=" ".join(str(error).split()))


def _measure(run: Run, options: SharingOptions, folder: str) -> RunResult:
    """Ingest the captures into a temporary dataset and measure them."""
    sides: dict[str, tuple[pl.DataFrame, pl.DataFrame]] = {}
    for number, (where, path) in enumerate(run.captures):
        dataset = ingest(path, f"{folder}/{number}")
        sides.setdefault(where, (dataset.read("packets"), dataset.read("flows")))
    if set(sides) == {"capture"}:
        sides["sender"] = sides.pop("capture")
    ports = tuple(run.setting.ports)
    who: dict[str, Contenders] = {
        where: contenders(
            *sides[where],
            min_bytes=options.min_bytes,
            group="port",
            groups={str(port): role for port, role in run.setting.ports.items()} or options.groups,
            declared_ports=ports or options.ports,
        )
        for where in BEST_FIRST
        if where in sides
    }
    if not who:
        raise NothingMatchedError(f"{run.name}: no capture of {', '.join(BEST_FIRST)}")
    best = next(iter(who))
    found = share(who[best], options)
    counters = _counters(run.counters, folder)
    seen = SenderView()
    if "sender" in who:
        seen = sender_view(sides["sender"][0], who["sender"], interval_of(who["sender"].flows, options))
    late = late_share(who, sides["sender"][0] if "sender" in sides else None)
    values = [
        *_fairness(found, options),
        _utilisation(run, found, best),
        _drops(who, counters, found.interval, seen),
        *_scales(found),
        *_path_values(found, seen, late),
    ]
    keep = ["label", "group", "start_s", "end_s", "rate_bps", "share", "goodput_bps"]
    return RunResult(
        tuple(values),
        tuple(found.flows.select(keep).iter_rows(named=True)),
        found.interval.rule,
        found.interval.length_ns / 1e9,
        found.notes,
        tuple(_contradictions(run, found, values, seen)),
    )


def _counters(logs: tuple[str, ...], folder: str) -> pl.DataFrame | None:
    """Read the logs of router counters."""
    import polars as pl

    frames = [ingest(log, f"{folder}/c{number}").read("queue_counters") for number, log in enumerate(logs)]
    return pl.concat(frames) if frames else None


def _fairness(found: Sharing, options: SharingOptions) -> list[Value]:
    """Return the values of tables 1.1, 1.2 and 4.1."""
    by_name = {row["metric"]: row for row in found.summary.iter_rows(named=True)}
    label = f"{options.layer}, {found.interval.rule}"
    values = [
        Value(name, by_name[name]["value"], by_name[name]["reason"], label=label)
        for name in ("jain", "throughput_ratio")
    ]
    row = found.convergence.filter(found.convergence["definition"] == "jain").row(0, named=True)
    unit = Fraction(options.bin_ns, 10**9)
    label = f"J >= {options.theta:g} in {float(unit):g} s bins, hold {options.hold}, {options.stamp}"
    return [*values, Value("convergence_time", row["value"], row["reason"], None, label, row["censored_at"])]


def _utilisation(run: Run, found: Sharing, side: str) -> Value:
    """Return the value of table 2."""
    setting = run.setting
    measure = link_utilisation(found.total_bytes[setting.layer], setting.rate_bps, found.interval.length_ns)
    words = [setting.layer, "delivered" if side in {"after", "receiver"} else "offered", found.interval.rule]
    if setting.background:
        words.insert(0, CAPTURED_SHARE)
    return Value("link_utilisation", measure.value, measure.reason, label=", ".join(words))


def _drops(who: dict[str, Contenders], counters: pl.DataFrame | None, span: Interval, seen: SenderView) -> Value:
    """Return the value of table 3 from the best source there is."""
    if counters is not None and len(counters):
        queues = queue_drops.drops_from_counters(counters, start_ns=span.start_ns, end_ns=span.end_ns)
        leaves = queue_drops.bottleneck_queues(queues)
        if leaves["dropped"].null_count() or leaves["forwarded"].null_count():
            return Value("queue_drop_ratio", None, "no-input", label="router-counters")
        measure = queue_drops.queue_drop_ratio(int(leaves["dropped"].sum()), int(leaves["forwarded"].sum()))
        return Value("queue_drop_ratio", measure.value, measure.reason, label="router-counters")
    for first, second, source in (("before", "after", "two-captures"), ("sender", "receiver", "endpoint-captures")):
        if first in who and second in who:
            found = queue_drops.drops_from_captures(who[first].packets, who[second].packets, source=source)
            row = found.row(0, named=True)
            return Value("queue_drop_ratio", row["value"], row["reason"], label=row["source"])
    return _or_missing("queue_drop_ratio", seen.loss_estimate, "sender-capture")


def _scales(found: Sharing) -> list[Value]:
    """Return the values of tables 4.2 and 5."""
    jain = [
        Value("jain_by_scale", row["value"], row["reason"], row["scale_ns"] / 1e9)
        for row in found.jain_by_scale.iter_rows(named=True)
    ]
    total = found.cov_by_scale.filter(found.cov_by_scale["entity"] == "total")
    return jain + [
        Value("cov_by_scale", row["value"], row["reason"], row["scale_ns"] / 1e9, "frame")
        for row in total.iter_rows(named=True)
    ]


def _path_values(found: Sharing, seen: SenderView, late: tuple[float | None, str]) -> list[Value]:
    """Return the values of the tables of a sweep."""
    goodput = float(found.flows["goodput_bps"].sum())
    return [
        Value("throughput", goodput, label="goodput, bit/s"),
        _or_missing("rtt_mean", seen.rtt_mean_s, "data to ACK, s"),
        _or_missing("rtt_p95", seen.rtt_p95_s, "data to ACK, s"),
        _or_missing("retransmission_ratio", seen.retransmission_ratio, "retransmitted over sent segments"),
        _or_missing("reordering", *late),
    ]


def _or_missing(table: str, value: float | None, label: str) -> Value:
    return Value(table, value, None if value is not None else "no-input", label=label)


def _contradictions(run: Run, found: Sharing, values: list[Value], seen: SenderView) -> list[str]:
    """Say where the declared setting contradicts the traces."""
    setting, said = run.setting, []
    used = next(value for value in values if value.table == "link_utilisation")
    if used.value is not None and used.value > ABOVE_CAPACITY and "delivered" in (used.label or ""):
        said.append(f"{used.value:.4f} of the declared rate was used: the rate or its layer ({setting.layer}) is wrong")
    if setting.flows is not None and setting.flows != len(found.flows):
        said.append(f"{setting.flows} flows are declared, {len(found.flows)} carry data")
    if setting.rtt_ns is not None and seen.rtt_min_s is not None and seen.rtt_min_s < 0.9 * setting.rtt_ns / 1e9:
        least = f"{seen.rtt_min_s * 1e3:.3f} ms"
        said.append(f"a round-trip time of {setting.rtt_ns / 1e6:g} ms is declared, the least measured is {least}")
    return said
