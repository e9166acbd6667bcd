"""Addresses, numbers, flows and time stamps as logs print them."""

# ruff: noqa: E501 - lines of logs are as long as they are
from __future__ import annotations

from datetime import UTC, datetime

import pytest

from tracetool.parsers.logged import FlowBook, Rows, address, decimal_ns, endpoint, scaled
from tracetool.parsers.stamps import split_prefix, split_suffix, stamp_of
from tracetool.parsers.tcp_state import unwrapped


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("192.0.2.1:80", ("192.0.2.1", 80)),
        ("[2001:DB8:0::1]:443", ("2001:db8::1", 443)),
        ("2001:db8::1:443", ("2001:db8::1", 443)),
        ("[::ffff:192.0.2.1]:80", ("192.0.2.1", 80)),
        ("::ffff:192.0.2.1:80", ("192.0.2.1", 80)),
        ("[fe80::1]%eth0:22", ("fe80::1%eth0", 22)),
        ("[fe80::1%eth0]:22", ("fe80::1%eth0", 22)),
        ("*:*", ("*", None)),
        ("server.example:ssh", ("server.example", None)),
    ],
)
def test_endpoints(text, expected):
    assert endpoint(text) == expected


@pytest.mark.parametrize(
    "text", ["", "x", ":80", "192.0.2.1:", "192.0.2.1:65536", "192.0.2.300:1", "[1::2::3]:1", "1.2.3:4"]
)
def test_what_is_no_endpoint(text):
    with pytest.raises(ValueError, match=r".+"):
        endpoint(text)


def test_addresses_have_one_form():
    assert address("0:0:0:0:0:0:0:1") == "::1"


def test_numbers():
    assert decimal_ns("1796030815", "4304791239") == 1_796_030_815_430_479_123
    assert decimal_ns("9999999999", "") is None
    assert [scaled(text, 1000) for text in ("1", "0.5", "1e+03", "", "-1", "inf", "nan", "1e+99", "9" * 30)] == [
        1000, 500, 1_000_000, None, None, None, None, None, None,
    ]  # fmt: skip


def test_unwrapping_goes_both_ways():
    assert unwrapped(0xFFFF_FFFF, 2, 0) == -1
    assert unwrapped(1, 2**40 + 5, 0) == 2**40 + 1


def test_a_cookie_seen_later_belongs_to_the_flow_without_one():
    book = FlowBook("x")
    first = book.find("192.0.2.1:1", "192.0.2.2:2")
    assert book.find("192.0.2.1:1", "192.0.2.2:2", "a") is first
    assert book.find("192.0.2.1:1", "192.0.2.2:2", "b") is not first
    assert book.find("192.0.2.1:1", "192.0.2.2:2").cookie == "b"  # the latest


def test_rows_come_in_bounded_pieces():
    rows = Rows("metadata", ("key", "value"), input="x")
    rows.rows = [("a", "b")] * 140_000
    assert [table.num_rows for _, table in rows.take()] == [65_536, 65_536, 8928]
    assert len(rows) == 0


def moment(stamp):
    return datetime.fromtimestamp(stamp.time / 1e9, UTC).isoformat()


@pytest.mark.parametrize(
    ("text", "expected", "missing"),
    [
        ("1796026431", "2026-11-30T08:13:51+00:00", None),
        ("1796026431.25", "2026-11-30T08:13:51.250000+00:00", None),
        ("1796026431250", "2026-11-30T08:13:51.250000+00:00", None),
        ("Mon Nov 30 08:13:51 UTC 2026", "2026-11-30T08:13:51+00:00", None),
        ("Mon Nov 30 08:13:51 PST 2026", "2026-11-30T16:13:51+00:00", None),
        ("Mon Nov 30 08:13:51 +03 2026", "2026-11-30T05:13:51+00:00", None),
        ("Mon Nov 30 08:13:51 2026", "2026-11-30T08:13:51+00:00", "time zone"),
        ("Mon Nov 30 08:13:51 XYZ 2026", "2026-11-30T08:13:51+00:00", "time zone"),
        ("Thu 06 Jan 2022 12:14:49 AM PST", "2022-01-06T08:14:49+00:00", None),
        ("Thu 06 Jan 2022 12:14:49 PM UTC", "2022-01-06T12:14:49+00:00", None),
        ("Mo 30. Nov 09:13:51 CET 2026", "2026-11-30T08:13:51+00:00", None),
        ("lun. 30 nov. 2026 09:13:51 CET", "2026-11-30T08:13:51+00:00", None),
        ("dim. 05 juil. 2026 10:00:00 CEST", "2026-07-05T08:00:00+00:00", None),
        ("2026-11-30 08:13:51", "2026-11-30T08:13:51+00:00", "time zone"),
        ("2026-11-30T10:13:51+02:00", "2026-11-30T08:13:51+00:00", None),
        ("2026-11-30T01:43:51-0630", "2026-11-30T08:13:51+00:00", None),
        ("Nov 30 08:13:51", "1972-11-30T08:13:51+00:00", "year"),
    ],
)
def test_stamps(text, expected, missing):
    stamp = stamp_of(text)
    assert stamp is not None
    assert (moment(stamp), stamp.missing) == (expected, missing)


@pytest.mark.parametrize(
    "text",
    ["", "---", "12345", "17960264310000", "Mon Feb 30 08:13:51 UTC 2026", "Mon Nov 30 25:13:51 UTC 2026", "1796026431.5 x",
     "99999999999", "2026-13-30 08:13:51", "cubic cwnd:10", "Linux host 6.2 SMP Thu Sep 7 13:12:03 UTC 2023 x86_64", "a " * 200],
)  # fmt: skip
def test_what_is_no_stamp(text):
    assert stamp_of(text) is None


def test_stamps_in_a_line():
    assert split_prefix("12 34") is None
    assert split_suffix("cubic cwnd:10") is None
    assert split_suffix("25:00:00.1") is None
