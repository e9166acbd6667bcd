"""Packets that are packed slice by slice come back as columns by flow and frame, whatever their numbers are."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.naive import packets as naive
from tracetool.kernels import packet_columns as pc
from tracetool.kernels import packet_records as pr
from tracetool.reconstruct.batch import batch_of
from tracetool.reconstruct.whole_flows import COLUMNS, Packed, packed

SEEDS = st.integers(0, 2**32 - 1)
MANY = settings(max_examples=150, deadline=None)
KINDS = {
    "frame": "i8", "time": "i8", "flow": "i4", "payload_bytes": "i8", "segments": "i4", "frame_bytes": "i8",
    "captured_bytes": "i8", "seq": "i8", "ack": "i8", "flags": "u2", "window_bytes": "i8", "window_raw": "u2",
    "tsval": "i8", "tsecr": "i8", "ip_id": "i4", "ecn": "u1", "interface": "i4",
}  # fmt: skip
NULLABLE = [*KINDS][7:]
#: Steps from one number to the next: none, and those at which a record takes two, four and eight bytes.
STEPS = (0, 0, 0, 0, 1, -1, 0x7FFF, 0x8000, -0x8000, -0x8001, 0x7FFFFFFF, 0x80000000, -0x80000000, -0x80000001, 1 << 62)


def numbers(rng, size, kind):
    """Numbers that mostly stand still, of all sizes that a column has."""
    info = np.iinfo(kind)
    low = -1 if kind == "i4" else 0
    walk = np.cumsum(rng.choice(np.array(STEPS, "i8"), size)) if kind == "i8" else rng.choice([low, 1, info.max], size)
    return walk.astype(kind)


def table(rng, size, flows, frames):
    """Rows of `packets`, with all that a capture may hold."""
    columns = {
        name: pa.array(numbers(rng, size, kind), mask=rng.random(size) < rng.choice([0, 0.3]))
        if name in NULLABLE
        else pa.array(numbers(rng, size, kind))
        for name, kind in KINDS.items()
    }
    columns["ecn"] = pa.array(rng.integers(0, 4, size).astype("u1"), mask=rng.random(size) < 0.2)
    columns["flow"] = pa.array(rng.integers(3, 3 + flows, size).astype("i4"))
    columns["frame"] = pa.array(frames)
    columns["direction"] = pa.array(rng.choice(["a2b", "b2a"], size).tolist()).dictionary_encode()
    blocks = [None if count < 0 else rng.integers(-9, 99, 2 * count).tolist() for count in rng.integers(-3, 4, size)]
    columns["sack"] = pa.array(blocks, pa.list_(pa.int64()))
    return pa.RecordBatch.from_pydict({name: columns[name] for name in COLUMNS})


@given(SEEDS, st.integers(1, 60), st.integers(1, 4), st.integers(1, 3), st.booleans())
@MANY
def test_packed_packets_become_columns_by_flow_and_frame(seed, size, flows, slices, sorted_):
    rng = np.random.default_rng(seed)
    # some frame numbers twice, as only a foreign dataset has them
    frames = np.sort(rng.integers(0, 2 * size, size)) if sorted_ else rng.permutation(size)
    rows = table(rng, size, flows, frames)
    batch_of_flow = np.sort(rng.integers(-1, 2, 3 + flows))  # some flows are not wanted
    parts, counts, read = {}, {}, []
    cuts = [0, *sorted(rng.integers(0, size + 1, slices - 1).tolist()), size]
    if sorted_:  # slice by slice; else as no dataset has them
        told = rows.to_pylist()
        order = [
            at
            for begin, end in pairwise(cuts)
            for at in sorted(range(begin, end), key=lambda at: (told[at]["flow"], told[at]["direction"]))
        ]
        rows = rows.take(pa.array(order))
    for begin, end in pairwise(cuts):
        piece = rows.slice(begin, end - begin)  # bits and edges that do not begin at 0, too
        if not piece.num_rows:
            continue
        content, places = packed(piece, batch_of_flow)
        start = 0
        for batch, many, edges, stop in places.tolist():
            parts.setdefault(batch, []).append(content[start:stop])
            counts[batch] = np.add(counts.get(batch, (0, 0)), (many, edges))
            start = stop
        assert start == len(content)
        read += piece.to_pylist()
    assert sorted(parts) == sorted({batch_of_flow[row["flow"]] for row in read} - {-1})
    spare = np.full(pr.SPARE_BYTES, 99, np.uint8)
    for batch, some in parts.items():
        mine = [row for row in read if batch_of_flow[row["flow"]] == batch]
        made, expected = batch_of(Packed(np.concatenate([*some, spare]), *counts[batch].tolist())), naive.columns(mine)
        assert made.flows[made.flow].tolist() == expected["flow"]
        for name in naive.NUMBERS:
            assert made.columns[getattr(pr, name), :-1].tolist() == expected[name], name
        assert [made.way.tolist(), made.ecn.tolist(), made.interface.tolist()] == [
            expected["way"], expected["ecn"], expected["interface"],
        ]  # fmt: skip
        assert [made.sacks[a:b].tolist() for a, b in pairwise(made.sack_at.tolist())] == expected["sack"]


@pytest.mark.parametrize("size", [10, 1000])
def test_a_usual_packet_takes_few_bytes(size):
    """Data of full segments, each a millisecond after the one before, and its ACKs."""
    n = np.arange(size)
    data = n % 3 < 2
    whole = {name: np.zeros(size, kind) for name, kind in KINDS.items()}
    whole |= {"frame": 20 * n, "time": 1_000_000 * n, "payload_bytes": 1448 * data, "segments": data.astype("i4")}
    whole |= {"seq": np.cumsum(1448 * data), "ack": np.where(data, 1, np.cumsum(1448 * data)), "tsval": n, "tsecr": n}
    whole["frame_bytes"] = 66 + whole["payload_bytes"]
    whole["captured_bytes"] = whole["frame_bytes"]
    rows = {name: pa.array(values.astype(KINDS[name])) for name, values in whole.items()}
    rows["direction"] = pa.array(np.where(data, "a2b", "b2a").tolist()).dictionary_encode()
    rows["sack"] = pa.array([None] * size, pa.list_(pa.int64()))
    rows = pa.RecordBatch.from_pydict({name: rows[name] for name in COLUMNS})
    rows = rows.take(pa.array(np.argsort(~data, kind="stable")))
    content, places = packed(rows, np.zeros(1, np.int64))
    assert places[:, :3].tolist() == [[0, size, 0]]
    assert len(content) < 18 * size + 200


@given(st.lists(st.integers(0, 9), max_size=60))
@MANY
def test_positions_are_sorted_by_frame_and_equal_ones_stay(frames):
    """Frames that stand several times, too, as only a foreign dataset has them."""
    order, other = np.arange(len(frames)), np.empty(len(frames), np.int64)
    pc.sort_by_frame(order, np.array(frames, np.int64), 0, len(frames), other)
    assert order.tolist() == sorted(range(len(frames)), key=frames.__getitem__)
