"""``tracetool slow-starts``: how each slow start ended, and why."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tracetool.cli.options import Csv, Flow, Inputs, Json, Quiet

if TYPE_CHECKING:
    import polars as pl


def command(
    inputs: Inputs, flow: Flow = None, as_json: Json = False, as_csv: Csv = False, quiet: Quiet = False
) -> None:
    """List the slow-start episodes: when and why each ended, at which cwnd, against the bandwidth-delay product.

    Causes: hystart_train and hystart_delay (CUBIC's HyStart), loss, rto, ecn, rwnd_limited, app_limited, or none where
    slow start did not end; - where the cause is not known. `#` counts the episodes of a flow (after a timeout slow
    start begins anew), `end s` is how long one lasted, `/BDP` its last cwnd over the bandwidth-delay product: too_early
    below 0.75, overshoot above 2.
    """
    from tracetool import api
    from tracetool.cli import output
    from tracetool.cli.prepare import dataset_of

    with dataset_of(inputs, quiet=quiet) as dataset:
        frame = dataset.read("slow_starts")
        if flow is not None:
            frame = api.flow_rows(dataset, "slow_starts", api.connection(dataset, flow))
        output.table(frame, _text(frame), as_json=as_json, as_csv=as_csv)


def _text(frame: pl.DataFrame) -> str:
    from tracetool.cli import output

    several = frame["input"].n_unique() > 1
    rows = [
        [
            *([row["input"]] if several else []),
            str(row["flow"]),
            row["direction"],
            str(row["episode"]),
            "-" if row["end"] is None else f"{(row['end'] - row['start']).total_seconds():.3f}",
            row["exit_cause"] or "-",
            output.number(row["cwnd_exit_segments"]),
            output.number(row["ssthresh_segments"]),
            output.number(row["rounds"]),
            output.milliseconds(row["min_rtt_ns"]),
            output.milliseconds(row["rtt_exit_ns"]),
            "-" if row["exit_to_bdp"] is None else f"{row['exit_to_bdp']:.2f}",
            row["verdict"] or "-",
        ]
        for row in frame.iter_rows(named=True)
    ]
    headers = [
        "flow",
        "dir",
        "#",
        "end s",
        "cause",
        "cwnd",
        "ssthresh",
        "rounds",
        "min RTT ms",
        "RTT ms",
        "/BDP",
        "verdict",
    ]
    if several:
        return output.columns(["input", *headers], rows, left=(0, 2, 5, 12))
    return output.columns(headers, rows, left=(1, 4, 11))
