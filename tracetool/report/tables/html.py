"""Tables as HTML without scripts: each ``[1]`` links to that run's page (or its section on the same page)."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

from tracetool.diagnostics import printable
from tracetool.report.tables.document import Document, Grid, Heading, Lines, Text

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

STYLE = (
    "body{font:16px/1.5 system-ui,sans-serif;color:#222;background:#fff;max-width:70em;margin:2em auto;padding:0 1em}"
    "table{border-collapse:collapse;margin:1em 0;display:block;overflow-x:auto}"
    "th,td{padding:.2em .8em;border-bottom:1px solid #ddd;text-align:left;white-space:nowrap}"
    "td.n{font-variant-numeric:tabular-nums}a{color:#0550ae}"
    "@media(prefers-color-scheme:dark){body{color:#ddd;background:#161616}th,td{border-color:#444}a{color:#79b8ff}}"
)


def render(document: Document) -> str:
    """Return a page that holds the runs' pages as sections, so that it stands alone."""
    sections = (
        f'<section id="run-{page.run}">{_body(page.blocks, _anchor, deeper=1)}</section>\n' for page in document.runs
    )
    return _page(_title(document), _body(document.blocks, _anchor) + "".join(sections))


def _anchor(run: int) -> str:
    return f"#run-{run}"


def pages(document: Document) -> dict[str, str]:
    """Return the page and each run's page, by file name.

    Examples
    --------
    >>> sorted(pages(Document((Heading(1, "Rates"),))))
    ['index.html']
    """
    found = {"index.html": _page(_title(document), _body(document.blocks, lambda run: f"run-{run}.html"))}
    for page in document.runs:
        back = '<p><a href="index.html">All runs</a></p>\n'
        found[f"run-{page.run}.html"] = _page(page.name, back + _body(page.blocks, lambda run: f"run-{run}.html"))
    return found


def _title(document: Document) -> str:
    return next((block.text for block in document.blocks if isinstance(block, Heading)), "Fairness")


def _page(title: str, body: str) -> str:
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{_safe(title)}</title>\n<style>{STYLE}</style>\n</head>\n<body>\n{body}</body>\n</html>\n"
    )


def _body(blocks: Iterable[Heading | Lines | Grid], href: Callable[[int], str], deeper: int = 0) -> str:
    return "".join(f"{part}\n" for block in blocks for part in _block(block, href, deeper))


def _block(block: Heading | Lines | Grid, href: Callable[[int], str], deeper: int) -> Iterator[str]:
    match block:
        case Heading(level=level, text=text):
            yield f"<h{level + deeper}>{_safe(text)}</h{level + deeper}>"
        case Lines(lines=lines):
            yield f"<p>{'<br>'.join(_safe(line) for line in lines)}</p>"
        case Grid(header=header, rows=rows, left=left):
            heads = "".join(f'<th scope="col">{_safe(cell)}</th>' for cell in header)
            yield f"<table>\n<thead><tr>{heads}</tr></thead>\n<tbody>"
            for row in rows:
                names = "".join(f'<th scope="row">{_safe(str(cell))}</th>' for cell in row[:left])
                cells = "".join(f'<td class="n">{_cell(cell, href)}</td>' for cell in row[left:])
                yield f"<tr>{names}{cells}</tr>"
            yield "</tbody>\n</table>"


def _cell(cell: Text, href: Callable[[int], str]) -> str:
    links = [f'<a href="{_safe(href(link.run))}">[{_safe(link.text)}]</a>' for link in cell.links]
    return " ".join([_safe(cell.value), *links, *([_safe(cell.after)] if cell.after else [])])


def _safe(text: str) -> str:
    return escape(printable(text))
