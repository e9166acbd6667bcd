"""What the inference says of one sender, as Polars frames of the tables that it fills."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import polars as pl

from tests.reconstruct.packets import asked, batch_of
from tracetool import tables
from tracetool.kernels import replay_columns as rc
from tracetool.reconstruct.directions import found_tables
from tracetool.reconstruct.sender import infer

TRIGGERS = {rc.BY_UNKNOWN: "unknown", rc.BY_FAST: "fast", rc.BY_RTO: "rto", rc.BY_TLP: "tlp"}


def inferred_of(packets, facts):
    """Run `infer`; its tables are frames, its retransmissions too."""
    copies = np.zeros(len(packets), bool)
    found = infer(batch_of(packets), copies, asked(facts), np.array([facts.window_scale is not None]))
    one = np.zeros(1, np.int64)
    made = found_tables(found, one, one)
    frames = {name: pl.from_arrow(made.pop(name)) for name in ("samples", "recoveries")}
    for name, rows in made.items():
        named = tables.from_rows(name, [{"input": "x", **row} for row in rows])
        frames[name] = pl.from_arrow(named).drop("input")
    again = found.replayed.again
    sent = np.flatnonzero(again)
    frames["retransmissions"] = pl.DataFrame(
        {
            "frame": packets.frame[sent],
            "trigger": [TRIGGERS[why] for why in again[sent].tolist()],
            "segments": found.replayed.again_segments[sent],
        }
    )
    return SimpleNamespace(**frames, cc=found.cc[0], cc_confidence=found.cc_confidence[0])
