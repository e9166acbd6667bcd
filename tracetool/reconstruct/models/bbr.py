"""BBR, version 1 (Linux `tcp_bbr.c`): paced at the bandwidth it measures, deaf to single losses."""

from __future__ import annotations

from tracetool.kernels.window_columns import BBR
from tracetool.reconstruct.models import Hypothesis

HYPOTHESES = (Hypothesis("bbr", "bbr", BBR, paced=True),)
