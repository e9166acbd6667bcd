"""``tracetool plot-<chart>``: one command for every chart."""

from __future__ import annotations

import os
import shutil
import sys
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tracetool.cli.options import Flow, Inputs, Quiet
from tracetool.report.charts import CHARTS

if TYPE_CHECKING:
    from collections.abc import Callable

    from tracetool.report.export import Format

TEXT_COLUMNS = 79
OUT_HELP = (
    "File to write: .html (offline), .svg, .png, .pdf, .json (Vega-Lite), .csv, .xpl or .txt; default: the terminal."
)
TO_HELP = "Format on standard output or of the file: ascii, unicode, html, svg, png, pdf, json, csv, xplot."


def register(app: typer.Typer) -> None:
    """Add the command of every chart."""
    for name, chart in CHARTS.items():
        short = f"Draw {chart.summary.split(',')[0].split(':')[0]}."
        app.command(f"plot-{name}", help=f"Draw {chart.summary}.", short_help=short)(_command(name))


def _command(chart: str) -> Callable[..., None]:
    def command(
        inputs: Inputs,
        flow: Flow = None,
        out: Annotated[str, typer.Option("--out", "-o", metavar="FILE", help=OUT_HELP)] = "-",
        to: Annotated[str | None, typer.Option("--to", metavar="FORMAT", help=TO_HELP)] = None,
        ascii_only: Annotated[bool, typer.Option("--ascii", help="Pure 7-bit text, fit for mail.")] = False,
        unicode: Annotated[bool, typer.Option("--unicode", help="Braille lines, whatever the terminal says.")] = False,
        start: Annotated[
            float | None, typer.Option("--from", metavar="SECONDS", help="Leave out what is before.")
        ] = None,
        stop: Annotated[
            float | None, typer.Option("--to-time", "--until", metavar="SECONDS", help="Leave out what is after.")
        ] = None,
        width: Annotated[int | None, typer.Option("--width", min=20, max=10_000, help="Columns, or pixels.")] = None,
        height: Annotated[int | None, typer.Option("--height", min=5, max=10_000, help="Lines, or pixels.")] = None,
        log: Annotated[bool, typer.Option("--log", help="Logarithmic vertical axis.")] = False,
        quiet: Quiet = False,
    ) -> None:
        from tracetool import api
        from tracetool.cli import output
        from tracetool.cli.prepare import dataset_of
        from tracetool.errors import UsageError
        from tracetool.report.export import render, save

        if ascii_only and unicode:
            raise UsageError("--ascii and --unicode exclude each other")
        form = _format(to, ascii_only=ascii_only, unicode=unicode, out=out)
        with dataset_of(inputs, quiet=quiet) as dataset:
            figure = api.figure(dataset, chart, flow, start=start, stop=stop, log=log)
            if out != "-":
                save(figure, out, to=form, width=width, height=height)
                return
            text = form in {"ascii", "unicode"}
            drawn = render(
                figure, form or "ascii", width=width or (_columns() if text else None), height=height, color=_color()
            )
            if isinstance(drawn, bytes):
                output.write_bytes(drawn)
            else:
                output.write(drawn)

    return command


def _format(to: str | None, *, ascii_only: bool, unicode: bool, out: str) -> Format | None:
    if to is not None:
        chosen: Any = to
        return chosen  # type: ignore[no-any-return] # render refuses what it does not know
    if out != "-":
        return "unicode" if unicode else "ascii" if ascii_only else None
    if ascii_only:
        return "ascii"
    encoding = (sys.stdout.encoding or "ascii").lower().replace("-", "")
    return "unicode" if unicode or (encoding == "utf8" and os.environ.get("TERM") != "dumb") else "ascii"


def _columns() -> int:
    """Width for text: COLUMNS, else the terminal's, else what a mail allows."""
    if "COLUMNS" not in os.environ and not sys.stdout.isatty():
        return TEXT_COLUMNS
    return max(20, shutil.get_terminal_size((TEXT_COLUMNS + 1, 24)).columns - 1)


def _color() -> bool:
    """Colour only on a terminal, and never against NO_COLOR (https://no-color.org)."""
    return sys.stdout.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
