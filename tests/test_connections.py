"""One flow is chosen by id, stream, addresses or size, and found in all inputs that saw it."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import polars as pl
import pytest

from tracetool.errors import NothingMatchedError, UsageError
from tracetool.reconstruct.connections import connections, select

T = datetime(2026, 1, 1, tzinfo=UTC)


def row(**changes):
    base = {
        "input": "cap", "flow": 0, "stream": 0, "protocol": "tcp", "addr_a": "10.0.0.1", "port_a": 4000,
        "addr_b": "10.0.0.2", "port_b": 80, "start": T, "end": T + timedelta(seconds=10),
        "payload_bytes_a2b": 1000, "payload_bytes_b2a": 0, "weight": None,
    }  # fmt: skip
    return base | changes


FLOWS = pl.DataFrame(
    [
        row(),
        row(flow=1, stream=1, port_a=4001, payload_bytes_b2a=9000),
        row(flow=2, stream=0, protocol="udp", port_a=4002, payload_bytes_a2b=500),
        row(flow=3, stream=2, addr_a="2001:db8::1", addr_b="2001:db8::2", payload_bytes_a2b=10),
        # The same connection as flow 1 in the log of the data sender (b there is local here), twice by port reuse.
        row(input="log", flow=0, stream=None, addr_a="::ffff:10.0.0.2", port_a=80, addr_b="10.0.0.1", port_b=4001,
            start=T - timedelta(days=1), end=T - timedelta(hours=23), payload_bytes_a2b=None, payload_bytes_b2a=None),
        row(input="log", flow=1, stream=None, addr_a="10.0.0.2", port_a=80, addr_b="10.0.0.1", port_b=4001,
            payload_bytes_a2b=None, payload_bytes_b2a=None, weight=5),
    ],
    infer_schema_length=None,
)  # fmt: skip


def test_default_is_the_most_payload_joined_with_the_log_of_its_sender() -> None:
    chosen = select(FLOWS)
    assert chosen.label == "10.0.0.2:80 > 10.0.0.1:4001"
    assert [(p.input, p.flow, p.direction) for p in chosen.parts] == [("cap", 1, "b2a"), ("log", 1, "a2b")]


@pytest.mark.parametrize(
    ("choice", "flow"),
    [
        ("0", 0), (2, 2), ("stream 2", 3), ("udp.stream == 0", 2), ("tcp.stream eq 1", 1), (":4001", 1),
        ("10.0.0.1:4000-10.0.0.2:80", 0), ("10.0.0.2:80-10.0.0.1:4000", 0), ("10.0.0.1:4002", 2),
        ("[2001:db8::1]:4000-[2001:db8::2]:80", 3),
        ("2001:db8::1-2001:db8::2", 3), ("::ffff:10.0.0.1-10.0.0.2:80", 1),
    ],
)  # fmt: skip
def test_choices(choice, flow) -> None:
    chosen = select(FLOWS.filter(pl.col("input") == "cap"), choice)
    assert chosen.parts[0].flow == flow


def test_the_order_of_an_address_pair_chooses_the_direction() -> None:
    assert select(FLOWS, "10.0.0.2:80-10.0.0.1:4000").parts[0].direction == "b2a"
    assert select(FLOWS, "10.0.0.1:4000-10.0.0.2:80").parts[0].direction == "a2b"


def test_logs_alone_are_ranked_by_weight() -> None:
    assert select(FLOWS.filter(pl.col("input") == "log")).parts[0].flow == 1


def test_what_matches_nothing() -> None:
    with pytest.raises(NothingMatchedError, match="no flow '77'"):
        select(FLOWS, "77")
    with pytest.raises(NothingMatchedError, match="no flow in the inputs"):
        select(FLOWS.clear())
    with pytest.raises(UsageError, match="give a flow id"):
        select(FLOWS, "a:b:c]-")


def parts(connection) -> list[tuple[str, int]]:
    return [(part.input, part.flow) for part in connection.parts]


def test_all_connections_have_each_view_once_the_sender_s_capture_first() -> None:
    seen_twice = row(input="far", flow=9, stream=4, port_a=4001, payload_bytes_b2a=9500, vantage="receiver")
    flows = pl.concat(
        [pl.DataFrame([seen_twice]), FLOWS.with_columns(vantage=pl.lit("sender"))], how="diagonal_relaxed"
    )
    found = connections(flows)
    assert [parts(each) for each in found] == [
        [("cap", 1), ("far", 9), ("log", 1)],  # the log's flow 0 had the same ports a day before
        [("cap", 0)],
        [("cap", 2)],
        [("cap", 3)],
        [("log", 0)],
    ]
    assert [part.direction for part in found[0].parts] == ["b2a", "b2a", "a2b"]


@pytest.mark.parametrize(
    ("later", "handshake", "isn", "joined"),
    [
        (0, "full", 7, True),
        (0, "full", 8, False),  # a second connection on the same ports
        (86_400, "full", 7, True),  # the same one, by a clock that is a day off
        (86_400, "none", 7, False),  # nothing but the time tells, and it says no
        (60, "none", 8, True),
        (71, "none", 8, False),  # ports may be used again after TIME_WAIT
    ],
)
def test_views_of_one_address_pair_are_joined_by_sequence_numbers_or_time(later, handshake, isn, joined) -> None:
    facts = {"handshake": handshake, "isn_b": 1}
    shift = timedelta(seconds=later)
    one = row(isn_a=7, **facts)
    other = row(input="far", isn_a=isn, **facts) | {"start": T + shift, "end": T + shift + timedelta(seconds=10)}
    found = connections(pl.DataFrame([one, other], infer_schema_length=None))
    assert [len(each.parts) for each in found] == ([2] if joined else [1, 1])
    assert len(select(pl.DataFrame([one, other]), "10.0.0.1:4000").parts) == (2 if joined else 1)


def test_both_sockets_of_a_connection_in_one_log_are_one() -> None:
    """A log on a host that has both ends (network namespaces, loopback) names each socket."""
    there = row(input="log", stream=None, payload_bytes_a2b=1000, weight=9)
    back = row(input="log", flow=1, stream=None, addr_a="10.0.0.2", port_a=80, addr_b="10.0.0.1", port_b=4000,
               payload_bytes_a2b=0, payload_bytes_b2a=990, weight=1)  # fmt: skip
    later = back | {"flow": 2, "start": T + timedelta(days=1), "end": T + timedelta(days=1, seconds=1)}
    for rows in ([back, there], [row(), back, there]):
        found = connections(pl.DataFrame(rows, infer_schema_length=None))
        assert [parts(each)[-1] for each in found] == [("log", 0)]
    found = connections(pl.DataFrame([there, back, later], infer_schema_length=None))
    assert [parts(each) for each in found] == [[("log", 0)], [("log", 2)]]


def test_a_clock_since_boot_is_no_reason_to_part() -> None:
    boot = datetime(1970, 1, 2, tzinfo=UTC)
    log = row(input="log", stream=None, start=boot, end=boot + timedelta(seconds=9))
    assert [parts(each) for each in connections(pl.DataFrame([row(), log]))] == [[("cap", 0), ("log", 0)]]


def test_flows_without_addresses_are_no_connection() -> None:
    assert connections(pl.DataFrame([row(addr_a=None, addr_b=None)])) == []
