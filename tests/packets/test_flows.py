"""Flows: sides, handshakes, options, ends, reuse, and numbers without wrap."""

from __future__ import annotations

import struct

import polars as pl

from tests.fuzz import frames as made
from tests.fuzz.captures import START, pcap, pcap_header
from tests.packets.conftest import read_capture

OUT, BACK = {"ports": (40000, 443)}, {"ports": (443, 40000)}


def up(*arguments, **options) -> bytes:
    return made.ip4(made.tcp(*arguments, **options, **OUT), ends=(made.A, made.B))


def down(*arguments, **options) -> bytes:
    return made.ip4(made.tcp(*arguments, **options, **BACK), ends=(made.B, made.A))


def raw(*packets: bytes):
    return read_capture(pcap(packets, link=101))


def handshake(up_options: bytes = made.MSS, down_options: bytes = made.MSS) -> list[bytes]:
    return [
        up(1000, 0, made.SYN, b"", up_options),
        down(5000, 1001, made.SYN | made.ACK, b"", down_options),
        up(1001, 5001, made.ACK),
    ]


def test_a_whole_connection():
    flow = read_capture(pcap(made.connection())).flow()
    assert flow["handshake"] == "full"
    assert flow["close"] == "fin"
    assert (flow["addr_a"], flow["port_a"], flow["addr_b"], flow["port_b"]) == (made.A, 40000, made.B, 443)
    assert (flow["mss_a_bytes"], flow["mss_b_bytes"]) == (1460, 1460)
    assert (flow["window_scale_a"], flow["window_scale_b"]) == (7, 7)
    assert flow["sack_permitted"]
    assert flow["timestamps"]
    assert flow["ecn"] is False
    assert flow["handshake_rtt_ns"] == 2_000_000
    assert (flow["isn_a"], flow["isn_b"]) == (1000, 5000)
    assert (flow["packets_a2b"], flow["packets_b2a"], flow["payload_bytes_a2b"]) == (10, 8, 700)
    assert flow["vantage"] is None


def test_a_syn_ack_seen_first_tells_who_opened():
    found = raw(*handshake()[1:])
    assert found.flow()["addr_a"] == made.A
    assert found.flow()["handshake"] == "partial"
    assert found.flow()["handshake_rtt_ns"] is None
    assert found.packets["direction"].to_list() == ["b2a", "a2b"]


def test_in_mid_connection_what_is_unknown_is_null():
    found = raw(down(700, 300, made.ACK, b"data"), up(300, 704, made.ACK))
    flow = found.flow()
    assert (flow["addr_a"], flow["handshake"], flow["close"]) == (made.B, "none", "open")
    for column in ("mss_a_bytes", "window_scale_a", "sack_permitted", "ecn", "handshake_rtt_ns"):
        assert flow[column] is None, column
    assert flow["timestamps"] is False  # segments after the handshake had none
    assert found.packets["window_bytes"].to_list() == [None, None]
    assert found.packets["window_raw"].to_list() == [501, 501]
    assert found.packets["seq"].to_list() == [1, 1]
    assert found.packets["ack"].to_list() == [1, 5]


def test_the_window_is_scaled_only_where_both_agreed():
    both = raw(*handshake(made.SCALE, made.SCALE))
    assert both.packets["window_bytes"].to_list() == [501, 501, 501 << 7]
    one = raw(*handshake(made.SCALE, made.MSS))
    assert one.packets["window_bytes"].to_list() == [501, 501, 501]
    assert one.flow()["window_scale_b"] == 0
    half = raw(handshake(made.SCALE)[0], up(1001, 5001, made.ACK))
    assert half.packets["window_bytes"].to_list() == [501, None]


def test_a_scale_above_14_is_14():
    options = b"\x03\x03\x20\x01"
    found = raw(*handshake(options, options))
    assert found.packets["window_bytes"].to_list()[-1] == 501 << 14
    assert found.codes == ["window_scale_above_14"]


def test_a_clock_that_jumps_is_told():
    records = b"".join(
        struct.pack("<IIII", START + late, 0, len(packet), len(packet)) + packet
        for late, packet in zip((0, 1, 90_000), handshake(), strict=True)
    )
    assert read_capture(pcap_header(link=101) + records).codes == ["time_jump"]


def test_ecn_is_what_was_negotiated():
    for asked, answered, result in (
        (0xC0, 0x40, True),  # RFC 3168
        (0xC0, 0x00, False),
        (0x00, 0x00, False),
        (0x1C0, 0x80, True),  # RFC 9768
        (0x1C0, 0x40, True),  # an RFC 3168 server
        (0x1C0, 0x1C0, False),  # flags reflected
    ):
        syn = up(1000, 0, made.SYN | asked, b"", made.MSS)
        answer = down(5000, 1001, made.SYN | made.ACK | answered, b"", made.MSS)
        assert raw(syn, answer).flow()["ecn"] is result, (asked, answered)


def test_sequence_numbers_run_on_through_the_wrap():
    isn = 0xFFFFFF00
    segments = [up(isn, 0, made.SYN)] + [
        up((isn + 1 + 100 * k) & 0xFFFFFFFF, 1, made.ACK, b"d" * 100) for k in range(6)
    ]
    answers = [down(1, (isn + 101 + 100 * k) & 0xFFFFFFFF, made.ACK) for k in range(6)]
    found = raw(*segments, *answers)
    up_rows = found.packets.filter(pl.col("direction") == "a2b")
    assert up_rows["seq"].to_list() == [0, 1, 101, 201, 301, 401, 501]
    assert found.packets.filter(pl.col("direction") == "b2a")["ack"].to_list() == [101, 201, 301, 401, 501, 601]


def test_many_gigabytes_need_more_than_32_bits():
    step = 1 << 30
    found = raw(*[up((1 + step * k) & 0xFFFFFFFF, 1, made.ACK, b"d") for k in range(20)])
    assert found.packets["seq"].to_list() == [1 + step * k for k in range(20)]


def test_what_came_before_the_first_packet_is_negative():
    found = raw(up(1000, 1, made.ACK, b"d"), up(900, 1, made.ACK, b"d"))
    assert found.packets["seq"].to_list() == [1, -99]


def test_a_new_syn_opens_a_new_flow_and_a_repeated_one_does_not():
    found = raw(*handshake(), up(1000, 0, made.SYN), up(9000, 0, made.SYN), down(1, 9001, made.SYN | made.ACK))
    assert found.packets["flow"].to_list() == [0, 0, 0, 0, 1, 1]
    assert found.flows["stream"].to_list() == [0, 1]
    assert found.flow(1)["isn_a"] == 9000
    assert found.flow(0)["handshake_rtt_ns"] is not None


def test_a_repeated_syn_leaves_the_round_trip_unknown():
    syn, answer, ack = handshake()
    found = raw(syn, syn, answer, ack)
    assert found.flow()["handshake"] == "full"
    assert found.flow()["handshake_rtt_ns"] is None


def test_ends():
    fins = [up(1001, 5001, made.FIN | made.ACK), down(5001, 1002, made.FIN | made.ACK)]
    reset = up(1002, 0, made.RST)
    assert raw(*handshake()).flow()["close"] == "open"
    assert raw(*handshake(), *fins).flow()["close"] == "fin"
    assert raw(*handshake(), *fins, reset).flow()["close"] == "fin"
    assert raw(*handshake(), reset).flow()["close"] == "rst"
    assert raw(*handshake(), fins[0], reset).flow()["close"] == "rst"


def test_super_frames_count_as_the_segments_they_stand_for():
    payload = 5 * 1448 + 3
    syns = [made.MSS + made.TIMES[2:]] * 2
    segment = up(1001, 5001, made.ACK, b"d" * payload, made.TIMES)
    found = raw(*handshake(*syns), segment)
    assert found.packets["segments"].to_list() == [0, 0, 0, 6]
    assert "super_frame" in found.codes


def segments_in_mid_connection(*payloads: int) -> list[int]:
    packets = [up(1, 1, made.ACK, b"d" * payload, made.TIMES) for payload in payloads]
    return raw(*packets).packets["segments"].to_list()


def test_segments_without_a_handshake():
    assert segments_in_mid_connection(1448, 2896, 4344, 100) == [1, 2, 3, 1]  # put together from Ethernet's
    assert segments_in_mid_connection(8948, 8948, 5000) == [1, 1, 1]  # jumbo frames
    assert segments_in_mid_connection(8948, 14480, 8948) == [1, 10, 7]  # no path carries the second in one


def test_sack_edges_are_relative_and_unwrapped():
    isn = 0xFFFFFFF0
    block = made.sack((isn + 101) & 0xFFFFFFFF, (isn + 201) & 0xFFFFFFFF)
    found = raw(up(isn, 0, made.SYN), down(1, isn + 1, made.ACK, b"", block))
    assert found.packets["sack"].to_list() == [None, [101, 201]]


def test_fast_open_and_mptcp_are_noted():
    assert read_capture(pcap([made.FRAMES["fast open"][1]])).flow()["fast_open"]
    assert read_capture(pcap([made.FRAMES["all options"][1]])).flow()["mptcp"]


def test_udp_rows():
    found = read_capture(pcap([made.FRAMES["udp"][1]]))
    row = found.packets.row(0, named=True)
    assert (row["protocol"], row["payload_bytes"], row["seq"], row["flags"], row["window_bytes"]) == (
        "udp",
        7,
        None,
        None,
        None,
    )
    assert found.flow()["handshake"] is None


def test_cost_and_tables_with_many_flows():
    """Tables grow while flows come in, and every flow keeps its packets."""
    frames = [made.ip4(made.tcp(seq, 0, made.SYN, ports=(port, 443))) for seq in (7, 8) for port in range(1, 5001)]
    records = b"".join(struct.pack("<IIII", START, 0, len(frame), len(frame)) + frame for frame in frames)
    found = read_capture(pcap_header(link=101) + records)
    assert found.flows.height == 10_000  # the second SYN of each has another number
    assert found.packets["flow"].to_list() == list(range(10_000))
    assert found.flows["stream"].to_list() == list(range(10_000))
