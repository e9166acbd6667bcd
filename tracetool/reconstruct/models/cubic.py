"""CUBIC (RFC 9438; Linux `tcp_cubic.c`): with HyStart as shipped, with one of its detectors, or without."""

from __future__ import annotations

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
)

#: A capture that begins in mid-connection finds CUBIC somewhere between 0.7 of its last maximum, where a reduction
#: leaves it, and well beyond that maximum.
UNDER_WAY = (
    *(
        Hypothesis(
            f"cubic at {plateau:.2f} of its last maximum", "cubic", CUBIC, start=PAST_SLOW_START, plateau=plateau
        )
        for plateau in (1.0, 0.95, 0.9, 0.8, 0.72, 1.05, 1.2, 1.5)
    ),
    Hypothesis("cubic in slow start, HyStart", "cubic", CUBIC, TRAIN | DELAY, start=IN_SLOW_START),
    Hypothesis("cubic in slow start", "cubic", CUBIC, start=IN_SLOW_START),
)
