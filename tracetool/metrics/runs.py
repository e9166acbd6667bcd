"""The numbers of a test run, as the Cake rounds print them: bandwidth, ping, TCP's round trips, fairness of hosts.

A run is whatever was recorded of it: a Flent file, iperf3 reports, captures, kernel logs. Each number comes from the
source that knows it best, and what one source lacks another fills in.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tracetool.metrics.host_fairness import host_fairness

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import polars as pl

    from tracetool.dataset import Dataset
    from tracetool.measures import Number

#: Numbers of a run, in the order in which they are printed -> unit.
NUMBERS = {
    "up_bps": "bit/s",
    "down_bps": "bit/s",
    "sum_bps": "bit/s",
    "ping_mean_ns": "ns",
    "ping_median_ns": "ns",
    "ping_p95_ns": "ns",
    "ping_p99_ns": "ns",
    "tcp_rtt_mean_ns": "ns",
    "tcp_rtt_p95_ns": "ns",
    "host_ratio_up": "1",
    "host_jain_up": "1",
    "host_ratio_down": "1",
    "host_jain_down": "1",
    "retransmitted_segments": "segments",
    "ssthresh_segments": "segments",
}
#: Who is asked first for bytes, and for round trips.
_BY_BYTES = ("flent", "pcap", "pcapng", "iperf3", "ss", "tcp_info", "siftr", "tcp_probe", "qlog")
_BY_RTT = ("flent", "ss", "tcp_info", "tcp_probe", "siftr", "iperf3", "qlog")
_BY_STATE = ("pcap", "pcapng", "tcp_probe", "ss", "tcp_info", "siftr", "iperf3", "qlog")
_CAPTURES = ("pcap", "pcapng")
_LEAST_SHARE = 0.01  # flows with less of the heaviest one's bytes are control connections
_UP, _DOWN = "a2b", "b2a"


def measure_run(dataset: Dataset) -> dict[str, Any]:
    """Measure one run.

    ``up`` is the direction from the host that opened the connections (or wrote the log), ``down`` the other.
    Bandwidth is the sum of what the tools say for each transfer (Flent's ``MEAN_VALUE``), else bytes over the time from
    the first to the last of all transfers; never a sum over interpolated steps. TCP's round trips are those of the
    transfers, as the first source that has them samples them. Hosts are the near ends, or the far ones where there is
    one near end only.

    Parameters
    ----------
    dataset
        Everything recorded of the run, reconstructed.

    Returns
    -------
    dict
        The numbers of `NUMBERS`, null where nothing tells; ``slow_start_exits``, as ``cause`` or ``cause x count``;
        ``sources``, the formats they came from.
    """
    import polars as pl

    formats = dict(dataset.read("inputs").select("input", "format").iter_rows())
    transfers = _rates(dataset, formats)
    rates = {way: [rate for *_, direction, rate in transfers if direction == way] for way in (_UP, _DOWN)}
    row: dict[str, Any] = {f"{name}_bps": sum(found) if (found := rates[way]) else None for name, way in _WAYS}
    row["sum_bps"] = sum((*rates[_UP], *rates[_DOWN])) if transfers else None
    ping = dataset.scan("rtts").filter(pl.col("method") == "ping").select("rtt_ns").collect()["rtt_ns"]
    row |= _spread("ping", ping, {"median": 0.5, "p95": 0.95, "p99": 0.99})
    row |= _spread("tcp_rtt", _tcp_rtts(dataset, formats), {"p95": 0.95})
    for name, way in _WAYS:
        hosts = host_fairness(_by_host([(a, b, rate) for a, b, direction, rate in transfers if direction == way]))
        row[f"host_ratio_{name}"] = hosts.ratio_max_over_min.value
        row[f"host_jain_{name}"] = hosts.jain_hosts.value if hosts.ratio_max_over_min.reason != "one-flow" else None
    row |= _sender_view(dataset, formats)
    row["sources"] = ", ".join(sorted(set(formats.values())))
    return {name: row.get(name) for name in (*NUMBERS, "slow_start_exits", "sources")}


_WAYS = (("up", _UP), ("down", _DOWN))


def _transfers(dataset: Dataset, formats: Mapping[str, str], order: Sequence[str]) -> pl.DataFrame:
    """One row of `flows` per transfer: of the sources that saw it, the one that stands first in ``order``.

    Control connections, which move next to nothing beside the heaviest transfer, are left out.
    """
    import polars as pl

    payload = pl.max_horizontal(pl.col("payload_bytes_a2b").fill_null(0), pl.col("payload_bytes_b2a").fill_null(0))
    ranks = {name: order.index(kind) for name, kind in formats.items() if kind in order}
    rank = pl.col("input").replace_strict(ranks, default=None, return_dtype=pl.Int64)
    flows = (
        dataset.scan("flows")
        .filter(pl.col("protocol").is_in(["tcp", "udp", "quic"]))
        .with_columns(payload.alias("payload"), rank.alias("rank"), _connection().alias("connection"))
        .filter(pl.col("payload") > 0, pl.col("rank").is_not_null())
        .filter(pl.col("payload") > _LEAST_SHARE * pl.col("payload").max())
        .sort("rank", "payload", descending=[False, True])
    )
    return flows.unique("connection", keep="first", maintain_order=True).collect()


def _connection() -> pl.Expr:
    """Name of a connection, the same for each source and from both ends; flows without ports are their own."""
    import polars as pl

    ends = [pl.concat_str(f"addr_{side}", pl.col(f"port_{side}").cast(pl.String), separator=" ") for side in "ab"]
    both = pl.concat_str(pl.min_horizontal(*ends), pl.max_horizontal(*ends), separator=" ")
    known = pl.col("port_a").is_not_null() & pl.col("port_b").is_not_null()
    own = pl.concat_str("input", pl.col("flow").cast(pl.String), separator=" ")
    return pl.when(known).then(both).otherwise(own)


def _rates(dataset: Dataset, formats: Mapping[str, str]) -> list[tuple[str, str, str, float]]:
    """Near end, far end, direction and bit/s of each transfer."""
    import polars as pl

    flows = _transfers(dataset, formats, _BY_BYTES)
    if not len(flows):
        return []
    # Sources of another kind may see the same transfers under names that do not match.
    flows = flows.filter(pl.col("rank") == flows["rank"].min())
    means = _flent_means(dataset, flows["input"].unique().to_list())
    span = flows.select((pl.col("end").max() - pl.col("start").min()).dt.total_nanoseconds()).item()
    seconds = (span or 0) / 1e9
    found = []
    for flow in flows.iter_rows(named=True):
        for way in (_UP, _DOWN):
            size = flow[f"payload_bytes_{way}"]
            mean = means.get((flow["input"], flow["flow"]))
            if size and (mean is not None or seconds > 0) and size > _LEAST_SHARE * flow["payload"]:
                rate = mean if mean is not None else 8 * size / seconds
                found.append((flow["addr_a"], flow["addr_b"], way, rate))
    return found


def _flent_means(dataset: Dataset, inputs: Sequence[str]) -> dict[tuple[str, int], float]:
    """Mean rate of each Flent series, as its tool reported it, in bit/s."""
    import polars as pl

    facts = dataset.scan("metadata").filter(pl.col("input").is_in(list(inputs))).collect()
    told = {(name, key): value for name, key, value in facts.select("input", "key", "value").iter_rows()}
    means = {}
    for (name, key), series in told.items():
        if key.startswith("flow.") and key.endswith(".series"):
            mean, unit = (told.get((name, f"SERIES_META.{series}.{fact}")) for fact in ("MEAN_VALUE", "UNITS"))
            try:
                rate = float(mean) * 1e6 if mean is not None and unit in (None, "Mbits/s") else None
            except ValueError:
                rate = None
            if rate is not None and 0 <= rate < 1e15:
                means[name, int(key.split(".")[1])] = rate
    return means


def _tcp_rtts(dataset: Dataset, formats: Mapping[str, str]) -> pl.Series:
    """Smoothed round trips of the transfers, from the first source that has any; else single ones from captures."""
    import polars as pl

    key = ["input", "flow"]
    for kind in _BY_RTT:
        chosen = _transfers(dataset, formats, (kind,)).select(key).lazy()
        samples = dataset.scan("samples").filter(pl.col("origin") == kind, pl.col("srtt_ns").is_not_null())
        found = samples.join(chosen, on=key, how="semi").select("srtt_ns").collect()["srtt_ns"]
        if len(found):
            return found
    chosen = _transfers(dataset, formats, _CAPTURES).select(key).lazy()
    rtts = dataset.scan("rtts").filter(pl.col("method").is_in(["ack", "timestamp"]))
    return rtts.join(chosen, on=key, how="semi").select("rtt_ns").collect()["rtt_ns"]


def _spread(name: str, values: pl.Series, shares: Mapping[str, float]) -> dict[str, float | None]:
    found = {f"{name}_{label}_ns": values.quantile(share, "linear") for label, share in shares.items()}
    return {f"{name}_mean_ns": values.cast(float).mean(), **found}  # type: ignore[dict-item] # of numbers


def _by_host(transfers: Sequence[tuple[str, str, float]]) -> dict[str, list[Number | None]]:
    near = len({a for a, *_ in transfers}) > 1
    hosts: dict[str, list[Number | None]] = {}
    for a, b, rate in transfers:
        hosts.setdefault(a if near else b, []).append(rate)
    return hosts


def _sender_view(dataset: Dataset, formats: Mapping[str, str]) -> dict[str, Any]:
    """What only captures and kernel logs tell: segments sent again, the last threshold, how slow start ended."""
    import polars as pl

    key = ["input", "flow"]
    chosen = _transfers(dataset, formats, _BY_STATE).select(key)
    stats = chosen.join(dataset.read("flow_stats"), on=key)["retransmitted_segments"].drop_nulls()
    samples = dataset.scan("samples").join(chosen.lazy(), on=key, how="semi")
    counted = samples.group_by(*key, "direction").agg(pl.col("retransmitted_segments").max()).collect()
    counts = counted["retransmitted_segments"].drop_nulls()
    last = samples.filter(pl.col("ssthresh_segments").is_not_null()).sort("time").group_by(key).last().collect()
    exits = chosen.join(dataset.read("slow_starts"), on=key)["exit_cause"].drop_nulls().to_list()
    return {
        "retransmitted_segments": int(stats.sum()) if len(stats) else int(counts.sum()) if len(counts) else None,
        "ssthresh_segments": last["ssthresh_segments"].median(),
        "slow_start_exits": _exits(exits) if exits else None,
    }


def _exits(causes: Sequence[str]) -> str:
    counts: dict[str, int] = {}
    for cause in causes:
        counts[cause] = counts.get(cause, 0) + 1
    return ", ".join(f"{cause} x {count}" if count > 1 else cause for cause, count in sorted(counts.items()))


def table(runs: Sequence[Mapping[str, Any]], by: Sequence[str], *, average: bool = False) -> pl.DataFrame:
    """Rows of runs, sorted by what distinguishes them.

    Parameters
    ----------
    runs
        ``run``, a value for each of ``by``, and what `measure_run` returns.
    by
        Names of the parameters; a parameter whose values are all numbers is sorted and shown as numbers.
    average
        One row per set of parameters, with the means of its runs that have a number, and ``runs``, their count.

    Examples
    --------
    >>> rows = [{"run": name, "rtt": rtt, "up_bps": up} for name, rtt, up in (("b", "1000", 2.0), ("a", "200", 1.0))]
    >>> table(rows, ["rtt"])["run"].to_list()
    ['a', 'b']
    """
    import polars as pl

    columns = ["run", *by, *(name for name in (*NUMBERS, "slow_start_exits", "sources"))]
    texts = {"run", "slow_start_exits", "sources", *by}
    schema: dict[str, Any] = {name: pl.String if name in texts else pl.Float64 for name in columns}
    schema["retransmitted_segments"] = pl.Int64
    rows = [{name: _cell(run.get(name), name in texts) for name in columns} for run in runs]
    frame = pl.DataFrame(rows, schema=schema)
    for name in by:
        numbers = frame[name].cast(pl.Float64, strict=False)
        if numbers.null_count() == frame[name].null_count() and len(frame):
            frame = frame.with_columns(numbers.alias(name))
    frame = frame.sort([*by, "run"], nulls_last=True)
    if not average or not by:
        return frame
    means = [pl.col(name).mean() for name in NUMBERS]
    return frame.group_by(list(by), maintain_order=True).agg(pl.len().cast(pl.Int64).alias("runs"), *means)


def _cell(value: Any, text: bool) -> Any:  # noqa: FBT001 - a column's kind
    if value is None:
        return None
    return str(value) if text else value if isinstance(value, int) else float(value)
