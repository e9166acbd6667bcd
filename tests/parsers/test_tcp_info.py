"""M-Lab's archives: decoded snapshots, and records as netlink delivered them."""

# ruff: noqa: E501 - data in its own layout
from __future__ import annotations

import base64
import json
import struct

import pytest

from tracetool import parsers

INFO = {
    "State": 1, "CAState": 0, "Backoff": 0, "Options": 7, "WScale": 0x97, "AppLimited": 0, "SndMSS": 1448, "Unacked": 20,
    "Sacked": 3, "Lost": 2, "Retrans": 1, "RTT": 40250, "RTTVar": 1500, "SndSsThresh": 50, "SndCwnd": 60,
    "TotalRetrans": 7, "PacingRate": 1_000_000, "BytesAcked": 5000, "BytesReceived": 300, "MinRTT": 40000,
    "DeliveryRate": 125_000, "Delivered": 44, "BytesSent": 7000, "SndWnd": 65536,
}  # fmt: skip
#: Offsets in struct tcp_info, from include/uapi/linux/tcp.h.
PLACES = {
    "State": (0, "B"), "CAState": (1, "B"), "Backoff": (4, "B"), "Options": (5, "B"), "WScale": (6, "B"),
    "AppLimited": (7, "B"), "SndMSS": (16, "I"), "Unacked": (24, "I"), "Sacked": (28, "I"), "Lost": (32, "I"),
    "Retrans": (36, "I"), "RTT": (68, "I"), "RTTVar": (72, "I"), "SndSsThresh": (76, "I"), "SndCwnd": (80, "I"),
    "TotalRetrans": (100, "I"), "PacingRate": (104, "Q"), "BytesAcked": (120, "Q"), "BytesReceived": (128, "Q"),
    "MinRTT": (148, "I"), "DeliveryRate": (160, "Q"), "Delivered": (192, "I"), "BytesSent": (200, "Q"), "SndWnd": (228, "I"),
}  # fmt: skip
TIME = "2026-11-30T08:13:51.250Z"


def decoded(time=TIME, cookie=0xA4, **changes):
    socket = {"SPort": 443, "DPort": 5000, "SrcIP": "192.0.2.1", "DstIP": "2001:db8::9", "Cookie": cookie}
    record = {
        "Timestamp": time,
        "InetDiagMsg": {"ID": socket},
        "TCPInfo": INFO | changes,
        "CongestionAlgorithm": "cubic",
    }
    return json.dumps(record) + "\n"


def raw(time=TIME, size=232, **changes):
    info = bytearray(232)
    for key, value in (INFO | changes).items():
        at, form = PLACES[key]
        struct.pack_into("<" + form, info, at, value)
    message = struct.pack("<BBBB", 2, 1, 0, 0) + struct.pack(">HH", 443, 5000)
    message += (
        bytes([192, 0, 2, 1]) + bytes(12) + bytes([192, 0, 2, 9]) + bytes(12) + struct.pack("<IQ", 0, 0xA4) + bytes(20)
    )
    attributes = [None, None, bytes(info[:size]), None, b"cubic\0"]
    record = {
        "Timestamp": time,
        "RawIDM": base64.b64encode(message).decode(),
        "Attributes": [base64.b64encode(part).decode() if part else None for part in attributes],
    }
    return json.dumps(record) + "\n"


EXPECTED = {
    "origin": "tcp_info", "direction": "a2b", "cwnd_segments": 60, "ssthresh_segments": 50, "srtt_ns": 40_250_000,
    "rttvar_ns": 1_500_000, "min_rtt_ns": 40_000_000, "inflight_bytes": (20 - 3 - 2 + 1) * 1448, "mss_bytes": 1448,
    "snd_una": 5000, "snd_wnd_bytes": 65536, "pacing_rate_bps": 8_000_000, "delivery_rate_bps": 1_000_000,
    "phase": "congestion_avoidance", "ca_state": "open", "cc": "cubic", "lost_segments": 2, "sacked_segments": 3,
    "retransmitted_segments": 7, "delivered_segments": 44,
}  # fmt: skip


@pytest.mark.parametrize("form", [decoded, raw])
def test_both_forms_give_the_same_sample(read, form):
    meta = '{"Metadata": {"UUID": "x_1", "Sequence": 0}}\n'
    assert parsers.detect((meta + form()).encode(), "test").NAME == "tcp_info"
    assert parsers.detect(form().encode(), "test").NAME == "tcp_info"
    result = read(meta + form())
    row = result.row()
    assert {key: row[key] for key in EXPECTED} == EXPECTED
    assert result.nanoseconds() == [1_796_026_431_250_000_000]
    flow = result.row("flows")
    assert (flow["addr_a"], flow["port_a"], flow["port_b"]) == ("192.0.2.1", 443, 5000)
    assert (flow["payload_bytes_a2b"], flow["window_scale_b"], flow["window_scale_a"]) == (7000, 7, 9)
    assert (flow["timestamps"], flow["sack_permitted"], flow["ecn"]) == (True, True, False)
    assert result.metadata()["tcp_info.UUID"] == "x_1"
    assert not result.log.rows


@pytest.mark.parametrize(
    ("changes", "column", "value"),
    [
        ({"SndSsThresh": 2147483647}, "ssthresh_segments", None),
        ({"SndSsThresh": 2147483647}, "phase", "slow_start"),
        ({"CAState": 3}, "phase", "recovery"),
        ({"CAState": 4}, "ca_state", "loss"),
        ({"MinRTT": 0xFFFFFFFF}, "min_rtt_ns", None),
        ({"PacingRate": 2**64 - 1}, "pacing_rate_bps", None),
        ({"Unacked": 66}, "limited_by", "cwnd"),
        ({"AppLimited": 1}, "limited_by", "app"),
    ],
)
@pytest.mark.parametrize("form", [decoded, raw])
def test_values_that_mean_something_else(read, form, changes, column, value):
    assert read(form(**changes)).row()[column] == value


def test_an_older_kernel_s_shorter_struct(read):
    row = read(raw(size=192)).row()
    assert (row["cwnd_segments"], row["delivered_segments"], row["snd_wnd_bytes"]) == (60, None, None)


def test_cookies_tell_sockets_apart(read):
    assert read(decoded() + decoded(cookie=0xA5)).column("flow") == [0, 1]


@pytest.mark.parametrize(
    "torn", ["{\n", "[1]\n", '{"RawIDM": "!"}\n', '{"RawIDM": ""}\n', decoded(time="x"), '{"InetDiagMsg": {}}\n']
)
def test_a_torn_line_is_told_and_what_is_around_it_kept(read, torn):
    result = read(decoded() + torn + decoded(), "tcp_info")
    assert len(result.frames["samples"]) == 2
    assert (result.log.rows[0]["code"], result.log.rows[0]["line"]) == ("torn_line", 2)


def test_any_chunking_gives_the_same_tables(read):
    text = decoded() + raw() + "torn\n" + decoded()
    whole = read(text)
    for table, frame in read(text, chunk=5).frames.items():
        assert frame.equals(whole.frames[table], null_equal=True), table


def test_mutations_raise_nothing_unexpected(survives):
    survives(
        (decoded() + raw()).encode(),
        "tcp_info",
        [b"9" * 30, b"[", b"{", b'"', b"null", b"-1", b"1e999", b"\n", b"\xff", b"A"],
    )
