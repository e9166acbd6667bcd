"""A figure to a file or a string: the one door that the command line and the library go through."""

from __future__ import annotations

import contextlib
import json
import os
import re
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, get_args

from tracetool.errors import UsageError
from tracetool.writer import writing

if TYPE_CHECKING:
    from tracetool.report.figure import Figure

Format = Literal["ascii", "unicode", "html", "svg", "png", "pdf", "json", "csv", "xplot"]
SUFFIXES: dict[str, Format] = {
    ".txt": "ascii",
    ".html": "html",
    ".htm": "html",
    ".svg": "svg",
    ".png": "png",
    ".pdf": "pdf",
    ".json": "json",
    ".csv": "csv",
    ".xpl": "xplot",
}
VEGA_LITE = "6.4"
"""Version of Vega-Lite that the bundled renderer is asked for."""


def render(
    figure: Figure, to: Format, *, width: int | None = None, height: int | None = None, color: bool = False
) -> str | bytes:
    """Return `figure` in one of the formats: bytes for ``png`` and ``pdf``, text for all others.

    Parameters
    ----------
    to
        ``ascii``, ``unicode``, ``html`` (works offline), ``svg``, ``png``, ``pdf``, ``json`` (Vega-Lite), ``csv`` (the
        points), ``xplot``.
    width, height
        Columns and lines for text (79 columns by default), pixels of the plot area for the others.
    color
        For ``unicode``: add ANSI colour escapes.

    Raises
    ------
    UsageError
        If `to` is no such format.

    Examples
    --------
    >>> from tracetool.report.figure import Axis, Figure, Panel
    >>> render(Figure("nothing", Axis("time", "s"), (Panel(Axis("window")),)), "csv")
    'panel,kind,name,x,y,y2,frame,label\\n'
    """
    if to not in get_args(Format):
        raise UsageError(f"no plot format {to!r}: one of {', '.join(get_args(Format))}")
    if to in ("ascii", "unicode"):
        return _text(figure, to, width=width, height=height, color=color)
    if to == "csv":
        return points_csv(figure)
    if to == "xplot":
        from tracetool.report.xplot import render_xplot

        return render_xplot(figure)
    from tracetool.report.vega import DEFAULT_WIDTH, to_spec

    spec = to_spec(figure, width=width or DEFAULT_WIDTH, height=height, interactive=to in ("html", "json"))
    if to == "json":
        return json.dumps(spec, indent=1, ensure_ascii=True) + "\n"
    if to == "html":
        from tracetool.report.html import chart_page

        return chart_page(figure, spec)
    return _image(spec, to)


def save(
    figure: Figure, path: str | Path, *, to: Format | None = None, width: int | None = None, height: int | None = None
) -> None:
    """Write `figure` to `path`, in the format of its suffix unless `to` says otherwise.

    The file appears by rename when it is whole; a failure leaves what was there.

    Raises
    ------
    UsageError
        If the suffix is none of ``.txt .html .svg .png .pdf .json .csv .xpl``.
    """
    to = to or format_of(path)
    content = render(figure, to, width=width, height=height)
    write_atomic(path, content.encode() if isinstance(content, str) else content)


def format_of(path: str | Path) -> Format:
    """Return the format that the suffix of `path` asks for.

    Examples
    --------
    >>> format_of("cwnd.svg")
    'svg'
    """
    suffix = Path(path).suffix.lower()
    if suffix not in SUFFIXES:
        raise UsageError(f"{path}: no plot format has the suffix {suffix!r}: one of {' '.join(SUFFIXES)}")
    return SUFFIXES[suffix]


def check_page(path: str | Path) -> None:
    """Refuse, before the work for it is done, a name that a page should not or cannot be written to.

    Raises
    ------
    UsageError
        If it is ``-``, or its suffix is that of another format.
    DatasetWriteError
        If its folder is not there.

    Examples
    --------
    >>> check_page("report.html")
    """
    name = Path(path)
    if str(path) == "-" or SUFFIXES.get(name.suffix.lower(), "html") != "html":
        raise UsageError(f"{path}: a page is HTML in a file: give a name that ends in .html")
    with writing(path):
        name.parent.stat()


def write_atomic(path: str | Path, content: bytes) -> None:
    """Write `content` beside `path`, then rename it into place; what is no file (a device, a pipe) is written to.

    Raises
    ------
    DatasetWriteError
        If it cannot be written.
    """
    target = Path(path)
    with writing(path):
        if target.exists() and not target.is_file() and not target.is_dir():
            target.write_bytes(content)
        else:
            _write_beside(target, content)


def _write_beside(target: Path, content: bytes) -> None:
    handle, name = tempfile.mkstemp(dir=target.parent, prefix=".tracetool-")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
        Path(name).chmod(0o666 & ~_umask())
        Path(name).replace(target)
    except BaseException:
        with contextlib.suppress(OSError):
            Path(name).unlink()
        raise


def points_csv(figure: Figure) -> str:
    """Return all that is plotted, unthinned, one row per point, event or span end.

    Columns: panel (0-based), kind, name, x and y in the units of the axes, y2 (upper edge of a band; end of a span),
    frame, label.
    """
    import polars as pl

    from tracetool.report.figure import NO_FRAME

    schema = {
        "panel": pl.Int64,
        "kind": pl.String,
        "name": pl.String,
        "x": pl.Float64,
        "y": pl.Float64,
        "y2": pl.Float64,
        "frame": pl.Int64,
        "label": pl.String,
    }
    parts = [pl.DataFrame(schema=schema)]
    for index, panel in enumerate(figure.panels):
        for item in panel.parts:
            kind = getattr(item, "kind", "event")
            columns: dict[str, Any] = {
                "x": item.x,
                "y": item.y,
                "y2": getattr(item, "y2", None),
                "frame": item.frame,
                "label": list(getattr(item, "labels", ())) or None,
            }
            frame = pl.DataFrame({name: values for name, values in columns.items() if values is not None})
            given = {"panel": index, "kind": kind, "name": item.name}
            frame = frame.with_columns(
                *(
                    pl.lit(given.get(name), dtype).alias(name)
                    for name, dtype in schema.items()
                    if columns.get(name) is None
                )
            )
            parts.append(frame.select(pl.col(name).cast(dtype) for name, dtype in schema.items()))
        rows = [(index, "span", span.name, span.start, None, span.end, None, span.mark) for span in panel.spans]
        parts.append(pl.DataFrame(rows, schema=schema, orient="row"))
    table = pl.concat(parts).with_columns(
        pl.col("x", "y", "y2").fill_nan(None).round(9), pl.col("frame").replace(NO_FRAME, None)
    )
    return table.write_csv()


def _text(figure: Figure, to: str, *, width: int | None, height: int | None, color: bool) -> str:
    from tracetool.report.ascii import DEFAULT_WIDTH, render_ascii
    from tracetool.report.unicode import render_unicode

    if to == "ascii":
        return render_ascii(figure, width=width or DEFAULT_WIDTH, height=height)
    return render_unicode(figure, width=width or DEFAULT_WIDTH, height=height, color=color)


def _image(spec: dict[str, Any], to: str) -> str | bytes:
    """Return the picture, drawn without a browser and without the network."""
    import vl_convert

    if to == "svg":
        return _rounded(str(vl_convert.vegalite_to_svg(spec, vl_version=VEGA_LITE, allowed_base_urls=[])))
    if to == "png":
        return bytes(vl_convert.vegalite_to_png(spec, vl_version=VEGA_LITE, scale=2, allowed_base_urls=[]))
    return bytes(vl_convert.vegalite_to_pdf(spec, vl_version=VEGA_LITE, allowed_base_urls=[]))


def _rounded(svg: str) -> str:
    """Return the picture with coordinates to a hundredth of a pixel: half the size, and nobody sees the rest.

    Examples
    --------
    >>> _rounded('<path d="M12.3456789,1e-7L0.5,3" transform="translate(1.23456,2)"/><text>1.23456</text>')
    '<path d="M12.35,0L0.5,3" transform="translate(1.23,2)"/><text>1.23456</text>'
    """
    number = re.compile(r"-?\d+(?:\.\d+)?e-\d+|-?\d+\.\d{3,}")

    def short(match: re.Match[str]) -> str:
        return number.sub(lambda found: f"{round(float(found[0]), 2) + 0.0:g}", match[0])

    return re.sub(r'\b(?:d|transform)="[^"]*"', short, svg)


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
