"""Reno (RFC 5681, RFC 6582; Linux `tcp_cong.c`): one segment per window, half the window after a loss."""

from __future__ import annotations

from tracetool.kernels.window_columns import IN_SLOW_START, PAST_SLOW_START, PLUS_PLUS, RENO
from tracetool.reconstruct.models import Hypothesis

#: HyStart++ (RFC 9406) stands for itself: some stacks run it with Reno.
HYPOTHESES = (
    Hypothesis("reno", "reno", RENO),
    Hypothesis("reno, HyStart++", "reno", RENO, PLUS_PLUS, rare=True),
    Hypothesis("reno, HyStart++, paced", "reno", RENO, PLUS_PLUS, paced=True, rare=True),
)

UNDER_WAY = (
    Hypothesis("reno past slow start", "reno", RENO, start=PAST_SLOW_START),
    Hypothesis("reno in slow start", "reno", RENO, start=IN_SLOW_START),
)
