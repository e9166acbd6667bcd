"""CUBIC (RFC 9438; Linux `tcp_cubic.c`): with HyStart as shipped, with one of its detectors, or without."""

from __future__ import annotations

from tracetool.kernels.cubic import BETA, BETA_SCALE
from tracetool.kernels.window_columns import (
    CUBIC,
    DELAY,
    ERA_LATE_ROUNDS,
    IN_SLOW_START,
    PAST_SLOW_START,
    PLUS_PLUS,
    TRAIN,
)
from tracetool.reconstruct.models import Hypothesis

#: Linux ships with both detectors on; pacing doubles the threshold of the ACK train; until 6.13 a round of HyStart
#: began only once the window had 16 segments.
HYPOTHESES = (
    Hypothesis("cubic, HyStart", "cubic", CUBIC, TRAIN | DELAY),
    Hypothesis("cubic, HyStart, paced", "cubic", CUBIC, TRAIN | DELAY, paced=True),
    Hypothesis("cubic, HyStart before 6.14", "cubic", CUBIC, TRAIN | DELAY, ERA_LATE_ROUNDS, rare=True),
    Hypothesis("cubic, no HyStart", "cubic", CUBIC),
    Hypothesis("cubic, HyStart's train only", "cubic", CUBIC, TRAIN, rare=True),
    Hypothesis("cubic, HyStart's delay only", "cubic", CUBIC, DELAY, rare=True),
    Hypothesis("cubic, HyStart++", "cubic", CUBIC, PLUS_PLUS, rare=True),
    Hypothesis("cubic, HyStart++, paced", "cubic", CUBIC, PLUS_PLUS, paced=True, rare=True),
)

#: What a loss leaves of the last maximum: beta; or, where the window had not reached the maximum before (fast
#: convergence), beta of a window of which (1 + beta) / 2 is held for the maximum; 0: none, after HyStart or a timeout.
OF_LAST_MAX = (BETA / BETA_SCALE, 2 * BETA / (BETA_SCALE + BETA), 0.0)

#: What a capture that begins in mid-connection may find beside the places on CUBIC's curve.
UNDER_WAY = (
    Hypothesis("cubic in slow start, HyStart", "cubic", CUBIC, TRAIN | DELAY, start=IN_SLOW_START),
    Hypothesis("cubic in slow start", "cubic", CUBIC, start=IN_SLOW_START),
)


def grown(part: float, of_last_max: float, stood: float = 0.5) -> Hypothesis:
    """CUBIC whose epoch began before the capture.

    Parameters
    ----------
    part : float
        The threshold at which it began, in parts of the window when that became known.
    of_last_max : float
        One of `OF_LAST_MAX`.
    stood : float
        See `Hypothesis`.

    Examples
    --------
    >>> grown(0.9, 0.0).name
    'cubic grown from 0.900 of its window'
    """
    name = f"cubic grown from {part:.3f} of its window" + (f", {of_last_max:.2f} of a maximum" if of_last_max else "")
    return Hypothesis(
        name, "cubic", CUBIC, start=PAST_SLOW_START, grown_from=part, of_last_max=of_last_max, stood=stood
    )
