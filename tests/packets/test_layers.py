"""Every link layer, tag and tunnel leads to the same TCP segment; what stands around it is told."""

from __future__ import annotations

import pytest

from tests.fuzz import frames as made
from tests.fuzz.captures import pcap
from tests.packets.conftest import read_capture

#: Frames that hold no row: not TCP or UDP, or not to be read.
EMPTY = {"arp", "later fragment", "unknown link"}
#: The frames whose innermost packet is not the usual segment of 40 bytes.
OTHERS = {"udp", "sack", "all options", "fast open", "ipv6 fragment", "fragment"}
ENCAPSULATION = {
    "vlan": "vlan 5",
    "vlan in vlan": "vlan 7 / vlan 5",
    "mpls": "mpls 16 / mpls 16",
    "mpls pseudowire": "mpls 16",
    "pppoe": "pppoe 3",
    "pppoe link": "pppoe 3",
    "gre": "gre 7 192.0.2.1-198.51.100.2",
    "ip in ip": "ip 192.0.2.1-198.51.100.2",
    "6in4": "ip 192.0.2.1-198.51.100.2",
    "vxlan": "vxlan 42 192.0.2.1-198.51.100.2",
    "geneve": "geneve 42 192.0.2.1-198.51.100.2",
    "gtp": "gtp 9 192.0.2.1-198.51.100.2",
    "teredo": "teredo 192.0.2.1-198.51.100.2",
}


def tables_of(name: str):
    link, frame = made.FRAMES[name]
    return read_capture(pcap([frame], link=link))


@pytest.mark.parametrize("name", sorted(set(made.FRAMES) - EMPTY - OTHERS))
def test_the_innermost_segment_is_found(name):
    found = tables_of(name)
    packet = found.packets.row(0, named=True)
    expected = (1, 1, 40, 24, 1000, 2000)
    assert tuple(packet[key] for key in ("seq", "ack", "payload_bytes", "flags", "tsval", "tsecr")) == expected
    flow = found.flow()
    assert (flow["port_a"], flow["port_b"], flow["isn_a"], flow["isn_b"]) == (40000, 443, 1000, 500)
    assert {flow["addr_a"], flow["addr_b"]} in ({made.A, made.B}, {made.A6, made.B6})


@pytest.mark.parametrize("name", sorted(EMPTY))
def test_what_is_no_packet_makes_no_row(name):
    found = tables_of(name)
    assert found.packets.is_empty()
    assert found.inputs["records"].item() == 1


@pytest.mark.parametrize(("name", "text"), ENCAPSULATION.items())
def test_layers_around_a_flow_are_named(name, text):
    assert tables_of(name).flow()["encapsulation"] == text


@pytest.mark.parametrize("name", ["ethernet", "raw ip", "cooked", "ppp", "wifi", "authentication header"])
def test_link_layers_are_no_encapsulation(name):
    assert tables_of(name).flow()["encapsulation"] is None


def test_both_directions_through_labels_and_tunnel_numbers_are_one_flow():
    there = made.ip4(made.tcp(1, 1, made.ACK, b"x"), ends=(made.A, made.B))
    back = made.ip4(made.tcp(1, 2, made.ACK, b"", ports=(443, 40000)), ends=(made.B, made.A))
    labels = [made.ether(made.mpls(packet, label), 0x8847) for packet, label in ((there, 16), (back, 99))]
    assert read_capture(pcap(labels)).flows.height == 1
    tunnels = [
        made.ether(made.ip4(made.gre(packet), 47, ends=ends))
        for packet, ends in ((there, ("10.0.0.1", "10.0.0.2")), (back, ("10.0.0.2", "10.0.0.1")))
    ]
    assert read_capture(pcap(tunnels)).flows.height == 1


def test_the_same_addresses_in_two_networks_are_two_flows_and_one_stream():
    frames = [made.ether(made.vlan(made.PACKET, tag), 0x8100) for tag in (5, 6)] + [made.FRAME]
    flows = read_capture(pcap(frames)).flows
    assert flows["flow"].to_list() == [0, 1, 2]
    assert flows["stream"].to_list() == [0, 0, 0]  # Wireshark does not look at tags
    assert flows["encapsulation"].to_list() == ["vlan 5", "vlan 6", None]


def test_a_tunnel_port_without_a_tunnel_is_udp():
    for port in (4789, 6081, 2152, 3544):
        frame = made.ether(made.ip4(made.udp(b"\x08" + b"z" * 60, (50000, port)), 17))
        found = read_capture(pcap([frame]))
        assert found.packets["protocol"].to_list() == ["udp"]
        assert found.flow()["encapsulation"] is None
        assert found.packets["payload_bytes"].item() == 61


def test_layers_without_end_are_given_up():
    body = made.PACKET
    for _ in range(100):
        body = made.vlan(body, 5, 0x0800 if body is made.PACKET else 0x8100)
    found = read_capture(pcap([made.ether(body, 0x8100)]))
    assert found.packets.is_empty()
    assert found.codes == ["too_many_layers"]


def test_snaplen_down_to_the_window_keeps_the_packet():
    head = len(made.FRAME) - len(made.DATA)
    for kept in range(len(made.FRAME)):
        record = pcap([made.FRAME[:kept]])
        cut = record[:36] + len(made.FRAME).to_bytes(4, "little") + record[40:]  # the original length
        found = read_capture(cut)
        assert found.packets.height == (kept >= head + 16), kept
        if found.packets.height:
            row = found.packets.row(0, named=True)
            assert (row["payload_bytes"], row["frame_bytes"], row["captured_bytes"]) == (40, len(made.FRAME), kept)
            assert (row["tsval"] is None) == (kept < head + 32)
        assert ("options_cut" in found.codes) == (head + 16 <= kept < head + 32)


def test_fragments_are_counted_once_and_told():
    first, later = (made.FRAMES[name][1] for name in ("fragment", "later fragment"))
    found = read_capture(pcap([first, later]))
    assert found.packets["frame"].to_list() == [1]
    assert set(found.codes) == {"ip_fragment", "ip_first_fragment", "one_direction", "mid_connection"}


def test_no_ip_length_takes_the_length_on_the_wire():
    segment = made.tcp(1, 1, made.ACK, b"d" * 3000)
    found = read_capture(pcap([made.ether(made.ip4(segment, total=0))]))
    row = found.packets.row(0, named=True)
    assert (row["payload_bytes"], row["ip_bytes"]) == (3000, 3040)
