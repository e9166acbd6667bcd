"""``tracetool metrics``: what can be measured, in which unit, from what."""

from __future__ import annotations

from typing import Annotated

import typer

from tracetool.cli.options import Csv, Json


def command(
    name: Annotated[str | None, typer.Argument(metavar="[METRIC]", help="Explain one metric at length.")] = None,
    as_json: Json = False,
    as_csv: Csv = False,
) -> None:
    """List the metrics of the library (`tracetool.metrics`): description, unit, inputs, function."""
    import inspect

    import polars as pl

    from tracetool import metrics
    from tracetool.cli import output

    if name is not None:
        chosen = [metrics.get(name)]
        text = f"{name} [{chosen[0].unit}]: {chosen[0].description}\n\n{inspect.getdoc(chosen[0].load())}\n"
    else:
        chosen = list(metrics.METRICS.values())
        width = max(len(metric.name) for metric in chosen)
        text = "".join(f"{metric.name:{width}}  {metric.description} [{metric.unit}]\n" for metric in chosen)
    frame = pl.DataFrame(
        [(m.name, m.description, m.unit, ", ".join(m.inputs), f"tracetool.metrics.{m.target}") for m in chosen],
        schema=["name", "description", "unit", "inputs", "function"],
        orient="row",
    )
    output.table(frame, text, as_json=as_json, as_csv=as_csv)
