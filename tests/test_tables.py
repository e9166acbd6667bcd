"""The schemas are complete, and every write passes their check."""

from __future__ import annotations

import json

import polars as pl
import pyarrow as pa
import pytest

from tracetool import tables
from tracetool.errors import UsageError

# Columns that tools outside the project read by name.
CONTRACT = {
    "inputs": (
        "input format first_time last_time records link_types snaplen_bytes time_resolution_ns capture_drops damaged"
    ),
    "packets": (
        "input frame time flow direction protocol seq ack payload_bytes segments flags window_bytes tsval "
        "tsecr sack ip_id ttl dscp ecn ip_bytes frame_bytes captured_bytes"
    ),
    "flows": (
        "input flow stream protocol addr_a port_a addr_b port_b start end packets_a2b packets_b2a "
        "payload_bytes_a2b payload_bytes_b2a handshake close mss_a_bytes mss_b_bytes window_scale_a "
        "window_scale_b sack_permitted timestamps ecn handshake_rtt_ns vantage"
    ),
    "samples": (
        "input flow direction origin time cwnd_segments cwnd_low_segments cwnd_high_segments "
        "ssthresh_segments srtt_ns rttvar_ns min_rtt_ns inflight_bytes mss_bytes snd_una snd_nxt "
        "snd_wnd_bytes rcv_wnd_bytes pacing_rate_bps delivery_rate_bps phase limited_by ca_state cc"
    ),
    "rtts": "input flow direction time rtt_ns method seq",
    "events": "input flow direction time frame kind trigger seq bytes evidence",
    "recoveries": (
        "input flow direction start end kind cwnd_before_segments ssthresh_after_segments beta lost_segments undone"
    ),
    "slow_starts": (
        "input flow direction episode start end exit_cause cwnd_exit_segments ssthresh_segments rounds "
        "min_rtt_ns rtt_exit_ns bdp_segments exit_to_bdp verdict confidence"
    ),
    "flow_stats": (
        "input flow direction cc cc_confidence retransmitted_segments spurious_segments lost_segments "
        "goodput_bps throughput_bps"
    ),
    "diagnostics": "input time frame offset_bytes line severity code message",
}


@pytest.mark.parametrize("table", sorted(CONTRACT))
def test_columns_of_the_contract_are_there(table: str) -> None:
    assert set(CONTRACT[table].split()) <= set(tables.columns(table))


@pytest.mark.parametrize("table", tables.names())
def test_every_column_says_what_it_means(table: str) -> None:
    for column in tables.definition(table)["columns"]:
        assert column["description"].endswith("."), column["name"]
        for suffix, unit in {"_ns": "ns", "_bytes": "bytes", "_segments": "segments", "_bps": "bit/s"}.items():
            if column["name"].endswith(suffix):
                assert column["unit"] == unit, column["name"]


@pytest.mark.parametrize("table", tables.names())
def test_key_columns_exist_and_cannot_be_null(table: str) -> None:
    schema = tables.schema(table)
    for name in tables.definition(table)["key"]:
        assert not schema.field(name).nullable


def test_metadata_survives_parquet(tmp_path) -> None:
    import pyarrow.parquet as pq

    pq.write_table(tables.empty("rtts"), tmp_path / "x.parquet")
    field = pq.read_schema(tmp_path / "x.parquet").field("rtt_ns")
    assert field.metadata[b"unit"] == b"ns"


def test_cast_orders_and_fills() -> None:
    frame = pl.DataFrame({"value": ["v"], "key": ["k"], "input": ["i"]})
    assert tables.cast("metadata", frame).column_names == ["input", "key", "value"]
    assert tables.cast("metadata", frame.drop("value")).column("value").to_pylist() == [None]


@pytest.mark.parametrize(
    ("rows", "wrong"),
    [
        (pl.DataFrame({"input": ["i"], "key": [None], "value": ["v"]}, schema_overrides={"key": pl.String}), "1 nulls"),
        (pl.DataFrame({"input": ["i"], "value": ["v"]}), "column key: 1 nulls"),
        (pl.DataFrame({"input": ["i"], "key": ["k"], "other": [1]}), "unknown columns other"),
    ],
)
def test_cast_refuses_what_does_not_fit(rows: pl.DataFrame, wrong: str) -> None:
    with pytest.raises(tables.SchemaError, match=wrong):
        tables.cast("metadata", rows)


def test_cast_refuses_lossy_values() -> None:
    rows = pa.table({"input": ["i"], "flow": [1 << 40], "direction": ["a2b"]})
    with pytest.raises(tables.SchemaError, match="column flow"):
        tables.cast("flow_stats", rows)


@pytest.mark.parametrize(
    "words", [["a", None, "", "longer than a view holds inside", "ü"], [None, None], [], ["x"] * 1000]
)
def test_strings_of_a_frame_are_those_of_a_cast(words: list[str | None]) -> None:
    frame = pl.DataFrame({"word": words, "number": range(len(words))}, {"word": pl.String, "number": pl.Int64})
    for part in (frame, frame[1:], frame.filter(pl.col("number") % 3 != 1)):
        wanted = part.to_arrow().cast(pa.schema([("word", pa.string()), ("number", pa.int64())]))
        made = tables.of_frame(part)
        made.validate(full=True)
        assert made.to_pydict() == wanted.to_pydict()
        assert not len(part) or made.schema == wanted.schema


def test_unknown_table_is_named_with_the_known_ones() -> None:
    with pytest.raises(UsageError, match=r"no table 'nosuch': the tables are diagnostics, events"):
        tables.definition("nosuch")


def test_schema_files_are_json_with_known_keys() -> None:
    for name in tables.names():
        for column in tables.definition(name)["columns"]:
            assert set(column) <= {"name", "type", "unit", "nullable", "values", "description"}
    assert json.dumps(tables.definition("packets"))
