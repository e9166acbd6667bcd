"""Runs the inference over every direction of a batch that carries data, and joins what it says into tables."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
import pyarrow as pa

from tracetool import tables
from tracetool.kernels import senders as ks
from tracetool.reconstruct.batch import DIRECTIONS
from tracetool.reconstruct.episodes import recoveries, slow_starts
from tracetool.reconstruct.samples import samples_table
from tracetool.reconstruct.sender import infer
from tracetool.reconstruct.vantage import ELSEWHERE

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    from tracetool.reconstruct.batch import Batch
    from tracetool.reconstruct.facts import Facts
    from tracetool.reconstruct.sender import Inferred

    Ints = npt.NDArray[np.int64]


def infer_directions(
    batch: Batch, copy: npt.NDArray[np.bool_], facts: Facts, places: Sequence[str], carries: npt.NDArray[np.bool_]
) -> tuple[dict[str, pa.Table], pl.DataFrame]:
    """Infer what the senders of a batch were doing.

    Parameters
    ----------
    batch
        Packets of whole flows.
    copy
        Frames captured twice: they are left out.
    facts
        What `flows` tells of each flow of the batch.
    places
        Where each was captured, see `tracetool.reconstruct.vantage`.
    carries
        ``(flows, 2)``: which directions are to be looked at.

    Returns
    -------
    tuple
        Tables `samples`, `recoveries` and `slow_starts` without the column `input`; and flow, direction, cc and
        cc_confidence of each direction looked at.

    Examples
    --------
    >>> infer_directions(batch, tracked.copy, facts, places, payload > 0)[1]["cc"]  # doctest: +SKIP
    """
    flow, way = np.nonzero(carries)
    asked = np.empty((len(flow), ks.ASKED_WIDTH), np.int64)
    asked[:, ks.FLOW], asked[:, ks.WAY] = flow, way
    asked[:, ks.MSS_OWN], asked[:, ks.MSS_PEER] = facts.mss[flow, way], facts.mss[flow, 1 - way]
    asked[:, ks.TIMESTAMPS], asked[:, ks.SACK] = facts.timestamps[flow], facts.sack[flow]
    asked[:, ks.ELSEWHERE] = np.array([place in ELSEWHERE for place in places])[flow]
    found = infer(batch, copy, asked, facts.scale[flow, 1 - way] >= 0)
    numbers = batch.flows[flow]
    cc = pl.DataFrame(
        {
            "flow": numbers.astype(np.int32),
            "direction": [DIRECTIONS[one] for one in way.tolist()],
            "cc": found.cc,
            "cc_confidence": found.cc_confidence,
        },
        schema={"flow": pl.Int32, "direction": pl.String, "cc": pl.String, "cc_confidence": pl.Float64},
    )
    return tables_of(found, numbers, way), cc


def tables_of(found: Inferred, flows: Ints, ways: Ints) -> dict[str, pa.Table]:
    """Tables `samples`, `recoveries` and `slow_starts` of some senders, without the column `input`.

    Parameters
    ----------
    found
        What the inference says of them.
    flows, ways
        Flow number of each, and the direction of its data (0 for a2b).

    Examples
    --------
    >>> tables_of(infer(batch, copy, asked, known), flows, ways)["samples"].num_rows  # doctest: +SKIP
    2911
    """
    return {
        "samples": samples_table(found, flows, ways),
        "recoveries": _joined("recoveries", recoveries(found), flows, ways),
        "slow_starts": _joined("slow_starts", slow_starts(found), flows, ways),
    }


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
