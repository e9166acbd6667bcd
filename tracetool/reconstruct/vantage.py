"""Where a capture was taken, by the two halves of the round trip: to the receiver and back, and to the sender and back.

At the sender, ACKs are answered with data at once, and data by ACKs after the whole round trip; at the receiver it is
the other way round.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tracetool.kernels.track_vantage import AT_AN_END, LEAST_NS

if TYPE_CHECKING:
    import numpy.typing as npt

    Ints = npt.NDArray[np.int64]

#: Places that are not the sender's: times there are not its times.
ELSEWHERE = frozenset({"receiver", "middle"})


def behind(echo: Ints) -> Ints:
    """Part of the round trip between the sender and the capture, of both directions of each flow, in nanoseconds.

    Parameters
    ----------
    echo
        ``(flows, 2)``: shortest time from a packet of side a, and of b, to its echo; -1 unknown.

    Returns
    -------
    int64 array
        At ``2 * flow + direction``; 0 where unknown, and where the capture stands at the sender.

    Examples
    --------
    >>> behind(np.array([[40_000_000, 10_000]])).tolist()
    [0, 40000000]
    """
    opposite = echo[:, ::-1]
    total = np.maximum(echo, 0) + np.maximum(opposite, 0)
    return np.where((opposite > 0) & (opposite * AT_AN_END > total), opposite, 0).reshape(-1)


def vantage(echo: Ints, payload: Ints) -> list[str]:
    """Name the place of the capture for each flow, seen from the direction that carries the data.

    Parameters
    ----------
    echo
        As above.
    payload
        ``(flows, 2)``: payload bytes of a2b and b2a.

    Returns
    -------
    list of str
        ``sender``, ``receiver``, ``middle`` or ``unknown``.

    Examples
    --------
    >>> vantage(np.array([[40_000_000, 10_000], [20_000_000, 20_000_000]]), np.array([[1000, 0], [10, 0]]))
    ['sender', 'middle']
    """
    data = np.argmax(payload, axis=1)  # a2b where neither carries any
    rows = np.arange(len(echo))
    ahead, back = echo[rows, data], echo[rows, 1 - data]
    total = ahead + back
    unknown = (ahead < 0) | (back < 0) | (total < LEAST_NS) | (payload.sum(axis=1) == 0)
    place = np.where(back * AT_AN_END <= total, 0, np.where(ahead * AT_AN_END <= total, 1, 2))
    words = ("sender", "receiver", "middle", "unknown")
    return [words[index] for index in np.where(unknown, 3, place)]
