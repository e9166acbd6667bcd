"""Charts and the report in a real browser: drawn, alive, silent."""

from __future__ import annotations

import pytest

from tests.report.browser import CHROMIUM, run
from tests.report.made import HOSTILE, make
from tracetool.report import charts
from tracetool.report.export import render
from tracetool.report.page import html_of

pytestmark = [
    pytest.mark.skipif(CHROMIUM is None, reason="needs Chromium (Debian: chromium)"),
]

# Finds an item of the drawing and where it stands on the canvas.
FIND = """
const element = document.getElementById("chart");
const result = await show(element, drawn.get(element));
await wait(500);
const view = result.view, canvas = element.querySelector("canvas");
function find(item, test, x, y) {
  if (item.marktype === undefined && test(item)) return [item, x, y];
  for (const child of item.items || []) {
    const shift = item.marktype === "group" ? [child.x || 0, child.y || 0] : [0, 0];
    const found = find(child, test, x + shift[0], y + shift[1]);
    if (found) return found;
  }
}
function send(kind, [item, x, y]) {
  const box = canvas.getBoundingClientRect(), bounds = item.bounds, pad = view.padding();
  const origin = [view.origin()[0] + pad.left, view.origin()[1] + pad.top];
  const at = {clientX: box.left + origin[0] + x + (bounds.x1 + bounds.x2) / 2,
              clientY: box.top + origin[1] + y + (bounds.y1 + bounds.y2) / 2, bubbles: true};
  for (const name of kind) canvas.dispatchEvent(new PointerEvent(name, at));
}
const root = view.scenegraph().root;
"""


@pytest.fixture(scope="module")
def dataset(tmp_path_factory):
    return make(tmp_path_factory.mktemp("made") / "dataset")


def test_a_click_on_a_legend_entry_isolates_its_series(dataset, tmp_path):
    script = (
        FIND
        + """
    const label = find(root, item => item.mark && item.mark.name === "series_0_legend_labels"
      && item.datum.value === "cwnd (inferred)", 0, 0);
    send(["pointermove", "pointerdown", "pointerup", "click"], label);
    await wait(300);
    return view.data("pick_0_stroke_store").map(row => row.values);
    """
    )
    answer = run(str(render(charts.build("cwnd", dataset), "html")), script, tmp_path)
    assert answer == {"said": [["cwnd (inferred)"]], "problems": []}


def test_a_tooltip_has_exact_values_and_the_filter_of_the_frame(dataset, tmp_path):
    script = (
        FIND
        + """
    const mark = find(root, item => item.mark && item.datum && item.datum.series_0 === "retransmission"
      && item.tooltip !== undefined, 0, 0);
    send(["pointermove", "mousemove"], mark);
    await wait(500);
    return (document.getElementById("vg-tooltip-element") || {innerText: "no tooltip"}).innerText.replace(/\\s+/g, " ");
    """
    )
    answer = run(str(render(charts.build("time-sequence", dataset), "html")), script, tmp_path)
    assert answer["problems"] == []
    for part in ("retransmission", "3.200000000", "200", "tcp.stream eq 0 and frame.number == 77", "fast"):
        assert part in answer["said"]


def test_the_report_draws_sorts_searches_and_opens(dataset, tmp_path):
    script = """
    const table = document.getElementById("flow-table");
    const first = () => table.tBodies[0].rows[0].cells[4].textContent;
    const heading = [...table.tHead.rows[0].cells].find(cell => cell.textContent === "sender");
    const sorted = [];
    for (const turn of [1, 2]) { heading.querySelector("button").click(); sorted.push(first()); }
    const search = document.getElementById("search");
    search.value = "4001";
    search.dispatchEvent(new Event("input"));
    const closed = document.querySelectorAll("details.flow:not([open])").length;
    document.querySelectorAll("details").forEach(element => { element.open = true; });
    for (const element of document.querySelectorAll(".chart"))
      await show(element, document.getElementById(element.dataset.spec).textContent);
    const drawn = [...document.querySelectorAll(".chart")].filter(element => element.querySelector("canvas")).length;
    return {sorted, closed, drawn, shown: document.getElementById("shown").textContent};
    """
    answer = run(html_of(dataset, title=HOSTILE, command=HOSTILE), script, tmp_path)
    assert answer["problems"] == []
    assert answer["said"] == {
        "sorted": ["192.0.2.1:4001", "192.0.2.1:4000"],
        "closed": 1,
        "drawn": 5 + 2 * 6,
        "shown": "1 of 2",
    }


def test_a_click_opens_a_flow_and_all_charts_are_drawn_unseen_ones_too(dataset, tmp_path):
    script = """
    const drawn = element => element.querySelector("canvas") !== null;
    const charts = [...document.querySelectorAll(".chart")], second = document.querySelectorAll("details.flow")[1];
    const inside = [...second.querySelectorAll(".chart")], before = inside.filter(drawn).length;
    second.querySelector("summary").click();
    for (let turn = 0; turn < 100 && !charts.every(drawn); turn++) await wait(100);
    return {before, open: second.open, inside: inside.length, missing: charts.filter(chart => !drawn(chart)).length};
    """
    wanted = {"said": {"before": 0, "open": True, "inside": 6, "missing": 0}, "problems": []}
    page = html_of(dataset)
    for _ in range(3):  # what is not seen is drawn when the browser is idle, which it is not on a busy machine
        answer = run(page, script, tmp_path)
        if answer == wanted:
            break
    assert answer == wanted
