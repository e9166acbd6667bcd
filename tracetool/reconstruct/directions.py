"""Runs the inference over every direction of a batch that carries data, and joins what it says into tables."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from tracetool.reconstruct.batch import DIRECTIONS
from tracetool.reconstruct.flow import FlowFacts, flow_facts
from tracetool.reconstruct.sender import infer

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tracetool.reconstruct.batch import Batch
    from tracetool.reconstruct.flow import FlowPackets, Inferred
    from tracetool.reconstruct.tracking import Tracked

SYN = 2


def infer_directions(
    batch: Batch, tracked: Tracked, flows: Sequence[dict[str, Any]], carries: np.ndarray[Any, np.dtype[np.bool_]]
) -> dict[str, pl.DataFrame]:
    """Infer what the senders of a batch were doing.

    Parameters
    ----------
    batch
        Packets of whole flows.
    tracked
        What the kernels found in them; frames captured twice are left out.
    flows
        Row of the table `flows` for each flow of the batch, with its vantage.
    carries
        ``(flows, 2)``: which directions are to be looked at.

    Returns
    -------
    dict
        `samples`, `recoveries` and `slow_starts` without the column `input`, and ``cc``: flow, direction, cc and
        cc_confidence.

    Examples
    --------
    >>> infer_directions(batch, tracked, rows, payload > 0)["cc"]  # doctest: +SKIP
    """
    keep = ~tracked.copy
    found: list[Inferred] = []
    keys: list[tuple[int, str]] = []
    for index, way in np.argwhere(carries).tolist():
        packets = batch.packets(index, way, keep)
        found.append(infer(packets, _facts(packets, flows[index], DIRECTIONS[way])))
        keys.append((int(batch.flows[index]), DIRECTIONS[way]))
    samples = _joined([one.samples for one in found], keys)
    cc = [(*key, one.cc, one.cc_confidence) for key, one in zip(keys, found, strict=True)]
    return {
        "samples": samples.with_columns(origin=pl.lit("inferred")),
        "recoveries": _joined([one.recoveries for one in found], keys),
        "slow_starts": _joined([one.slow_starts for one in found], keys),
        "cc": pl.DataFrame(
            cc,
            schema={"flow": pl.Int32, "direction": pl.String, "cc": pl.String, "cc_confidence": pl.Float64},
            orient="row",
        ),
    }


def _facts(packets: FlowPackets, row: dict[str, Any], direction: str) -> FlowFacts:
    syn_seen = bool(((packets.flags & SYN != 0) & packets.outbound).any())
    return flow_facts(row, direction, syn_seen=syn_seen)


def _joined(frames: Sequence[pl.DataFrame], keys: Sequence[tuple[int, str]]) -> pl.DataFrame:
    """One frame of all, with the flow and direction of each row."""
    heights = [frame.height for frame in frames]
    parts = [frame for frame in frames if frame.height]
    flow = np.repeat(np.array([key[0] for key in keys], np.int32), heights)
    way = np.repeat(np.array([DIRECTIONS.index(key[1]) for key in keys], np.uint32), heights)
    named = pl.DataFrame({"flow": flow, "direction": pl.Series(DIRECTIONS).gather(way)})
    return pl.concat([named, pl.concat(parts)], how="horizontal") if parts else named
