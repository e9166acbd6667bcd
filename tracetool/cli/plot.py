"""``tracetool plot-<chart>``: one command for every chart."""

from __future__ import annotations

import os
import shutil
import sys
from inspect import signature
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from tracetool.cli.options import Inputs, Quiet
from tracetool.report.charts import CHARTS

if TYPE_CHECKING:
    from collections.abc import Callable

    from tracetool.report.export import Format

TEXT_COLUMNS = 79
OUT_HELP = (
    "File to write: .html (offline), .svg, .png, .pdf, .json (Vega-Lite), .csv, .xpl or .txt; default: the terminal."
)
TO_HELP = "Format on standard output or of the file: ascii, unicode, html, svg, png, pdf, json, csv, xplot."
FLOW_HELP = (
    "Flow id, 'stream N' (Wireshark's) or HOST:PORT-HOST:PORT; again for more flows, where the chart draws several."
)

ChosenFlows = Annotated[list[str] | None, typer.Option("--flow", metavar="FLOW", help=FLOW_HELP)]
Heaviest = Annotated[
    int | None, typer.Option("--flows", metavar="N", min=1, max=64, help="The N flows with the most payload.")
]
Out = Annotated[str, typer.Option("--out", "-o", metavar="FILE", help=OUT_HELP)]
To = Annotated[str | None, typer.Option("--to", metavar="FORMAT", help=TO_HELP)]
Ascii = Annotated[bool, typer.Option("--ascii", help="Pure 7-bit text, fit for mail.")]
Unicode = Annotated[bool, typer.Option("--unicode", help="Braille lines, whatever the terminal says.")]
Start = Annotated[float | None, typer.Option("--from", metavar="SECONDS", help="Leave out what is before.")]
Stop = Annotated[float | None, typer.Option("--to-time", "--until", metavar="SECONDS", help="Leave out what is after.")]
Width = Annotated[int | None, typer.Option("--width", min=20, max=10_000, help="Columns, or pixels.")]
Height = Annotated[int | None, typer.Option("--height", min=5, max=10_000, help="Lines, or pixels.")]
Log = Annotated[bool, typer.Option("--log", help="Logarithmic vertical axis.")]
Layout = Annotated[
    Literal["overlay", "multiples"], typer.Option("--layout", help="Several flows: in one plot, or each in its own.")
]
SlowStart = Annotated[
    bool, typer.Option("--slow-start", help="Zoom into slow start: rounds, RTT and HyStart's limits below.")
]


CWND_ONLY = ("layout", "slow_start")
"""Options that no other chart has."""


def register(app: typer.Typer) -> None:
    """Add the command of every chart."""
    for name, chart in CHARTS.items():
        words = f"Draw {chart.summary}."
        app.command(f"plot-{name}", help=words, short_help=words)(_command(name))


def _command(chart: str) -> Callable[..., None]:
    def command(
        inputs: Inputs,
        flow: ChosenFlows = None,
        flows: Heaviest = None,
        layout: Layout = "overlay",
        slow_start: SlowStart = False,
        out: Out = "-",
        to: To = None,
        ascii_only: Ascii = False,
        unicode: Unicode = False,
        start: Start = None,
        stop: Stop = None,
        width: Width = None,
        height: Height = None,
        log: Log = False,
        quiet: Quiet = False,
    ) -> None:
        from tracetool import api
        from tracetool.cli import output
        from tracetool.cli.prepare import dataset_of
        from tracetool.errors import UsageError
        from tracetool.report.export import render, save

        if ascii_only and unicode:
            raise UsageError("--ascii and --unicode exclude each other")
        if flow and flows:
            raise UsageError("--flow and --flows exclude each other")
        if start is not None and stop is not None and not start < stop:
            raise UsageError(f"--from {start:g} is not before --until {stop:g}")
        form = _format(to, ascii_only=ascii_only, unicode=unicode, out=out)
        options: dict[str, Any] = {} if chart != "cwnd" or slow_start else {"layout": layout}
        drawn = "slow-start" if slow_start else chart
        with dataset_of(inputs, quiet=quiet) as dataset:
            figure = api.figure(dataset, drawn, flow or None, flows=flows, start=start, stop=stop, log=log, **options)
            if out != "-":
                save(figure, out, to=form, width=width, height=height)
                return
            text = form in {"ascii", "unicode"}
            columns = width or (_columns() if text else None)
            content = render(figure, form or "ascii", width=columns, height=height, color=_color())
            if isinstance(content, bytes):
                output.write_bytes(content)
            else:
                output.write(content)

    if chart != "cwnd":
        kept = signature(command, eval_str=True)  # Typer evaluates no names of a signature that is given
        parameters = [each for name, each in kept.parameters.items() if name not in CWND_ONLY]
        command.__signature__ = kept.replace(parameters=parameters)  # type: ignore[attr-defined]
    return command


def _format(to: str | None, *, ascii_only: bool, unicode: bool, out: str) -> Format | None:
    if to is not None:
        from tracetool.errors import UsageError

        if to.replace(".", "", 1).isdigit():
            raise UsageError(f"--to {to}: --to names a format; a time is --until {to}")
        chosen: Any = to
        return chosen  # type: ignore[no-any-return] # render refuses what it does not know
    if out != "-":
        return "unicode" if unicode else "ascii" if ascii_only else None
    if ascii_only:
        return "ascii"
    encoding = (getattr(sys.stdout, "encoding", None) or "ascii").lower().replace("-", "")
    return "unicode" if unicode or (encoding == "utf8" and os.environ.get("TERM") != "dumb") else "ascii"


def _columns() -> int:
    """Width for text: COLUMNS, else the terminal's, else what a mail allows."""
    if "COLUMNS" not in os.environ and not _terminal():
        return TEXT_COLUMNS
    return max(20, shutil.get_terminal_size((TEXT_COLUMNS + 1, 24)).columns - 1)


def _color() -> bool:
    """Colour only on a terminal, and never against NO_COLOR (https://no-color.org)."""
    return _terminal() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def _terminal() -> bool:
    """Whether standard output is one; it may be closed."""
    return sys.stdout is not None and sys.stdout.isatty()
