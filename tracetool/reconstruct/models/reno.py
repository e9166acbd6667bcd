"""Reno (RFC 5681, RFC 6582; Linux `tcp_cong.c`): one segment per window, half the window after a loss."""

from __future__ import annotations

from tracetool.kernels.window_columns import RENO
from tracetool.reconstruct.models import Hypothesis

HYPOTHESES = (Hypothesis("reno", "reno", RENO),)
