"""Runs the inference over every direction of a batch that carries data, and joins what it says into tables."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np

from tracetool.kernels import senders as ks
from tracetool.reconstruct.batch import DIRECTIONS
from tracetool.reconstruct.episodes import recoveries, slow_starts
from tracetool.reconstruct.samples import samples_table
from tracetool.reconstruct.sender import infer
from tracetool.reconstruct.vantage import ELSEWHERE

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt
    import pyarrow as pa

    from tracetool.reconstruct.batch import Batch
    from tracetool.reconstruct.facts import Facts
    from tracetool.reconstruct.sender import Inferred

    Ints = npt.NDArray[np.int64]
    Made: TypeAlias = pa.Table | list[dict[str, Any]]


class Named(NamedTuple):
    """The congestion control of some senders.

    Attributes
    ----------
    flows, ways
        Flow number of each, and the direction of its data (0 for a2b).
    cc, cc_confidence
        See `tracetool.reconstruct.sender.Inferred`.
    """

    flows: Ints
    ways: Ints
    cc: list[str | None]
    cc_confidence: list[float | None]


def infer_directions(
    batch: Batch, copy: npt.NDArray[np.bool_], facts: Facts, places: Sequence[str], carries: npt.NDArray[np.bool_]
) -> tuple[dict[str, Made], Named]:
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
        What is to be in the tables `samples`, `recoveries` and `slow_starts`, and the congestion control of each
        direction looked at.

    Examples
    --------
    >>> infer_directions(batch, tracked.copy, facts, places, payload > 0)[1].cc  # doctest: +SKIP
    """
    flow, way = np.nonzero(carries)
    asked = np.empty((len(flow), ks.ASKED_WIDTH), np.int64)
    asked[:, ks.FLOW], asked[:, ks.WAY] = flow, way
    asked[:, ks.MSS_OWN], asked[:, ks.MSS_PEER] = facts.mss[flow, way], facts.mss[flow, 1 - way]
    asked[:, ks.TIMESTAMPS], asked[:, ks.SACK] = facts.timestamps[flow], facts.sack[flow]
    asked[:, ks.ELSEWHERE] = np.array([place in ELSEWHERE for place in places])[flow]
    found = infer(batch, copy, asked, facts.scale[flow, 1 - way] >= 0)
    numbers = batch.flows[flow]
    return found_tables(found, numbers, way), Named(numbers, way, found.cc, found.cc_confidence)


def found_tables(found: Inferred, flows: Ints, ways: Ints) -> dict[str, Made]:
    """What is to be in the tables `samples`, `recoveries` and `slow_starts`, without the column `input`.

    Parameters
    ----------
    found
        What the inference says of some senders.
    flows, ways
        Flow number of each, and the direction of its data (0 for a2b).

    Returns
    -------
    dict
        Tables of samples and recoveries, and of slow starts, which are few, rows.

    Examples
    --------
    >>> found_tables(infer(batch, copy, asked, known), flows, ways)["samples"].num_rows  # doctest: +SKIP
    2911
    """
    return {
        "samples": samples_table(found, flows, ways),
        "recoveries": recoveries(found, flows, ways),
        "slow_starts": _keyed(slow_starts(found), flows, ways),
    }


def _keyed(found: Sequence[list[dict[str, Any]]], flows: Ints, ways: Ints) -> list[dict[str, Any]]:
    """Rows of many flows, with their flow and direction."""
    return [
        {"flow": flow, "direction": DIRECTIONS[way], **row}
        for rows, flow, way in zip(found, flows.tolist(), ways.tolist(), strict=True)
        for row in rows
    ]
