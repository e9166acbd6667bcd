"""Rows of `samples` from a replayed sender: arrays for each flow, and one table for many flows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from tracetool.kernels import sample_rows as sr
from tracetool.kernels import window_columns as wc
from tracetool.reconstruct.batch import DIRECTIONS

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    from tracetool.reconstruct.hypotheses import Choice

    Ints = npt.NDArray[np.int64]

STATES = ("open", "disorder", "cwr", "recovery", "loss")
PHASES = (
    "slow_start", "congestion_avoidance", "recovery", "loss", "startup", "drain", "probe_bw", "probe_rtt",
)  # fmt: skip
LIMITS = ("cwnd", "rwnd", "app", "pacing", "unknown")
#: Columns by the rows of `Samples.numbers`.
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
#: Margin of the bounds around a window that the replay has pinned down, as a part of it.
MARGIN = 0.02
#: A fit that misses fewer segments than this per group of sends is exact where the window is filled.
SHARP = 0.05


@dataclass(frozen=True, slots=True)
class Samples:
    """State of one sender at each ACK.

    Attributes
    ----------
    numbers : int64, shape (len(NUMBERS), n)
        Columns by `NUMBERS`; -1 unknown.
    words : uint8, shape (len(WORDS), n)
        Columns by `WORDS`: positions in their words; 255 is null.
    """

    numbers: Ints
    words: npt.NDArray[np.uint8]

    def __len__(self) -> int:
        """Return the number of rows."""
        return int(self.numbers.shape[1])


def samples(events: Ints, choice: Choice, mss: int) -> Samples:
    """State of the sender before each ACK, with bounds of its window.

    Parameters
    ----------
    events : int64, shape (n, EVENT_WIDTH)
        Rows from `tracetool.kernels.replay.replay`.
    choice : Choice
        What fits best, and what fits as well.
    mss : int
        Bytes.

    Returns
    -------
    Samples
    """
    hypothesis = choice.best.hypothesis
    bbr = hypothesis.algorithm == wc.BBR
    numbers = np.empty((sr.NUMBERS, len(events)), np.int64)
    words = np.empty((sr.WORDS, len(events)), np.uint8)
    rows = sr.sample_rows(
        events,
        choice.best.window,
        choice.low,
        choice.high,
        mss,
        hypothesis.paced,
        bbr,
        choice.best.misfit < SHARP,
        choice.cc != "unknown",
        2 * MARGIN if bbr else MARGIN,
        numbers,
        words,
    )
    return Samples(numbers[:, :rows], words[:, :rows])


def samples_table(found: Sequence[Samples], flows: Ints, ways: Ints, names: Sequence[str | None]) -> pa.Table:
    """Rows of `samples` of many flows, without the column `input`.

    Parameters
    ----------
    found
        State of each sender.
    flows, ways
        Flow number of each, and the direction of its data (0 for a2b).
    names
        Congestion control of each.

    Returns
    -------
    pyarrow.Table
        Words are dictionaries.
    """
    rows = np.array([len(one) for one in found], np.int64)
    numbers = np.concatenate([one.numbers for one in found], axis=1) if len(found) else np.empty((sr.NUMBERS, 0), int)
    words = np.concatenate([one.words for one in found], axis=1) if len(found) else np.empty((sr.WORDS, 0), np.uint8)
    known = sorted({name for name in names if name is not None})
    cc = np.repeat([-1 if name is None else known.index(name) for name in names], rows).astype(np.int8)
    columns = {
        "flow": pa.array(np.repeat(flows, rows).astype(np.int32)),
        "direction": dictionary(np.repeat(ways, rows).astype(np.int8), DIRECTIONS),
        "origin": dictionary(np.zeros(int(rows.sum()), np.int8), ("inferred",)),
        **{name: unless_negative(numbers[at], may=name in UNKNOWN) for at, name in enumerate(NUMBERS)},
        **{name: dictionary(words[at].astype(np.int8), WORDS[name]) for at, name in enumerate(WORDS)},
        "cc": dictionary(cc, known),
    }
    columns["time"] = columns["time"].cast(pa.timestamp("ns", "UTC"))
    return pa.table(columns)


def unless_negative(values: npt.NDArray[np.signedinteger], *, may: bool) -> pa.Array:
    """Numbers as an Arrow array; where they `may` be unknown, those below 0 are null."""
    return pa.array(values, mask=values < 0) if may else pa.array(values)


def dictionary(codes: npt.NDArray[np.int8], words: Sequence[str]) -> pa.DictionaryArray:
    """Words by their positions; a negative one is null. Words may be there twice."""
    places = {word: at for at, word in enumerate(dict.fromkeys(words))}
    if len(places) < len(words):  # else Parquet's dictionary page ends with whatever was in memory
        codes = np.where(codes < 0, -1, np.array([places[word] for word in words])[codes]).astype(np.int8)
        words = list(places)
    return pa.DictionaryArray.from_arrays(unless_negative(codes, may=True), pa.array(words, pa.string()))
