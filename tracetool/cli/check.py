"""``tracetool check``: what is odd about captures and logs, and how far they can be trusted for what."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from tracetool.cli.options import Csv, Inputs, Json
from tracetool.errors import UsageError

if TYPE_CHECKING:
    import polars as pl

_SEVERITIES = ("error", "warning", "info")


def command(inputs: Inputs, as_json: Json = False, as_csv: Csv = False) -> None:
    """Say what is odd about captures and logs, and how far to trust them for RTT, retransmissions, cwnd, throughput.

    No dataset is kept. docs/diagnostics.md explains each kind of oddity.
    """
    import polars as pl

    from tracetool.cli import output
    from tracetool.cli.prepare import dataset_of
    from tracetool.metrics.trust import trust

    if as_json and as_csv:
        raise UsageError("--json and --csv exclude each other")
    with dataset_of(inputs, quiet=True) as dataset:
        tables = {name: dataset.read(name) for name in ("inputs", "flows", "flow_stats", "diagnostics")}
        verdicts = trust(**tables, samples=dataset.scan("samples"), events=dataset.scan("events"))
        kinds = _kinds(tables["diagnostics"])
        found = [
            {**one, "diagnostics": _of(kinds, one["input"]), "trust": _of(verdicts, one["input"])}
            for one in output.plain(tables["inputs"].drop("link_types")).iter_rows(named=True)
        ]
        if as_csv:
            output.write(verdicts.with_columns(pl.col("reasons").list.join("; ")).write_csv())
        elif as_json:
            output.write(json.dumps(found, indent=1, ensure_ascii=False) + "\n")
        else:
            output.write("\n".join(map(_text, found)))


def _of(frame: pl.DataFrame, name: str) -> list[dict[str, Any]]:
    import polars as pl

    return frame.filter(pl.col("input") == name).drop("input").to_dicts()


def _kinds(diagnostics: pl.DataFrame) -> pl.DataFrame:
    """One row for each kind and input: how many, and the first message with its place."""
    import polars as pl

    return (
        diagnostics.with_columns(severity=pl.col("severity").cast(pl.String))
        .sort(pl.col("severity").replace_strict({s: k for k, s in enumerate(_SEVERITIES)}), maintain_order=True)
        .group_by("input", "severity", "code", maintain_order=True)
        .agg(pl.col("count").sum(), pl.col("message", "frame", "line", "offset_bytes").first())
    )


def _text(one: dict[str, Any]) -> str:
    from tracetool.cli import output

    def place(row: dict[str, Any]) -> str:
        for name in ("line", "frame", "offset_bytes"):
            if row[name] is not None:
                return f"{name.removesuffix('_bytes')} {row[name]}"
        return ""

    head = f"{one['input']}: {one['format']}, {one['records']:,} records\n"
    odd = [[row["severity"], row["code"], str(row["count"]), place(row), row["message"]] for row in one["diagnostics"]]
    trusted = [[row["purpose"], row["verdict"], "; ".join(row["reasons"])] for row in one["trust"]]
    met = output.columns(["severity", "kind", "count", "first", "message"], odd, left=(0, 1, 3, 4)) if odd else ""
    return f"{head}{met}{output.columns(['good for', 'verdict', 'because'], trusted, left=(0, 1, 2))}"
