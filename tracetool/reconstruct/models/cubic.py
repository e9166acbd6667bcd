"""CUBIC (RFC 9438; Linux `tcp_cubic.c`): with HyStart as shipped, with one of its detectors, or without."""

from __future__ import annotations

from tracetool.kernels.window_columns import CUBIC, DELAY, ERA_LATE_ROUNDS, TRAIN
from tracetool.reconstruct.models import Hypothesis

#: Linux ships with both detectors on; pacing doubles the threshold of the ACK train; until 6.13 a round of HyStart
#: began only once the window had 16 segments.
HYPOTHESES = (
    Hypothesis("cubic, HyStart", "cubic", CUBIC, TRAIN | DELAY),
    Hypothesis("cubic, HyStart, paced", "cubic", CUBIC, TRAIN | DELAY, paced=True),
    Hypothesis("cubic, HyStart before 6.14", "cubic", CUBIC, TRAIN | DELAY, ERA_LATE_ROUNDS),
    Hypothesis("cubic, no HyStart", "cubic", CUBIC),
    Hypothesis("cubic, HyStart's train only", "cubic", CUBIC, TRAIN),
    Hypothesis("cubic, HyStart's delay only", "cubic", CUBIC, DELAY),
)
