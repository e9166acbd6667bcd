"""Runs the inference over every direction of a batch that carries data, and joins what it says into tables."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
import pyarrow as pa

from tracetool import tables
from tracetool.reconstruct.batch import DIRECTIONS
from tracetool.reconstruct.flow import FlowFacts, flow_facts
from tracetool.reconstruct.samples import samples_table
from tracetool.reconstruct.sender import infer

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    from tracetool.reconstruct.batch import Batch
    from tracetool.reconstruct.flow import FlowPackets, Inferred
    from tracetool.reconstruct.tracking import Tracked

    Ints = npt.NDArray[np.int64]

SYN = 2


def infer_directions(
    batch: Batch, tracked: Tracked, flows: Sequence[dict[str, Any]], carries: np.ndarray[Any, np.dtype[np.bool_]]
) -> tuple[dict[str, pa.Table], pl.DataFrame]:
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
    tuple
        Tables `samples`, `recoveries` and `slow_starts` without the column `input`; and flow, direction, cc and
        cc_confidence of each direction looked at.

    Examples
    --------
    >>> infer_directions(batch, tracked, rows, payload > 0)[1]["cc"]  # doctest: +SKIP
    """
    keep = ~tracked.copy
    chosen = np.argwhere(carries)
    found: list[Inferred] = []
    for index, way in chosen.tolist():
        packets = batch.packets(index, way, keep)
        found.append(infer(packets, _facts(packets, flows[index], DIRECTIONS[way])))
    numbers, ways = batch.flows[chosen[:, 0]], chosen[:, 1]
    cc = pl.DataFrame(
        {
            "flow": numbers.astype(np.int32),
            "direction": [DIRECTIONS[way] for way in ways.tolist()],
            "cc": [one.cc for one in found],
            "cc_confidence": [one.cc_confidence for one in found],
        },
        schema={"flow": pl.Int32, "direction": pl.String, "cc": pl.String, "cc_confidence": pl.Float64},
    )
    return tables_of(found, numbers, ways), cc


def tables_of(found: Sequence[Inferred], flows: Ints, ways: Ints) -> dict[str, pa.Table]:
    """Tables `samples`, `recoveries` and `slow_starts` of many senders, without the column `input`.

    Parameters
    ----------
    found
        What the inference says of each.
    flows, ways
        Flow number of each, and the direction of its data (0 for a2b).

    Examples
    --------
    >>> tables_of([infer(packets, facts)], np.array([0]), np.array([0]))["samples"].num_rows  # doctest: +SKIP
    2911
    """
    return {
        "samples": samples_table([one.samples for one in found], flows, ways, [one.cc for one in found]),
        "recoveries": _joined("recoveries", [one.recoveries for one in found], flows, ways),
        "slow_starts": _joined("slow_starts", [one.slow_starts for one in found], flows, ways),
    }


def _facts(packets: FlowPackets, row: dict[str, Any], direction: str) -> FlowFacts:
    syn_seen = bool(((packets.flags & SYN != 0) & packets.outbound).any())
    return flow_facts(row, direction, syn_seen=syn_seen)


def _joined(table: str, found: Sequence[list[dict[str, Any]]], flows: Ints, ways: Ints) -> pa.Table:
    """Rows of many flows as a table without the column `input`."""
    counts = [len(rows) for rows in found]
    joined = [row for rows in found for row in rows]
    keys: dict[str, Any] = {
        "flow": np.repeat(flows, counts).astype(np.int32),
        "direction": pa.array([DIRECTIONS[way] for way in np.repeat(ways, counts).tolist()], pa.string()),
    }
    fields = [field for field in tables.schema(table) if field.name not in {"input", *keys}]
    columns = {field.name: pa.array([row[field.name] for row in joined], field.type) for field in fields}
    return pa.table({**keys, **columns})
