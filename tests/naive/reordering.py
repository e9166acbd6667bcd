"""Slow, obvious twins of tracetool/kernels/reordering.py, straight from the RFCs' definitions."""

from __future__ import annotations


def n_reordering(sent):
    depths = []
    for i, index in enumerate(sent):
        n = 0
        while n < i and sent[i - n - 1] > index:
            n += 1
        depths.append(n)
    return depths


def byte_offset(sent, payload):
    return [sum(p for s, p in zip(sent[:i], payload[:i], strict=True) if s > sent[i]) for i in range(len(sent))]


def displacement(sent, threshold):
    """RFC 5236 section 5 as written: a window of arrivals to come and a buffer of early ones."""
    waiting, early, shifts = list(sent), set(), []
    receive_index = 1
    while waiting:
        window = waiting[: threshold + 1]
        if receive_index <= max(sent) and receive_index not in window and receive_index not in early:
            receive_index += 1
            continue
        index = waiting.pop(0)
        shift = receive_index - index
        if abs(shift) > threshold:
            shifts.append(None)
            continue
        shifts.append(shift)
        early.discard(receive_index)
        if shift < 0:
            early.add(index)
        receive_index += 1
    return shifts


def buffer_occupancy(sent, threshold):
    held, expected, sizes = set(), 1, []
    for index in sent:
        if index >= expected:
            held.add(index)
        if expected not in held and len(held) > threshold:
            expected = min(held)
        while expected in held:
            held.remove(expected)
            expected += 1
        sizes.append(len(held))
    return sizes
