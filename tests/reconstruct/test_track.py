"""The tracking kernels do exactly what their slow twins do, on traffic with every oddity they must live through."""

from __future__ import annotations

import numpy as np
import pytest

from tests.naive import track_marks, tracks
from tests.reconstruct.traffic import ACK, MS, SYN, Packet, arrays, simulate
from tracetool.kernels import track, track_acks, track_copies, track_vantage, track_window
from tracetool.kernels import track_reasons as why
from tracetool.kernels.track_memory import RECENT, TICKS
from tracetool.kernels.track_segments import CAPACITY, FIELDS, append, cut, find, make_room
from tracetool.reconstruct.vantage import vantage

VARIANTS = [
    {},
    {"sack": False},
    {"stamps": False, "ids": False},
    {"stamps": False, "reorder": 0.3},
    {"reorder": 0.3, "missed": 0.0},
    {"missed": 0.2},
    {"loss": 0.3, "super_frames": False},
]


def tracked(packets, *, behind=0, sack_ok=True, capacity=CAPACITY):
    size = len(packets)
    columns = arrays(packets)
    out = {
        **{name: np.zeros(size, np.uint8) for name in ("kind", "trigger", "evidence")},
        **{name: np.zeros(size, np.int64) for name in ("again", "again_segments")},
        "missing_at": np.full((size, 2), -1, np.int64),
        "missing": np.zeros((size, 2), np.int64),
        "rtt": np.full(size, -1, np.int64),
        "rtt_seq": np.full(size, -1, np.int64),
        "rtt_full": np.zeros(size, np.uint8),
        "rtt_ticks": np.full(size, -1, np.int64),
        "totals": np.zeros((1, 2, track.TOTALS), np.int64),
    }
    names = ("time", "way", "seq", "ack", "payload", "segments", "flags", "window", "tsval", "tsecr", "ip_id", "copy",
             "sack_at", "sacks")  # fmt: skip
    track.track(
        np.array([0, size]), *(columns[name] for name in names), np.array([behind, behind]),
        np.array([sack_ok], np.uint8), np.zeros((capacity, FIELDS), np.int64), np.zeros((TICKS, 2), np.int64),
        np.zeros((RECENT, 4), np.int64), *out.values(),
    )  # fmt: skip
    return out


def compare(packets, *, behind=0, sack_ok=True):
    """Assert that kernel and twin agree on every output; returns the kernel's."""
    mine = tracked(packets, behind=behind, sack_ok=sack_ok)
    twins = [tracks.Sender(packets, side, behind, sack_ok).run() for side in (0, 1)]
    for name in tracks.FIELDS:
        column = mine[name]
        expected = np.full_like(column, -1 if name in {"missing_at", "rtt", "rtt_seq", "rtt_ticks"} else 0)
        for twin in twins:
            for at, value in getattr(twin.out, name).items():
                expected[at] = value
        different = np.argwhere(column != expected)
        assert not len(different), (
            f"{name}: packet {different[0]}: {column[tuple(different[0])]} != {expected[tuple(different[0])]}"
        )
    for side, twin in enumerate(twins):
        assert mine["totals"][0, side].tolist() == list(twin.total.values())
    return mine


@pytest.mark.parametrize("variant", VARIANTS, ids=str)
@pytest.mark.parametrize("seed", range(8))
def test_track_equals_its_twin(variant, seed):
    packets = simulate(seed, **variant)
    compare(packets, sack_ok=variant.get("sack", True), behind=(seed % 3) * 10 * MS)


def test_the_traffic_meets_every_kind_and_trigger():
    kinds, triggers, evidence = set(), set(), set()
    for variant in VARIANTS:
        for seed in range(12):
            out = tracked(simulate(seed, **variant), sack_ok=variant.get("sack", True))
            kinds |= set(out["kind"].tolist())
            triggers |= set(out["trigger"].tolist())
            evidence |= set(out["evidence"].tolist())
    assert kinds == set(range(7))
    assert triggers >= {why.FAST, why.RTO, why.TLP}
    assert evidence >= {
        why.BY_SACK, why.BY_DUPLICATE_ACKS, why.BY_SILENCE, why.BY_DSACK, why.FILLS_HOLE_IP_ID, why.FILLS_HOLE_TSVAL,
        why.FILLS_HOLE_TIME,
    }  # fmt: skip


def test_a_full_list_forgets_its_oldest_segments_and_goes_on():
    # No ACK is ever captured: with room for 64 segments, the last ones are still told from new ones.
    packets = [Packet(n * MS, 0, 1 + 1000 * n, 1, 1000, 1) for n in range(500)]
    packets.append(Packet(600 * MS, 0, 1 + 1000 * 495, 1, 1000, 1))
    out = tracked(packets, capacity=64)
    assert out["kind"][-1] == track.RETRANSMISSION
    assert out["again"][-1] == 1000
    assert out["totals"][0, 0, track.UNIQUE] == 500_000


def test_hostile_numbers_are_left_alone():
    rnd = np.random.default_rng(5)
    packets = [
        Packet(
            int(t), int(w), int(s), int(a), int(p), 1, int(f), int(win), int(v), int(e), int(i), sorted(map(int, edges))
        )
        for t, w, s, a, p, f, win, v, e, i, *edges in zip(
            *(rnd.integers(0, high, 3000) for high in (2**62, 2, 2**40, 2**40, 65536, 512, 2**30, 2**32, 2**32, 65536)),
            *(rnd.integers(-(2**40), 2**40, 3000) for _ in range(8)),
            strict=True,
        )
    ]
    tracked(packets)  # returns, in bounds


def test_segments_are_cut_and_found():
    rows = np.zeros((64, FIELDS), np.int64)
    tail = append(rows, 0, 100, 400, 7, 1, 3)
    tail = append(rows, tail, 400, 500, 8, 1, 4)
    tail = cut(rows, tail, 0, 250)
    assert rows[:tail, :2].tolist() == [[100, 250], [250, 400], [400, 500]]
    assert [find(rows, 0, tail, seq) for seq in (0, 100, 249, 250, 499, 500)] == [0, 0, 0, 1, 2, 3]
    assert cut(rows, tail, 1, 400) == tail, "a number at the edge cuts nothing"
    head = 0
    for number in range(60):
        head, tail = make_room(rows, head, tail)
        tail = append(rows, tail, 500 + number, 501 + number, 9, 1, 5)
    assert rows[tail - 1, 1] == 560
    assert 0 <= head < tail <= 64


@pytest.mark.parametrize("seed", range(20))
def test_copies_are_found(seed):
    rnd = np.random.default_rng(seed)
    packets = []
    for packet in simulate(seed, ids=bool(seed % 2)):
        packets.append(packet)
        while rnd.random() < (0.5 if seed % 3 else 0.05):
            packets.append(Packet(**{**vars(packet), "time": packet.time + int(rnd.integers(0, 2 * MS))}))
    packets.sort(key=lambda p: p.time)
    columns, size = arrays(packets), len(packets)
    copy = np.zeros(size, np.uint8)
    names = ("time", "way", "seq", "ack", "payload", "flags", "window", "tsval", "tsecr", "ip_id", "sack_at", "sacks")
    track_copies.find_copies(
        np.array([0, size]), *(columns[name] for name in names), np.zeros(track_copies.BUCKETS, np.int64),
        np.zeros(size, np.int64), np.zeros(size, np.int64), copy,
    )  # fmt: skip
    assert set(np.flatnonzero(copy).tolist()) == track_marks.copies(packets)


@pytest.mark.parametrize("seed", range(20))
def test_echoes_acknowledgements_and_outstanding_data(seed):
    packets = simulate(seed, count=60, **VARIANTS[seed % len(VARIANTS)])
    columns, size = arrays(packets), len(packets)
    bounds = np.array([0, size])
    echo, hand = np.full((1, 2), -1, np.int64), np.full((1, 2), -1, np.int64)
    take = lambda *names: [columns[name] for name in names]  # noqa: E731
    names = ("time", "way", "payload", "flags", "tsval", "tsecr", "copy")
    track_vantage.find_echoes(bounds, *take(*names), np.zeros((8192, 2), np.int64), echo, hand)
    assert list(zip(echo[0].tolist(), hand[0].tolist(), strict=True)) == track_marks.echoes(packets)
    marks, duplicates = np.zeros(size, np.uint8), np.zeros(size, np.int64)
    track_acks.read_acks(
        bounds, *take("way", "seq", "ack", "payload", "flags", "window", "window", "copy"), marks, duplicates
    )
    for side in (0, 1):
        for at, expected in track_marks.acks(packets, side).items():
            assert (marks[at], duplicates[at]) == expected, f"packet {at}"
    window = np.zeros((1, 2, track_window.FIELDS))
    track_window.measure_window(bounds, *take("time", "way", "seq", "ack", "payload", "flags", "copy"), window)
    for side in (0, 1):
        assert window[0, side].tolist() == pytest.approx(list(track_marks.outstanding(packets, side).values()))


@pytest.mark.parametrize(
    ("ahead", "waited", "place"),
    [
        (40 * MS, 2 * MS, "sender"),  # answered so soon that it is beside the sender, whatever it waited for
        (40 * MS, 400 * MS, "unknown"),
        (MS // 10, 400 * MS, "receiver"),
    ],
)
def test_data_is_no_echo_of_a_syn_ack_whose_answer_is_missing(ahead, waited, place):
    handshake = [Packet(10**18, 0, 0, -1, 0, 0, SYN, 65536, -1, 0, 1)]
    handshake.append(Packet(handshake[-1].time + ahead, 1, 0, 1, 0, 0, SYN | ACK, 65536, -1, 0, 1))
    packets = [*handshake, Packet(handshake[-1].time + waited, 0, 1, 1, 20, 1, ACK, 65536, -1, 0, 2)]
    columns = arrays(packets)
    echo, hand = np.full((1, 2), -1, np.int64), np.full((1, 2), -1, np.int64)
    names = ("time", "way", "payload", "flags", "tsval", "tsecr", "copy")
    track_vantage.find_echoes(
        np.array([0, 3]), *(columns[name] for name in names), np.zeros((64, 2), np.int64), echo, hand
    )
    assert vantage(echo, np.array([[20, 0]])) == [place]
    assert hand.tolist() == [[ahead, -1]]


def test_a_flow_is_not_disturbed_by_the_one_before():
    one, two = simulate(1), simulate(2)
    both = arrays([*one, *two])
    alone = tracked(two)
    size = len(one) + len(two)
    kind = np.zeros(size, np.uint8)
    names = ("time", "way", "seq", "ack", "payload", "segments", "flags", "window", "tsval", "tsecr", "ip_id", "copy",
             "sack_at", "sacks")  # fmt: skip
    room = [np.zeros(shape, np.int64) for shape in ((CAPACITY, FIELDS), (TICKS, 2), (RECENT, 4))]
    wide = np.zeros((size, 2), np.int64)

    def small():
        return np.zeros(size, np.uint8)

    def whole():
        return np.zeros(size, np.int64)

    track.track(
        np.array([0, len(one), size]), *(both[name] for name in names), np.zeros(4, np.int64), np.ones(2, np.uint8),
        *room, kind, small(), small(), whole(), whole(), wide, wide.copy(), whole(), whole(), small(), whole(),
        np.zeros((2, 2, track.TOTALS), np.int64),
    )  # fmt: skip
    assert kind[len(one) :].tolist() == alone["kind"].tolist()
    assert ACK == 16
