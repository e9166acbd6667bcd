"""Kernels of the reordering metrics (RFC 4737 and RFC 5236)."""

from __future__ import annotations

import numpy as np

from tracetool.kernels._jit import kernel


@kernel
def n_reordering(send_index: np.ndarray, n_out: np.ndarray) -> None:
    """Write how many arrivals just before each one all have larger send indices (RFC 4737 section 5.2).

    A stack of positions with rising indices finds the nearest earlier arrival with a smaller one.
    """
    stack = np.empty(send_index.size, np.int64)
    depth = 0
    for i in range(send_index.size):
        while depth > 0 and send_index[stack[depth - 1]] > send_index[i]:
            depth -= 1
        n_out[i] = i - 1 - stack[depth - 1] if depth > 0 else i
        stack[depth] = i
        depth += 1


@kernel
def byte_offset(rank: np.ndarray, payload_bytes: np.ndarray, offset_out: np.ndarray) -> None:
    """Write the payload of all earlier arrivals with larger send indices (RFC 4737 section 4.4).

    A Fenwick tree over the ranks (0 … n-1, all different) keeps n packets at n·log n steps.
    """
    size = rank.size
    tree = np.zeros(size + 1, np.int64)
    total = 0
    for i in range(size):
        below = 0
        node = rank[i] + 1
        while node > 0:
            below += tree[node]
            node -= node & -node
        offset_out[i] = total - below
        node = rank[i] + 1
        while node <= size:
            tree[node] += payload_bytes[i]
            node += node & -node
        total += payload_bytes[i]


@kernel
def displacement(
    send_index: np.ndarray, position: np.ndarray, threshold: int, displacement_out: np.ndarray, kept_out: np.ndarray
) -> None:
    """Write each arrival's displacement from its receive index (RFC 5236 section 5).

    ``position[s]`` is the arrival of send index ``s`` (1-based), -1 where it never arrives. A
    receive index that neither arrived early nor arrives within ``threshold`` is skipped as lost;
    an arrival displaced further than that is discarded.
    """
    receive_index = 1
    last = position.size - 1
    early = np.zeros(position.size, np.bool_)
    for i in range(send_index.size):
        while receive_index <= last and not (
            early[receive_index] or (position[receive_index] >= i and position[receive_index] <= i + threshold)
        ):
            receive_index += 1
        shift = receive_index - send_index[i]
        if abs(shift) <= threshold:
            displacement_out[i] = shift
            kept_out[i] = True
            early[send_index[i]] = shift < 0
            receive_index += 1


@kernel
def buffer_occupancy(send_index: np.ndarray, span: int, threshold: int, occupancy_out: np.ndarray) -> None:
    """Write how many packets a reassembly buffer holds after each arrival (RFC 5236 section 6).

    When it would hold more than ``threshold``, the expected packet is taken as lost.
    """
    held = np.zeros(span + 2, np.bool_)
    occupancy = 0
    expected = 1
    for i in range(send_index.size):
        index = send_index[i]
        if index > expected:
            held[index] = True
            occupancy += 1
        elif index == expected:
            expected += 1
        if occupancy > threshold:
            while not held[expected]:
                expected += 1
        while expected <= span and held[expected]:
            held[expected] = False
            occupancy -= 1
            expected += 1
        occupancy_out[i] = occupancy
