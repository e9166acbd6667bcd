"""Reno (RFC 5681, RFC 6582; Linux `tcp_cong.c`): one segment per window, half the window after a loss."""

from __future__ import annotations

from tracetool.kernels.window_columns import IN_SLOW_START, PAST_SLOW_START, RENO
from tracetool.reconstruct.models import Hypothesis

HYPOTHESES = (Hypothesis("reno", "reno", RENO),)

UNDER_WAY = (
    Hypothesis("reno past slow start", "reno", RENO, start=PAST_SLOW_START),
    Hypothesis("reno in slow start", "reno", RENO, start=IN_SLOW_START),
)
