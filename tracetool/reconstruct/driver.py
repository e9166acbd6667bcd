"""Reads the packets of an input flow by flow, runs what is to be known of them, and writes the inferred tables.

Batches of whole flows are worked on in threads (the kernels need no GIL) and written in the order in which they were
read, so that a repeated run gives the same files.
"""

from __future__ import annotations

import os
import tempfile
from collections import Counter, defaultdict, deque
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
import pyarrow as pa

from tracetool import tables
from tracetool.reconstruct.batch import DIRECTIONS, batch_of
from tracetool.reconstruct.directions import infer_directions
from tracetool.reconstruct.events import events
from tracetool.reconstruct.facts import facts_of
from tracetool.reconstruct.logs import from_samples
from tracetool.reconstruct.oddities import oddities, tally
from tracetool.reconstruct.rtts import rtts
from tracetool.reconstruct.samples import dictionary
from tracetool.reconstruct.stats import counted, flow_stats, payload_bytes
from tracetool.reconstruct.tracking import tracked
from tracetool.reconstruct.vantage import vantage
from tracetool.reconstruct.whole_flows import batches

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import numpy.typing as npt

    from tracetool.dataset import Dataset, InputWriter
    from tracetool.ingest import Progress
    from tracetool.reconstruct.directions import Made, Named
    from tracetool.reconstruct.facts import Facts
    from tracetool.reconstruct.stats import Counted
    from tracetool.reconstruct.whole_flows import Packed, Pending

INFERRED = ("samples", "rtts", "events", "recoveries", "slow_starts", "flow_stats")


#: Rows of a table are written so many at a time: the index of a Parquet file grows with its row groups.
WRITTEN_ROWS = 1 << 16
#: Rows of tables that have few are dictionaries until there are so many.
LISTED_ROWS = 1 << 12
#: Rows of `flow_stats` are made of so many flows at once, or of the RTT samples of so many packets.
STATS_FLOWS, STATS_PACKETS = 1 << 13, 1 << 21


@dataclass(frozen=True, slots=True)
class Results:
    """What is known of the flows of one batch.

    Attributes
    ----------
    packets
        Their number.
    tables
        By name: tables, or rows, without the column `input`; not yet `flow_stats`.
    flows
        Their numbers.
    places
        Where each was captured.
    counted
        What `flow_stats` is made of, beside `named`.
    named
        Congestion control of the directions that carry data.
    odd
        What they tell of the capture.
    copies
        Frames captured twice, by the interface of the copy.
    """

    packets: int
    tables: dict[str, Made]
    flows: npt.NDArray[np.int64]
    places: list[str]
    counted: Counted
    named: Named
    odd: pl.DataFrame
    copies: Counter[int]


def infer(
    dataset: Dataset,
    name: str,
    flow: int | None,
    writer: InputWriter,
    threads: int,
    progress: Progress | None,
) -> None:
    """Infer all there is to be known of one input, and write it.

    Parameters
    ----------
    flow
        Only this flow; None: all.
    threads
        How many batches of flows are worked on at a time.
    """
    if dataset.entries[name]["stages"]["ingest"]["files"].get("packets"):
        _from_packets(dataset, name, flow, writer, threads, progress)
    else:
        _from_log(dataset, name, writer)


def _from_packets(
    dataset: Dataset, name: str, only: int | None, writer: InputWriter, threads: int, progress: Progress | None
) -> None:
    flows = dataset.read("flows", [name]).sort("flow")
    if flows.height:
        places = flows["vantage"].to_numpy().astype(object)
        facts = facts_of(flows)
        counts = flows.select(pl.sum_horizontal("packets_a2b", "packets_b2a")).to_series().to_numpy().astype(np.int64)
        if only is not None:
            counts[np.arange(len(counts)) != only] = 0
        done, total = 0, int(counts.sum())
        odd: list[pl.DataFrame] = []
        copies: Counter[int] = Counter()
        waiting: list[Results] = []
        gathered = _Gathered(writer, name)
        for result in _results(dataset, name, facts, counts, threads):
            for table, rows in result.tables.items():
                gathered.add(table, rows)
            places[result.flows] = result.places
            odd.append(result.odd)
            copies += result.copies
            waiting.append(replace(result, tables={}))
            if sum(len(r.flows) for r in waiting) > STATS_FLOWS or sum(r.packets for r in waiting) > STATS_PACKETS:
                writer.write("flow_stats", _named("flow_stats", _stats(waiting, flows), name))
                waiting = []
            done += result.packets
            if progress is not None:
                progress(name, done, total)
        gathered.close()
        if waiting:
            writer.write("flow_stats", _named("flow_stats", _stats(waiting, flows), name))
        if (found := oddities(odd, copies)).height:
            writer.write("diagnostics", _named("diagnostics", found.to_arrow(), name))
        flows = flows.with_columns(vantage=pl.Series(places.tolist(), dtype=pl.String))
    for table in INFERRED:  # all of them, even without rows
        if table not in writer.rows:
            writer.write(table, tables.empty(table))
    writer.write("flows", tables.of_frame(flows))


class _Gathered:
    """Rows of tables that wait until they are worth a row group.

    Parameters
    ----------
    writer
        Where they go.
    name
        Their input.
    """

    def __init__(self, writer: InputWriter, name: str) -> None:
        self._writer, self._name = writer, name
        self._listed: defaultdict[str, list[dict[str, Any]]] = defaultdict(list)
        self._parts: defaultdict[str, list[pa.Table]] = defaultdict(list)

    def add(self, table: str, rows: Made) -> None:
        """Take in rows of a table, without the column `input`."""
        if isinstance(rows, list):
            self._listed[table] += rows
            if len(self._listed[table]) >= LISTED_ROWS:
                self._keep(table, _table(table, self._listed.pop(table)))
        else:
            self._keep(table, rows)

    def close(self) -> None:
        """Write what is left."""
        for table, rows in self._listed.items():
            self._keep(table, _table(table, rows))
        for table, parts in list(self._parts.items()):
            self._write(table, sum(part.num_rows for part in parts))

    def _keep(self, table: str, rows: pa.Table) -> None:
        parts = self._parts[table]
        parts.append(rows)
        size = sum(part.num_rows for part in parts)
        if size >= WRITTEN_ROWS:
            self._write(table, size - size % WRITTEN_ROWS)

    def _write(self, table: str, size: int) -> None:
        rows = pa.concat_tables(self._parts.pop(table))
        if rows.num_rows > size:
            self._parts[table].append(rows.slice(size))
        self._writer.write(table, _named(table, rows.slice(0, size).unify_dictionaries(), self._name))


def _table(table: str, rows: list[dict[str, Any]]) -> pa.Table:
    """Rows as a table without the column `input`."""
    fields = [field for field in tables.schema(table) if field.name != "input"]
    return pa.table({field.name: pa.array([row[field.name] for row in rows], field.type) for field in fields})


def _results(
    dataset: Dataset, name: str, facts: Facts, counts: npt.NDArray[np.int64], threads: int
) -> Iterator[Results]:
    parts = os.cpu_count() or 1  # whatever the number of threads: the same machine gives the same batches
    with tempfile.TemporaryFile() as spilled, ThreadPoolExecutor(threads) as pool:
        under_way: deque[Any] = deque()
        for file in dataset.opened("packets", [name]):
            for pending in batches(file, counts, spilled, parts=parts):
                if len(under_way) >= threads:
                    yield under_way.popleft().result()
                under_way.append(pool.submit(_take, pending, facts))
                del pending
        while under_way:
            yield under_way.popleft().result()


def _take(pending: Pending, facts: Facts) -> Results:
    return work(pending.take(), facts)


def work(packets: Packed, facts: Facts) -> Results:
    """All that is to be known of one batch of flows.

    Parameters
    ----------
    packets
        Packets of whole flows.
    facts
        Of all flows, by their numbers.
    """
    batch = batch_of(packets)
    del packets
    known = facts.of(batch.flows)
    found = tracked(batch, known.tcp, known.sack != 0)
    payload = payload_bytes(batch)
    places = vantage(found.echo, payload)
    inferred, named = infer_directions(batch, found.copy, known, places, (payload > 0) & known.tcp[:, None])
    happened = events(batch, found)
    made = {**inferred, "rtts": rtts(batch, found), "events": happened}
    copies = Counter(batch.interface[found.copy].tolist())
    return Results(len(batch), made, batch.flows, places, counted(batch, found), named, tally(happened), copies)


def _stats(results: Sequence[Results], flows: pl.DataFrame) -> pa.Table:
    """Rows of `flow_stats` of some batches."""
    places = pl.Series([place for result in results for place in result.places], dtype=pl.String)
    rows = flows[np.concatenate([result.flows for result in results])].with_columns(vantage=places)
    stats = flow_stats([result.counted for result in results], rows)
    return tables.of_frame(stats.join(_named_by_sends(results), ["flow", "direction"], how="left"))


def _named_by_sends(results: Sequence[Results]) -> pl.DataFrame:
    """Congestion control by flow and direction."""
    named = [result.named for result in results]
    ways = np.concatenate([one.ways for one in named])
    return pl.DataFrame(
        {
            "flow": np.concatenate([one.flows for one in named]).astype(np.int32),
            "direction": np.array(DIRECTIONS)[ways],
            "cc": [name for one in named for name in one.cc],
            "cc_confidence": [sure for one in named for sure in one.cc_confidence],
        },
        schema={"flow": pl.Int32, "direction": pl.String, "cc": pl.String, "cc_confidence": pl.Float64},
    )


def _named(table: str, rows: pa.Table, name: str) -> pa.Table:
    """A table's rows with the name of their input, ready to be written; what is not known of them is null."""
    size = rows.num_rows
    known = {
        "input": dictionary(np.zeros(size, np.int8), (name,)),
        **dict(zip(rows.column_names, rows.columns, strict=True)),
    }
    fields = tables.schema(table)
    return pa.table([known.get(f.name, pa.nulls(size, f.type)) for f in fields], names=fields.names)


def _from_log(dataset: Dataset, name: str, writer: InputWriter) -> None:
    """Slow starts and recoveries from the kernel's own samples; what a log cannot show has no rows."""
    present = dataset.entries[name]["stages"]["ingest"]["files"]
    for table in INFERRED:
        if table not in present:
            writer.write(table, tables.empty(table))
    if "slow_starts" not in present:
        for table, frame in from_samples(dataset, name).items():
            writer.write(table, _named(table, frame.to_arrow(), name))
