"""How far a capture or log can be trusted for what, and why: a verdict for each purpose, with its reasons.

A capture tells what passed one place. Where that was, what it missed and how it was cut decide which numbers are
measurements and which are guesses. The rules stand in tables below; the worst one that applies is the verdict.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator

    import polars as pl

RTT, RETRANSMISSIONS, CWND, THROUGHPUT = PURPOSES = ("rtt", "retransmissions", "cwnd", "throughput")
GOOD, LIMITED, POOR = VERDICTS = ("good", "limited", "poor")
_ALL = frozenset(PURPOSES)
_BUT_RTT = _ALL - {RTT}
_TIMED = _ALL - {RETRANSMISSIONS}

#: Above this share of what was recorded, an oddity is no exception: one in a hundred is the size of the loss ratios
#: that these numbers are to tell.
MUCH = 0.01
#: A clock must be this much finer than what it measures.
FINER = 20
#: Fewer segments leave the initial window of RFC 6928 at once, and tell nothing of what comes after it.
INITIAL_WINDOW = 10


class Finding(NamedTuple):
    """Something that lowers the trust in some purposes."""

    purposes: frozenset[str]
    verdict: str
    reason: str


class Rule(NamedTuple):
    """What a diagnostic means where it occurs, and where it is not rare (None: as bad)."""

    purposes: frozenset[str]
    verdict: str
    often: str | None
    reason: str


_GAPS = "part of the file could not be read: the gaps may look like loss"
_CUT = "frames are cut inside their headers: packets are missing"
_CLOCK = "the clock cannot be trusted"
_RULES = {
    "damaged_compression": Rule(frozenset({THROUGHPUT}), LIMITED, None, "the end of the file is missing"),
    "bad_length": Rule(_BUT_RTT, LIMITED, None, _GAPS),
    "bad_packet_block": Rule(_BUT_RTT, LIMITED, POOR, _GAPS),
    "unknown_interface": Rule(_BUT_RTT, LIMITED, POOR, _GAPS),
    "headers_cut": Rule(_ALL, LIMITED, POOR, _CUT),
    "transport_cut": Rule(_ALL, LIMITED, POOR, _CUT),
    "options_cut": Rule(
        frozenset({RTT, RETRANSMISSIONS, CWND}),
        LIMITED,
        None,
        "TCP options are cut: SACK and time stamps may be missing",
    ),
    "malformed_header": Rule(_BUT_RTT, LIMITED, POOR, "packets with impossible headers are left out"),
    "malformed_tcp": Rule(_BUT_RTT, LIMITED, POOR, "segments with impossible headers are left out"),
    "bad_checksum": Rule(
        _ALL, LIMITED, None, "segments with wrong checksums: the receiver dropped them, here they count"
    ),
    "ip_fragment": Rule(
        _BUT_RTT, LIMITED, POOR, "IP fragments are not put together: part of the payload is not counted"
    ),
    "too_many_layers": Rule(_ALL, LIMITED, POOR, "packets in too many tunnels are left out"),
    "unknown_link_type": Rule(_ALL, LIMITED, POOR, "frames of an unknown link type are left out"),
    "super_frame": Rule(
        frozenset({RTT}), LIMITED, None, "several segments share one time stamp (segmentation offload)"
    ),
    "time_backwards": Rule(_TIMED, LIMITED, POOR, f"{_CLOCK}: it ran backwards"),
    "time_jump": Rule(_TIMED, LIMITED, None, f"{_CLOCK}: it jumped"),
    "several_clocks": Rule(_TIMED, LIMITED, None, f"{_CLOCK}: interfaces have different ones"),
    "no_timestamp": Rule(_TIMED, POOR, None, "packets have no time stamps"),
    "capture_drops": Rule(_BUT_RTT, LIMITED, None, "the capturing host dropped packets"),
    "torn_line": Rule(_BUT_RTT, LIMITED, POOR, "lines could not be read"),
    "lost_events": Rule(_BUT_RTT, LIMITED, None, "the kernel lost events: its buffer was full"),
    "overwritten_events": Rule(_BUT_RTT, LIMITED, None, "the kernel overwrote the oldest events"),
    "no_time": Rule(frozenset({CWND, THROUGHPUT}), LIMITED, None, "lines have no time: only their order is known"),
}
_PLACES = {
    "receiver": "taken at the receiver: the sender's side of the round trip is inferred",
    "middle": "taken between the hosts: the sender's side of the round trip is inferred",
    "unknown": "where it was taken is not known",
}


def trust(
    inputs: pl.DataFrame,
    flows: pl.DataFrame,
    flow_stats: pl.DataFrame,
    diagnostics: pl.DataFrame,
    samples: pl.LazyFrame | pl.DataFrame,
    events: pl.LazyFrame | pl.DataFrame,
) -> pl.DataFrame:
    """Judge each input for each purpose, by its flow with the most data.

    Parameters
    ----------
    inputs, flows, flow_stats, diagnostics, samples, events
        The tables of these names, reconstructed; the last two may be lazy.

    Returns
    -------
    polars.DataFrame
        ``input``, ``purpose`` (rtt, retransmissions, cwnd, throughput), ``verdict`` (good: measured; limited: read
        the reasons; poor: do not use) and ``reasons``, the heaviest first; empty where the verdict is good.

    References
    ----------
    Paxson: Strategies for Sound Internet Measurement (2004): vantage points, clocks, drops, and what a filter misses.

    Examples
    --------
    >>> trust(*(dataset.read(t) for t in ("inputs", "flows", "flow_stats", "diagnostics", "samples", "events")))
    ... # doctest: +SKIP
    """
    import polars as pl

    stats = _data_directions(flows, flow_stats)
    known = _known_columns(samples, events)
    rows = []
    for one in inputs.iter_rows(named=True):
        name = one["input"]
        codes = dict(
            diagnostics.filter(pl.col("input") == name)
            .group_by("code")
            .agg(pl.col("count").sum())
            .select("code", "count")
            .iter_rows()
        )
        if one["link_types"] is None:
            found = [*_of_log(known.get(name, {}), one["format"]), *_of_codes(codes, one["records"])]
        else:
            found = [*_of_capture(stats.filter(pl.col("input") == name), one), *_of_codes(codes, one["records"])]
        rows += [_judged(name, purpose, found) for purpose in PURPOSES]
    schema: dict[str, Any] = {
        "input": pl.String,
        "purpose": pl.String,
        "verdict": pl.String,
        "reasons": pl.List(pl.String),
    }
    return pl.DataFrame(rows, schema=schema, orient="row")


def _judged(name: str, purpose: str, found: list[Finding]) -> tuple[str, str, str, list[str]]:
    mine = sorted((f for f in found if purpose in f.purposes), key=lambda f: -VERDICTS.index(f.verdict))
    return name, purpose, mine[0].verdict if mine else GOOD, list(dict.fromkeys(f.reason for f in mine))


def _of_codes(codes: dict[str, int], records: int) -> Iterator[Finding]:
    """What the diagnostics mean."""
    for code, count in codes.items():
        if rule := _RULES.get(code):
            often = rule.often is not None and count > MUCH * max(records, 1)
            yield Finding(rule.purposes, rule.often or rule.verdict if often else rule.verdict, rule.reason)


def _data_directions(flows: pl.DataFrame, flow_stats: pl.DataFrame) -> pl.DataFrame:
    """TCP flows and directions that carry data, with the facts of their flow, the heaviest first."""
    import polars as pl

    facts = flows.filter(pl.col("protocol").cast(pl.String) == "tcp").select(
        "input", "flow", "handshake", "sack_permitted", "timestamps", "packets_a2b", "packets_b2a",
        place=pl.col("vantage").cast(pl.String),
    )  # fmt: skip
    return (
        flow_stats.filter(pl.col("data_bytes") > 0)
        .join(facts, ["input", "flow"])
        .sort("data_bytes", descending=True, maintain_order=True)
    )


def _of_capture(stats: pl.DataFrame, one: dict[str, Any]) -> Iterator[Finding]:
    if not stats.height:
        yield Finding(_ALL, POOR, "no TCP connection with data in it")
        return
    heaviest = stats.row(0, named=True)
    yield from _of_gaps(stats)
    if min(heaviest["packets_a2b"], heaviest["packets_b2a"]) == 0:
        reason = "the ACKs were not captured: one direction only"
        yield Finding(frozenset({RTT, CWND}), POOR, reason)
        yield Finding(frozenset({RETRANSMISSIONS, THROUGHPUT}), LIMITED, reason)
    elif heaviest["place"] != "sender":
        purposes = frozenset({RTT, RETRANSMISSIONS, CWND})
        yield Finding(purposes, LIMITED, _PLACES.get(heaviest["place"], _PLACES["unknown"]))
    if not heaviest["rtt_samples"]:
        yield Finding(frozenset({RTT}), POOR, "no RTT sample in it")
    elif heaviest["place"] == "sender" and (one["time_resolution_ns"] or 0) * FINER > (heaviest["rtt_min_ns"] or 0):
        reason = f"the clock's steps of {one['time_resolution_ns'] / 1e3:g} µs are coarse for such RTTs"
        yield Finding(frozenset({RTT, CWND}), LIMITED, reason)
    if heaviest["handshake"] == "none":
        yield Finding(frozenset({CWND}), LIMITED, "it begins in mid-connection: the window scale was not seen")
    if (heaviest["data_segments"] or 0) <= INITIAL_WINDOW:
        yield Finding(frozenset({CWND, THROUGHPUT}), LIMITED, "no more data than an initial window")
    if heaviest["sack_permitted"] is False and not heaviest["timestamps"]:
        reason = "neither SACK nor time stamps: spurious retransmissions cannot be told"
        yield Finding(frozenset({RETRANSMISSIONS}), LIMITED, reason)
    if heaviest["cc"] in (None, "unknown"):
        yield Finding(
            frozenset({CWND}), LIMITED, "the congestion control was not recognised: cwnd is bounded by the data sent"
        )


def _of_gaps(stats: pl.DataFrame) -> Iterator[Finding]:
    missing, seen = int(stats["not_captured_bytes"].sum()), int(stats["unique_bytes"].sum())
    if missing:
        share = missing / (missing + seen)
        reason = f"{100 * share:.2g} % of the data is not in the capture"
        yield Finding(frozenset({RETRANSMISSIONS, CWND}), POOR if share > MUCH else LIMITED, reason)
        yield Finding(frozenset({THROUGHPUT}), LIMITED, reason)


def _known_columns(
    samples: pl.LazyFrame | pl.DataFrame, events: pl.LazyFrame | pl.DataFrame
) -> dict[str, dict[str, int]]:
    """What each log tells: how many of its samples have which value, and how many retransmissions it names."""
    import polars as pl

    names = ("srtt_ns", "cwnd_segments", "retransmitted_segments", "snd_una", "delivery_rate_bps")
    counted = (
        samples.lazy()
        .filter(pl.col("origin").cast(pl.String) != "inferred")
        .group_by(pl.col("input").cast(pl.String))
        .agg(*(pl.col(name).count() for name in names))
        .collect()
    )
    named = (
        events.lazy()
        .filter(pl.col("kind").cast(pl.String) == "retransmission")
        .group_by(pl.col("input").cast(pl.String))
        .agg(pl.len().alias("retransmissions"))
        .collect()
    )
    return {row.pop("input"): row for row in counted.join(named, "input", how="left").to_dicts()}


def _of_log(known: dict[str, int], form: str) -> Iterator[Finding]:
    if not known:
        yield Finding(_ALL, POOR, "no sample of a sender's state in it")
        return
    if not known["srtt_ns"]:
        yield Finding(frozenset({RTT}), POOR, "the log does not tell it")
    if not known["cwnd_segments"]:
        yield Finding(frozenset({CWND}), POOR, "the log does not tell it")
    if not known["retransmitted_segments"] and not known["retransmissions"]:
        reason = "it names none: there was none, or the event tcp_retransmit_skb was not recorded"
        yield Finding(
            frozenset({RETRANSMISSIONS}), POOR, reason if form == "tcp_probe" else "the log does not tell of them"
        )
    if not known["snd_una"] and not known["delivery_rate_bps"]:
        yield Finding(frozenset({THROUGHPUT}), POOR, "the log does not tell it")
    else:
        yield Finding(frozenset({THROUGHPUT}), LIMITED, "known only as often as a line was logged")
