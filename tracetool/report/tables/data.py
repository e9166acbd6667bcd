"""Tables for programs: CSV in long form with full doubles, and JSON with everything."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence

    import polars as pl

    from tracetool.experiments.campaign import Campaign
    from tracetool.experiments.cells import Part
    from tracetool.experiments.sharing import Sharing, SharingOptions


def csv(table: pl.DataFrame) -> str:
    """Return a frame as CSV; null is empty, numbers have all their digits."""
    return table.write_csv()


def experiment_json(campaign: Campaign, found: Sequence[Part], warnings: Sequence[str]) -> str:
    """Return everything that was measured of an experiment: options, runs, cells with each repetition's value."""
    runs = [
        {"run": number, **asdict(run), "levels": dict(run.levels), "result": asdict(result)}
        for number, (run, result) in enumerate(zip(campaign.layout.runs, campaign.results, strict=True))
    ]
    for run in runs:
        run["captures"] = [side for side, _ in run["captures"]]
        run["counters"] = len(run["counters"])
    cells = []
    for part in found:
        for cell in part.cells.values():
            entry = asdict(cell) | {"levels": dict(zip(part.levels, cell.levels, strict=True))}
            entry["repetitions"] = [
                {"repetition": name, "run": run, **value}
                for (name, run), value in zip(cell.repetitions, entry.pop("values"), strict=True)
            ]
            cells.append(entry)
    document = {
        "title": campaign.layout.manifest.title,
        "options": asdict(campaign.options),
        "runs": runs,
        "cells": cells,
        "warnings": list(warnings),
    }
    return json.dumps(document, indent=1, ensure_ascii=False, allow_nan=False) + "\n"


def sharing_json(found: Sharing, options: SharingOptions) -> str:
    """Return everything that was measured of one set of captures."""
    document: dict[str, Any] = {
        "options": asdict(options),
        "interval": asdict(found.interval) | {"length_ns": found.interval.length_ns},
        "flows": found.flows.to_dicts(),
        "summary": found.summary.to_dicts(),
        "groups": found.groups.to_dicts(),
        "convergence": found.convergence.to_dicts(),
        "jain_by_scale": found.jain_by_scale.to_dicts(),
        "cov_by_scale": found.cov_by_scale.to_dicts(),
        "total_bytes": found.total_bytes,
        "notes": list(found.notes),
    }
    return json.dumps(document, indent=1, ensure_ascii=False, allow_nan=False) + "\n"
