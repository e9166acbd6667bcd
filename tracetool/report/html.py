"""One chart as a page that works offline, and the pieces that the report page is made of too.

The page carries one copy of the JavaScript, asks the network for nothing (its content policy forbids it), and follows
the reader's light or dark theme.
"""

from __future__ import annotations

import json
from functools import cache
from html import escape
from typing import TYPE_CHECKING, Any

from tracetool.report.plain import printable
from tracetool.report.vega import GRID, INK
from tracetool.report.vega_marks import PALETTE, PAPER

if TYPE_CHECKING:
    from tracetool.report.figure import Figure

VEGA_LITE = "6.4"
DARK_PALETTE = ("#4FA8E0", "#F0803C", "#2FC79A", "#E39AC4", "#F0B429", "#8FD0F5", "#A8A8A8", "#CDB060")
DARK_INK, DARK_GRID, DARK_PAPER = "#E4E4E4", "#3A3A3A", "#161616"
POLICY = "default-src 'none'; script-src 'unsafe-inline' 'unsafe-eval'; style-src 'unsafe-inline'; img-src data: blob:"

STYLE = """
:root { color-scheme: light dark; --ink: #222; --paper: #fff; --faint: #666; --line: #ddd; }
@media (prefers-color-scheme: dark) { :root { --ink: #e4e4e4; --paper: #161616; --faint: #a5a5a5; --line: #3a3a3a; } }
body { margin: 1rem; background: var(--paper); color: var(--ink); font: 15px/1.45 "Helvetica Neue", Arial, sans-serif; }
.chart { max-width: 1200px; overflow-x: auto; }
.hint { color: var(--faint); font-size: 13px; }
#vg-tooltip-element { max-width: 46rem; }
#vg-tooltip-element td.value { max-width: 40rem; overflow-wrap: anywhere; }
@media print { .hint { display: none; } body { background: #fff; color: #000; } }
"""

HINT = (
    "Drag to move, wheel to zoom, double-click to reset; click a legend entry to see it alone, twice to see all again."
)

# Draws a specification into an element. In the dark theme, each light colour is exchanged for its dark twin, so the
# specification itself stays a plain one.
_DRAW = """
const SWAP = %(swap)s;
const dark = window.matchMedia("(prefers-color-scheme: dark)");
function themed(text) {
  return JSON.parse(dark.matches ? text.replace(/#[0-9A-Fa-f]{6}\\b/g, c => SWAP[c.toUpperCase()] || c) : text);
}
function fitted(spec, element) {
  const width = Math.max(260, Math.min(1100, element.clientWidth - 90));
  for (const part of spec.vconcat || [spec]) part.width = width;
  return spec;
}
function draw(element, text) {
  const spec = fitted(themed(text), element);
  spec.background = "transparent";
  return vegaEmbed(element, spec, {actions: {export: true, source: false, compiled: false, editor: false},
    renderer: "canvas", tooltip: {theme: dark.matches ? "dark" : "light"}});
}
const drawn = new Map();
function show(element, text) { drawn.set(element, text); return draw(element, text); }
dark.addEventListener("change", () => drawn.forEach((text, element) => draw(element, text)));
"""


@cache
def javascript() -> str:
    """Return Vega, Vega-Lite and Vega-Embed with `show(element, specification text)`, as one classic script."""
    import vl_convert

    swap = dict(zip((color.upper() for color in PALETTE), DARK_PALETTE, strict=True))
    swap |= {INK: DARK_INK, GRID: DARK_GRID, PAPER: DARK_PAPER}
    bundle = vl_convert.javascript_bundle("window.vegaEmbed = vegaEmbed;", vl_version=VEGA_LITE)
    if "</script" in bundle.lower():
        raise AssertionError("the Vega bundle would end its script element early")
    return "(() => {" + bundle + "})();" + _DRAW % {"swap": json.dumps(swap)}


def script_json(value: Any) -> str:
    """Return `value` as JSON that may stand inside a script element, whatever its strings hold.

    Examples
    --------
    >>> script_json("</script><!--")
    '"\\\\u003c/script\\\\u003e\\\\u003c!--"'
    """
    text = json.dumps(value, ensure_ascii=True, separators=(",", ":"))
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def chart_page(figure: Figure, spec: dict[str, Any]) -> str:
    """Return a whole HTML page that shows one chart."""
    title = escape(printable(figure.title))
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{POLICY}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title>
<link rel="icon" href="data:,">
<style>{STYLE}</style>
</head>
<body>
<div class="chart" id="chart" role="img" aria-label="{title}"></div>
<p class="hint">{HINT}</p>
<script>{javascript()}</script>
<script>show(document.getElementById("chart"), JSON.stringify({script_json(spec)}));</script>
</body>
</html>
"""
