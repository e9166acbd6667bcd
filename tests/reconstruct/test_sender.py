"""The inference gives back the state of a sender that was simulated by a slow twin, from its packets alone."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import polars as pl
import pytest

from tests.naive import sender as naive
from tests.reconstruct.inferred import inferred_of
from tests.reconstruct.packets import FlowFacts, FlowPackets
from tracetool import tables
from tracetool.kernels.senders import segment_bytes, timestamp_tick

FACTS = FlowFacts(1460, 1460, 7, 7, True, True, False, None, syn_seen=True, vantage="sender")
SENDERS = {
    "reno": ("reno", {}, {"rate": 1000, "delay": 40_000, "queue": 40}),
    "reno, losses": ("reno", {}, {"rate": 800, "delay": 30_000, "queue": 60, "drop": frozenset({300, 301, 900, 1500})}),
    "reno, timeout": ("reno", {}, {"rate": 500, "delay": 50_000, "queue": 30, "drop": frozenset(range(60, 95))}),
    "cubic, HyStart": ("cubic", {"hystart": True}, {"rate": 2000, "delay": 40_000, "queue": 80}),
    "cubic": ("cubic", {}, {"rate": 1500, "delay": 30_000, "queue": 120}),
}


def simulated(name, seconds=5):
    cc, more, path = SENDERS[name]
    rows, truth = naive.run(cc, naive.Path(**path), seconds, **more)
    return FlowPackets(**naive.packets(rows)), np.array(truth)


@pytest.fixture(scope="module", params=SENDERS)
def case(request):
    packets, truth = simulated(request.param)
    return request.param, packets, truth, inferred_of(packets, FACTS)


def test_one_sample_stands_at_each_ack(case):
    _, _packets, truth, inferred = case
    times = inferred.samples["time"].to_physical().to_numpy() // 1000
    assert np.array_equal(times, truth[:, 0])


def test_cwnd_is_the_senders(case):
    name, _, truth, inferred = case
    off = np.abs(inferred.samples["cwnd_segments"].to_numpy() - truth[:, 1])
    assert np.quantile(off, 0.99) <= (1 if name.startswith("reno") else 2)


def test_ssthresh_is_the_senders(case):
    _, _, truth, inferred = case
    found = inferred.samples["ssthresh_segments"].fill_null(naive.INFINITE).to_numpy()
    assert (np.abs(found - truth[:, 2]) <= 1).mean() > 0.99


def test_srtt_is_the_senders(case):
    _, _, truth, inferred = case
    found = inferred.samples["srtt_ns"].to_numpy() / 1000
    assert np.quantile(np.abs(found - truth[:, 3]) / truth[:, 3], 0.9) < 0.01


def test_bounds_hold_the_window(case):
    _, _, truth, inferred = case
    low = inferred.samples["cwnd_low_segments"].to_numpy()
    high = inferred.samples["cwnd_high_segments"].fill_null(1 << 40).to_numpy()
    assert ((low <= truth[:, 1]) & (truth[:, 1] <= high)).mean() > 0.95


def test_the_congestion_control_is_named(case):
    name, _, _, inferred = case
    assert inferred.cc == name.split(",")[0]
    assert inferred.cc_confidence > 0.5


def test_the_end_of_slow_start_has_its_cause(case):
    name, _, truth, inferred = case
    first = inferred.slow_starts.row(0, named=True)
    assert first["kind"] == "start"
    assert first["exit_cause"] == {"cubic, HyStart": "hystart_train"}.get(name, "loss")
    ended = truth[truth[:, 2] < naive.INFINITE][0, 0]
    assert abs(int(first["end"].timestamp() * 1e6) - ended) <= truth[-1, 3] // 2


def test_an_exit_is_held_against_what_the_path_took_later():
    """One early loss on a path for 400 segments: the window that is left is far from it, and grows for seconds."""
    rows, _ = naive.run("reno", naive.Path(10_000, 40_000, 400, drop=frozenset({40})), 6)
    first = inferred_of(FlowPackets(**naive.packets(rows)), FACTS).slow_starts.row(0, named=True)
    assert first["exit_cause"] == "loss"
    assert first["cwnd_exit_segments"] < 60
    assert 100 < first["bdp_segments"] < 400
    assert first["verdict"] == "too_early"


def test_recoveries_have_the_factor_of_their_congestion_control(case):
    name, _, _, inferred = case
    betas = inferred.recoveries["beta"].drop_nulls().to_numpy()
    assert len(betas) > 0
    assert np.allclose(betas, 0.5 if name.startswith("reno") else 717 / 1024, atol=0.05)


def test_every_retransmission_has_its_trigger(case):
    _, packets, _, inferred = case
    sent: set[int] = set()
    again = []
    for at in np.flatnonzero(packets.outbound & (packets.payload > 0)):
        if int(packets.seq[at]) in sent:
            again.append(int(packets.frame[at]))
        sent.add(int(packets.seq[at]))
    assert inferred.retransmissions["frame"].to_list() == again
    assert set(inferred.retransmissions["trigger"]) <= {"fast", "rto"}


def test_rows_fit_their_tables(case):
    _, _, _, inferred = case
    for table in ("samples", "recoveries", "slow_starts"):
        frame = getattr(inferred, table)
        tables.cast(table, frame.with_columns(pl.lit("x").alias("input")).to_arrow())


def taken(packets, keep):
    """The packets at `keep`, as a capture that lacks the others."""
    counts = np.diff(packets.sack_offsets)[keep]
    edges = [packets.sack_edges[packets.sack_offsets[i] : packets.sack_offsets[i + 1]] for i in keep]
    columns = {
        name: getattr(packets, name)[keep] for name in packets.__slots__ if name not in {"sack_edges", "sack_offsets"}
    }
    offsets = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
    return FlowPackets(sack_edges=np.concatenate(edges).astype(np.int64), sack_offsets=offsets, **columns)


@pytest.mark.parametrize("name", ["reno", "cubic, HyStart"])
def test_a_capture_that_lacks_frames_still_shows_the_window(name):
    packets, truth = simulated(name)
    keep = np.flatnonzero(np.random.default_rng(3).random(len(packets)) > 0.01)
    inferred = inferred_of(taken(packets, keep), FACTS)
    at = np.searchsorted(truth[:, 0], inferred.samples["time"].to_physical().to_numpy() // 1000)
    off = np.abs(inferred.samples["cwnd_segments"].to_numpy() - truth[at, 1]) / truth[at, 1]
    assert np.quantile(off, 0.5) < 0.02
    assert np.quantile(off, 0.9) < 0.1
    assert inferred.cc == name.split(",")[0]


@pytest.mark.parametrize("name", ["reno", "cubic, HyStart"])
def test_a_capture_that_begins_late_shows_the_window_after_a_round_trip(name):
    packets, truth = simulated(name, 8)
    keep = np.arange(len(packets) // 4, len(packets))
    late = replace(taken(packets, keep), window=np.full(len(keep), -1))
    inferred = inferred_of(late, FlowFacts(timestamps=True, vantage="sender"))
    at = np.searchsorted(truth[:, 0], inferred.samples["time"].to_physical().to_numpy() // 1000)
    off = np.abs(inferred.samples["cwnd_segments"].to_numpy() - truth[at, 1]) / truth[at, 1]
    assert np.quantile(off, 0.5) < 0.02
    assert np.quantile(off, 0.9) < 0.1
    assert inferred.cc == name.split(",")[0]


def at_the_receiver(packets, path):
    """Half a round trip later for data (queueing aside), earlier for ACKs; what the path dropped is never seen."""
    free = 0.0
    shift = np.full(len(packets), -path.delay // 2)
    keep = np.ones(len(packets), bool)
    first = packets.time_ns[0] // 1000
    for i in np.flatnonzero(packets.outbound):
        now = int(packets.time_ns[i] // 1000 - first)
        if packets.payload[i] == 0:
            shift[i] = path.delay // 2
            continue
        if (free - now) * path.rate / 1e6 > path.queue:
            keep[i] = False
            continue
        free = max(free, float(now)) + 1e6 / path.rate
        shift[i] = int(free) + path.delay // 2 - now
    moved = replace(packets, time_ns=packets.time_ns + shift * 1000)
    order = np.argsort(moved.time_ns[keep], kind="stable")
    return taken(moved, np.flatnonzero(keep)[order])


def test_packets_as_the_receiver_saw_them_give_the_senders_window():
    packets, truth = simulated("reno")
    seen = at_the_receiver(packets, naive.Path(**SENDERS["reno"][2]))
    inferred = inferred_of(seen, replace(FACTS, vantage="receiver"))
    times = inferred.samples["time"].to_physical().to_numpy() // 1000
    at = np.clip(np.searchsorted(truth[:, 0], times), 0, len(truth) - 1)
    off = np.abs(inferred.samples["cwnd_segments"].to_numpy() - truth[at, 1]) / truth[at, 1]
    assert np.quantile(off, 0.5) < 0.05
    assert np.quantile(off, 0.9) < 0.15
    assert inferred.cc == "reno"


@pytest.mark.parametrize("name", ["reno", "cubic"])
def test_without_timestamps_a_receiver_does_not_take_the_bottlenecks_pace_for_bbrs(name):
    packets, truth = simulated(name)
    seen = at_the_receiver(packets, naive.Path(**SENDERS[name][2]))
    nothing = np.full(len(seen), -1, np.int64)
    seen = replace(seen, tsval=nothing, tsecr=nothing)
    inferred = inferred_of(seen, replace(FACTS, timestamps=False, vantage="receiver"))
    samples = inferred.samples
    at = np.clip(np.searchsorted(truth[:, 0], samples["time"].to_physical().to_numpy() // 1000), 0, len(truth) - 1)
    assert inferred.cc != "bbr"
    assert inferred.cc_confidence == 0.0
    assert samples["cwnd_high_segments"].is_null().all()
    assert (samples["cwnd_low_segments"].to_numpy() <= truth[at, 1]).mean() > 0.95


def test_acks_that_were_overtaken_change_nothing():
    packets, _ = simulated("reno, losses")
    heard = np.flatnonzero(~packets.outbound & (packets.flags == 16))
    # some ACKs come once more, after the third that followed; SACK blocks and all
    again, after = heard[:-3:5], heard[3::5][: len(heard[:-3:5])]
    order = np.insert(np.arange(len(packets)), after + 1, again)
    late = taken(packets, order)
    late = replace(late, time_ns=np.maximum.accumulate(late.time_ns))
    plain, with_late = (inferred_of(some, FACTS) for some in (packets, late))
    times = plain.samples["time"].to_physical().to_numpy()
    rows = with_late.samples.filter(~pl.int_range(pl.len()).is_in(late_rows(order, again, late)))
    assert np.array_equal(rows["time"].to_physical().to_numpy(), times)
    for name in ("cwnd_segments", "ssthresh_segments", "srtt_ns", "ca_state"):
        assert rows[name].to_list() == plain.samples[name].to_list(), name
    assert with_late.recoveries.height == plain.recoveries.height
    assert not with_late.recoveries["undone"].any()


def late_rows(order, again, late):
    """Which samples are of ACKs that came once more: there is one of each ACK."""
    acks = np.flatnonzero(~late.outbound & (late.flags == 16))
    first_seen: set[int] = set()
    rows = []
    for row, packet in enumerate(order[acks].tolist()):
        if packet in first_seen:
            rows.append(row)
        first_seen.add(packet)
    assert len(rows) == len(again)
    return rows


def test_a_window_that_is_always_taken_back_is_not_what_holds_a_sender():
    """A socket that must not send more than a segment a millisecond, over 40 ms: 40 segments, whatever its window."""
    flags, stamp, rows = 16, 5000, []
    sent = acked = 0
    window, least = 10, 40
    rows.append((0, True, 0, -1, 0, 2))
    rows.append((least, False, 0, 1, 0, 18))
    rows.append((least, True, 1, 1, 0, flags))
    due: list[int] = []
    for now in range(least, 3000):
        while due and due[0] <= now:
            due.pop(0)
            acked += 1
            # the kernel lets a window grow to twice of what it is used, in slow start
            window += window < 2 * least
            rows.append((now, False, 1, 1 + acked * naive.MSS, 0, flags))
        if sent - acked < window:
            rows.append((now + 0.4, True, 1 + sent * naive.MSS, 1, naive.MSS, flags))
            due.append(now + least)
            sent += 1
    columns = {
        name: [row[k] for row in rows] for k, name in enumerate(("time", "out", "seq", "ack", "payload", "flags"))
    }
    columns["time"] = [naive.START_US + round(1000 * time) for time in columns["time"]]
    columns["tsval"] = [stamp + time // 1000 for time in columns["time"]]
    columns["tsecr"] = [max(0, tsval - least) for tsval in columns["tsval"]]
    columns["sack"] = [[] for _ in rows]
    inferred = inferred_of(FlowPackets(**naive.packets(columns)), FACTS)
    later = inferred.samples.tail(2000)
    low, high = later["cwnd_low_segments"].to_numpy(), later["cwnd_high_segments"].fill_null(1 << 40).to_numpy()
    assert ((low <= 2 * least) & (2 * least <= high)).all()
    assert set(later["limited_by"].to_list()) <= {"pacing", "app"}
    assert inferred.cc_confidence < 0.5


def test_segment_size_and_clock():
    packets, _ = simulated("reno", 1)
    sizes = packets.outbound, packets.payload, packets.segments.astype(np.int64)
    assert segment_bytes(*sizes, FACTS.mss_bytes, FACTS.mss_own_bytes, 1) == naive.MSS
    assert segment_bytes(*sizes, -1, -1, -1) == naive.MSS
    assert timestamp_tick(packets.outbound, packets.tsval, packets.time_ns) == 1_000_000


def trickle(writes, segments, every_us, rtt_us):
    """An application that writes some segments every so often, which are acknowledged long before the next."""
    rows = {name: [] for name in ("time", "out", "seq", "ack", "payload", "flags", "tsval", "tsecr", "sack")}

    def row(time, out, *values):
        for name, value in zip(rows, (naive.START_US + time, out, *values, []), strict=True):
            rows[name].append(value)

    row(0, True, 0, -1, 0, 2, 5000, 0)
    row(rtt_us, False, 0, 1, 0, 18, 9000, 5000)
    row(rtt_us, True, 1, 1, 0, 16, 5000, 9000)
    for number in range(writes):
        now, stamp = (number + 1) * every_us, (number + 1) * every_us // 1000
        for k in range(segments):
            seq = 1 + (number * segments + k) * naive.MSS
            row(now + k, True, seq, 1, naive.MSS, 16, 5000 + stamp, 9000 + stamp)
        row(now + rtt_us, False, 1, 1 + (number + 1) * segments * naive.MSS, 0, 16, 9000 + stamp, 5000 + stamp)
    return FlowPackets(**naive.packets(rows))


@pytest.mark.parametrize("rtt_us", [100, 900])
@pytest.mark.parametrize("segments", [1, 4, 9])
def test_who_waits_for_the_application_is_not_named_for_it(segments, rtt_us):
    """Data far apart, and a window that is never filled, are no sign of BBR's pacing."""
    inferred = inferred_of(trickle(400, segments, 2000, rtt_us), FACTS)
    assert inferred.cc != "bbr"
    assert inferred.cc_confidence == 0.0
    assert inferred.samples["cwnd_segments"].min() >= 10
    assert set(inferred.samples["limited_by"][1:]) == {"app"}


def test_a_window_that_little_data_cannot_fill_stays_as_it_began():
    inferred = inferred_of(trickle(8, 1, 500_000, 40_000), FACTS)
    assert inferred.cc is None
    assert inferred.samples["cwnd_segments"].min() == 10
    assert inferred.slow_starts["exit_cause"].to_list() == ["none"]


def test_an_empty_flow_has_no_rows():
    packets, _ = simulated("reno", 1)
    nothing = taken(packets, np.arange(1))
    inferred = inferred_of(nothing, FACTS)
    assert inferred.samples.height == 0
    assert inferred.slow_starts.height == 0
    assert inferred.recoveries.height == 0
    assert inferred.cc is None


def test_times_may_end_where_their_numbers_do():
    """Slow start ends in the last round trip before the end of time, 2262."""
    packets, _ = simulated("cubic, HyStart")
    starts = inferred_of(packets, FACTS).slow_starts
    left = starts.row(0, named=True)
    end = starts["end"].to_physical()[0]
    seen = np.flatnonzero(packets.time_ns <= end + left["rtt_exit_ns"])
    short = taken(packets, seen)
    moved = replace(short, time_ns=short.time_ns + (np.iinfo(np.int64).max - short.time_ns[-1]))
    again = inferred_of(moved, FACTS).slow_starts.row(0, named=True)
    assert again["cwnd_exit_segments"] == left["cwnd_exit_segments"]
