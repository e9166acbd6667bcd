"""BBR, version 1 (Linux `tcp_bbr.c`): paced at the bandwidth it measures, deaf to single losses."""

from __future__ import annotations

from tracetool.kernels.window_columns import BBR, IN_SLOW_START, PAST_SLOW_START
from tracetool.reconstruct.models import Hypothesis

HYPOTHESES = (Hypothesis("bbr", "bbr", BBR, paced=True),)

UNDER_WAY = (
    Hypothesis("bbr under way", "bbr", BBR, paced=True, start=PAST_SLOW_START),
    Hypothesis("bbr starting up", "bbr", BBR, paced=True, start=IN_SLOW_START),
)
