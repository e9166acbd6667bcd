"""How far two replays of one sender's events may differ by chance, in segments missed."""

from __future__ import annotations

from tracetool.kernels._bare import bare_kernel
from tracetool.kernels.window_choice import AS_GOOD_EARLY

#: What even the best misses are odd moments, which no hypothesis foresees: half of them may favour a wrong one.
PART = 1 / 2
#: Between replays that miss hardly more than the best there is no difference: so many segments, and this part.
HARDLY, HARDLY_PART = 2, 1 / 10
#: A search turns away from what misses so many times as much: beyond that a neighbour is no better by much.
FAR = 4


@bare_kernel
def as_good(least: float) -> float:
    """Segments up to which a replay explains the sends as well as one that misses the least."""
    return least * (1 + PART) + AS_GOOD_EARLY


@bare_kernel
def as_likely(least: float) -> float:
    """Segments up to which a replay misses hardly more than one that misses the least."""
    return least * (1 + HARDLY_PART) + HARDLY


@bare_kernel
def hopeless(least: float) -> float:
    """Segments beyond which a search does not go on near a replay, where another misses the least."""
    return FAR * (least + AS_GOOD_EARLY)
