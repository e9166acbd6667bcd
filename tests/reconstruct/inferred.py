"""What the inference says of one sender, as Polars frames of the tables that it fills."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import polars as pl

from tracetool.kernels import replay_columns as rc
from tracetool.reconstruct.directions import tables_of
from tracetool.reconstruct.sender import infer

TRIGGERS = {rc.BY_UNKNOWN: "unknown", rc.BY_FAST: "fast", rc.BY_RTO: "rto", rc.BY_TLP: "tlp"}


def inferred_of(packets, facts):
    """Run `infer`; its tables are frames, its retransmissions too."""
    found = infer(packets, facts)
    frames = {
        name: pl.from_arrow(table) for name, table in tables_of([found], np.zeros(1, int), np.zeros(1, int)).items()
    }
    again = found.retransmissions
    frames["retransmissions"] = pl.DataFrame(
        {"frame": again.frame, "trigger": [TRIGGERS[why] for why in again.trigger.tolist()], "segments": again.segments}
    )
    return SimpleNamespace(**frames, cc=found.cc, cc_confidence=found.cc_confidence)
