"""The kernels agree with their slow twins on anything."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tests.naive import reordering as naive
from tests.naive import rtt_data_ack as naive_rtt
from tracetool.kernels import reordering as kernels
from tracetool.metrics.reorder_density import rfc5236
from tracetool.metrics.reordering import rfc4737
from tracetool.metrics.rtt import rtt_data_ack

SENT = st.lists(st.integers(1, 30), unique=True, min_size=1, max_size=25)


@given(SENT, st.data())
def test_reordering_kernels(sent, data):
    payload = data.draw(st.lists(st.integers(0, 1500), min_size=len(sent), max_size=len(sent)))
    array, out = np.array(sent), np.empty(len(sent), np.int64)
    kernels.n_reordering(array, out)
    assert out.tolist() == naive.n_reordering(sent)
    kernels.byte_offset(np.searchsorted(np.sort(array), array), np.array(payload), out)
    assert out.tolist() == naive.byte_offset(sent, payload)


@given(SENT, st.integers(0, 30))
def test_density_kernels(sent, threshold):
    position = np.full(max(sent) + 1, -1)
    position[sent] = range(len(sent))
    shift, kept = np.zeros(len(sent), np.int64), np.zeros(len(sent), bool)
    kernels.displacement(np.array(sent), position, threshold, shift, kept)
    found = [int(value) if known else None for value, known in zip(shift, kept, strict=True)]
    assert found == naive.displacement(sent, threshold)
    occupancy = np.empty(len(sent), np.int64)
    kernels.buffer_occupancy(np.array(sent), max(sent), threshold, occupancy)
    assert occupancy.tolist() == naive.buffer_occupancy(sent, threshold)


@given(st.lists(st.tuples(st.booleans(), st.integers(0, 12), st.integers(1, 4)), max_size=40))
def test_rtt_kernel(moves):
    rows = [(ack, 10 * k, start, start + length) for k, (ack, start, length) in enumerate(moves)]
    columns = [list(column) for column in zip(*rows, strict=True)] or [[], [], [], []]
    found = rtt_data_ack(*columns)
    assert (found.samples_ns, found.cumulative, found.nosample, found.ambiguous) == naive_rtt.rtt_data_ack(rows)


@given(st.lists(st.integers(1, 40), min_size=1, max_size=40))
def test_reordering_by_definition(arrivals):
    sent = list(dict.fromkeys(arrivals))
    found = rfc4737(arrivals)
    late = [i for i, index in enumerate(sent) if any(before > index for before in sent[:i])]
    assert found.positions == late
    earliest = [next(j for j, before in enumerate(sent) if before > sent[i]) for i in late]
    assert found.extent == [i - j for i, j in zip(late, earliest, strict=True)]
    assert sum(found.runs) + len(late) + found.in_order_after == len(sent)


@given(SENT)
def test_densities_add_up(sent):
    found = rfc5236(sent)
    assert abs(sum(found.rd.values()) - 1) < 1e-9
    assert abs(sum(found.rbd.values()) - 1) < 1e-9
    if sent == sorted(sent):
        assert set(found.rd) == {0}
