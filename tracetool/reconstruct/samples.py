"""Rows of `samples` of many replayed senders."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from tracetool.kernels import sample_rows as sr
from tracetool.reconstruct.batch import DIRECTIONS
from tracetool.reconstruct.memory import empty

if TYPE_CHECKING:
    import numpy.typing as npt

    from tracetool.reconstruct.sender import Inferred

    Ints = npt.NDArray[np.int64]

STATES = ("open", "disorder", "cwr", "recovery", "loss")
PHASES = (
    "slow_start", "congestion_avoidance", "recovery", "loss", "startup", "drain", "probe_bw", "probe_rtt",
)  # fmt: skip
LIMITS = ("cwnd", "rwnd", "app", "pacing", "unknown")
#: Columns by the rows of the numbers that `kernels.sample_rows` writes.
NUMBERS = (
    "time", "cwnd_segments", "cwnd_low_segments", "cwnd_high_segments", "ssthresh_segments", "srtt_ns", "rttvar_ns",
    "min_rtt_ns", "inflight_bytes", "mss_bytes", "snd_una", "snd_nxt", "snd_wnd_bytes", "pacing_rate_bps",
    "lost_segments", "sacked_segments", "retransmitted_segments", "delivered_segments",
)  # fmt: skip
BASES = ("replayed", "assumed", "fitted")
WORDS = {"phase": PHASES, "limited_by": LIMITS, "ca_state": STATES, "ssthresh_basis": BASES}
#: Columns that may be unknown.
UNKNOWN = frozenset(
    {
        "cwnd_high_segments", "ssthresh_segments", "srtt_ns", "rttvar_ns", "min_rtt_ns", "snd_wnd_bytes",
        "pacing_rate_bps",
    }
)  # fmt: skip


def samples_table(found: Inferred, flows: Ints, ways: Ints) -> pa.Table:
    """State of senders before each ACK, with bounds of their windows: rows of `samples` without the column `input`.

    Parameters
    ----------
    found
        What the inference says of them.
    flows, ways
        Flow number of each, and the direction of its data (0 for a2b).

    Returns
    -------
    pyarrow.Table
        Words are dictionaries.

    Examples
    --------
    >>> samples_table(infer(batch, copy, asked, known), flows, ways).num_rows  # doctest: +SKIP
    2911
    """
    replayed, choices = found.replayed, found.choices
    numbers = empty((sr.NUMBERS, len(replayed.events)))
    words = np.empty((sr.WORDS, len(replayed.events)), np.uint8)
    ends = np.zeros(len(flows), np.int64)
    size = sr.sample_rows_of_all(
        replayed.events, replayed.at, choices.window, choices.low, choices.high, replayed.mss, choices.table,
        choices.choice, choices.told, numbers, words, ends,
    )  # fmt: skip
    rows = np.diff(ends, prepend=0)
    known = sorted({name for name in found.cc if name is not None})
    cc = np.array([-1 if name is None else known.index(name) for name in found.cc], np.int8)
    columns = {
        "flow": pa.array(np.repeat(flows.astype(np.int32), rows)),
        "direction": dictionary(np.repeat(ways.astype(np.int8), rows), DIRECTIONS),
        "origin": dictionary(np.zeros(size, np.int8), ("inferred",)),
        **{
            name: unless_negative(numbers[at, :size]) if name in UNKNOWN else pa.array(numbers[at, :size])
            for at, name in enumerate(NUMBERS)
        },
        **{name: dictionary(words[at, :size].view(np.int8), WORDS[name]) for at, name in enumerate(WORDS)},
        "cc": dictionary(np.repeat(cc, rows), tuple(known)),
    }
    columns["time"] = columns["time"].view(pa.timestamp("ns", "UTC"))
    return pa.table(columns)


def unless_negative(values: npt.NDArray[np.signedinteger[Any]]) -> pa.Array:
    """Numbers as an Arrow array, in the same memory; those below 0 are null."""
    values = np.ascontiguousarray(values)
    known = values >= 0
    unknown = len(values) - np.count_nonzero(known)
    bits = pa.py_buffer(np.packbits(known, bitorder="little")) if unknown else None
    return pa.Array.from_buffers(pa.from_numpy_dtype(values.dtype), len(values), [bits, pa.py_buffer(values)], unknown)


def dictionary(codes: npt.NDArray[np.signedinteger[Any]], words: tuple[str, ...]) -> pa.DictionaryArray:
    """Words by their positions; a negative one is null. Words may be there twice."""
    moved, known = _distinct(words)
    codes = codes.astype(np.int8, copy=False)
    if moved is not None:  # else Parquet's dictionary page ends with whatever was in memory
        codes = np.where(codes < 0, np.int8(-1), moved[codes])
    return pa.DictionaryArray.from_arrays(unless_negative(codes), known)


@functools.cache
def _distinct(words: tuple[str, ...]) -> tuple[npt.NDArray[np.int8] | None, pa.Array]:
    """Words without those that are there twice, and where each is then; None: where it was."""
    places = {word: at for at, word in enumerate(dict.fromkeys(words))}
    moved = np.array([places[word] for word in words], np.int8) if len(places) < len(words) else None
    return moved, pa.array(places, pa.string())
