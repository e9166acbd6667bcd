"""The page of one set of captures: flows and shares, indices, convergence, both curves over time scales."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tracetool.report.tables.document import Block, Document, Grid, Heading, Lines, Text
from tracetool.report.tables.grid import format_number

if TYPE_CHECKING:
    from tracetool.experiments.sharing import Sharing, SharingOptions

LABEL_WIDTH = 36
DEFINITIONS = {
    "jain": "Jain's index >= {theta:g}",
    "delta_fair": "delta-fair (0.1)",
    "epsilon_fair": "epsilon-fair (0.1)",
}
SUMMARY = {
    "jain": "Jain's fairness index",
    "throughput_ratio": "Throughput ratio (min/max)",
    "delta": "Delta (two flows)",
    "max_min_share": "Smallest over equal share",
}


def sharing_page(found: Sharing, options: SharingOptions) -> Document:
    """Arrange what was measured of one set of captures into a page."""
    length = found.interval.length_ns / 1e9
    said = f"Interval: {found.interval.rule}, {length:.6f} s; {options.layer} bytes"
    blocks: list[Block] = [Heading(1, "Fairness"), Lines((said, *found.notes)), *_flows(found)]
    if len(found.groups) > 1:
        blocks += [Heading(2, "Groups"), _groups(found)]
    blocks += [Heading(2, "Indices"), _summary(found), Heading(2, "Convergence time"), _convergence(found, options)]
    blocks += [Heading(2, "Over time scales"), Lines(("CoV: of all captured frames that way",)), _scales(found)]
    return Document(tuple(blocks))


def _flows(found: Sharing) -> list[Block]:
    """Return the flows and their shares; long addresses (IPv6) stand in a table of their own."""
    names = Grid(
        ("", "Flow"), tuple((Text(row[0]), Text(row[1])) for row in found.flows.select("entity", "label").rows()), 2
    )
    wide = any(len(label) > LABEL_WIDTH for label in found.flows["label"])
    rows = tuple(
        (
            Text(row["entity"]),
            *([] if wide else [Text(row["label"])]),
            Text(row["group"] or "-"),
            Text(format_number(row["start_s"], digits=2)),
            Text(format_number(row["end_s"], digits=2)),
            Text(format_number(row["rate_bps"] / 1e6, digits=3)),
            Text(format_number(row["share"], digits=4)),
        )
        for row in found.flows.iter_rows(named=True)
    )
    header = ("", *([] if wide else ["Flow"]), "Group", "from s", "to s", "Mbit/s", "Share")
    return [*([names] if wide else []), Grid(header, rows, 2 if wide else 3)]


def _groups(found: Sharing) -> Grid:
    rows = tuple(
        (
            Text(row["group"]),
            Text(str(row["flows"])),
            Text(format_number(row["share"], digits=4)),
            Text(format_number(row["ratio"])),
            Text(format_number(row["closeness"])),
            Text(format_number(row["jain"])),
        )
        for row in found.groups.iter_rows(named=True)
    )
    return Grid(("Group", "Flows", "Share", "To first", "min(F,1/F)", "Jain within"), rows)


def _summary(found: Sharing) -> Grid:
    rows = tuple(
        (Text(SUMMARY[row["metric"]]), Text(format_number(row["value"])), Text(row["reason"] or row["note"] or ""))
        for row in found.summary.iter_rows(named=True)
        if row["metric"] in SUMMARY
    )
    return Grid(("", "Value", ""), rows)


def _convergence(found: Sharing, options: SharingOptions) -> Grid:
    rows = []
    for row in found.convergence.iter_rows(named=True):
        name = DEFINITIONS[row["definition"]].format(theta=options.theta)
        why = row["reason"] or ""
        if row["censored_at"] is not None:
            why = f"{why} in {row['censored_at']:.3f} s"
        rows.append((Text(name), Text(format_number(row["value"])), Text(why)))
    return Grid((f"{options.bin_ns / 1e9:g} s bins, hold {options.hold}", "Seconds", ""), tuple(rows))


def _scales(found: Sharing) -> Grid:
    curves = found.jain_by_scale.select("scale_ns", jain="value", why="reason").join(
        found.cov_by_scale.filter(found.cov_by_scale["entity"] == "total").select("scale_ns", cov="value"),
        on="scale_ns",
        how="left",
        maintain_order="left",
    )
    rows = tuple(
        (
            Text(f"{row['scale_ns'] / 1e9:g}sec"),
            Text(format_number(row["jain"])),
            Text(format_number(row["cov"])),
            Text(row["why"] or ""),
        )
        for row in curves.iter_rows(named=True)
    )
    return Grid(("Scale", "Jain", "CoV of total", ""), rows)
