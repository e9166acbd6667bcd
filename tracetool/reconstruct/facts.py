"""What the table `flows` tells of each flow, as arrays: null becomes -1."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import polars as pl

if TYPE_CHECKING:
    import numpy.typing as npt

    Ints = npt.NDArray[np.int64]


class Facts(NamedTuple):
    """Facts of some flows; -1 is unknown.

    Attributes
    ----------
    tcp
        Whether they are TCP.
    sack, timestamps
        Options in use: 1, or 0.
    mss, scale
        ``(flows, 2)``: MSS option and window scale that side a sent, and side b.
    """

    tcp: npt.NDArray[np.bool_]
    sack: Ints
    timestamps: Ints
    mss: Ints
    scale: Ints

    def of(self, chosen: Ints) -> Facts:
        """Return the facts of some of them, by their positions."""
        return Facts(self.tcp[chosen], self.sack[chosen], self.timestamps[chosen], self.mss[chosen], self.scale[chosen])


def facts_of(flows: pl.DataFrame) -> Facts:
    """Facts from rows of `flows`, in their order.

    Examples
    --------
    >>> facts_of(dataset.read("flows")).mss.shape  # doctest: +SKIP
    (96, 2)
    """

    def ints(name: str) -> Ints:
        return flows[name].cast(pl.Int64).fill_null(-1).to_numpy()

    def both(name: str) -> Ints:
        return np.stack([ints(name.format(side)) for side in "ab"], axis=1)

    return Facts(
        (flows["protocol"] == "tcp").to_numpy(),
        ints("sack_permitted"),
        ints("timestamps"),
        both("mss_{}_bytes"),
        both("window_scale_{}"),
    )
