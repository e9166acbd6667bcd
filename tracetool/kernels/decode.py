"""Frames to packets: find the transport header, the flow and the unwrapped numbers, and keep the flow's books."""

from __future__ import annotations

from typing import Any

from tracetool.kernels._bare import bare_kernel
from tracetool.kernels.conversations import converse, is_reuse
from tracetool.kernels.flow_table import find
from tracetool.kernels.layer_names import FOUND, QUOTED
from tracetool.kernels.layers import locate
from tracetool.kernels.loads import be16, be32, u8
from tracetool.kernels.records import (
    BASE,
    ECN_ASKED,
    ECN_GRANTED,
    FAST_OPEN,
    FIN,
    HANDSHAKE,
    HAS_ACK,
    HAS_INTERFACE,
    HAS_IP_ID,
    HAS_SACK,
    HAS_TCP,
    HAS_TIMESTAMPS,
    HAS_WINDOW,
    MPTCP,
    OFFLOADED,
    RST,
    SACK_PERMITTED,
    SACKS,
    SIDE_SYN,
    SYN,
    SYN_ACK,
    SYN_AGAIN,
    SYN_TIMESTAMPS,
    TIMESTAMPS,
)
from tracetool.kernels.sequences import segments_of, unwrap
from tracetool.kernels.tcp_options import MAX_EDGES, read_options

DONE, GROUP, GROW_FLOWS, GROW_CONVERSATIONS, GROW_LAYERS = range(5)
#: Notes beside those of `tracetool.kernels.layers`.
BAD_TCP, OPTIONS_CUT, FIRST_FRAGMENT, SUPER_FRAME, TIME_BACKWARDS, TIME_JUMP, LONG_SCALE = range(9, 16)
NOTES = 16
_FIN, _SYN, _RST, _ACK = 1, 2, 4, 16
_SLL2 = 276  # link type of Linux cooked captures, version 2
_DAY_NS = 86_400 * 1_000_000_000  # a longer gap is hardly idleness
_ETHERNET_MTU, _JUMBO_MTU = 1500, 9216
_SMALLEST_MSS = 48  # Linux' TCP_MIN_SND_MSS


@bare_kernel
def note(notes: Any, code: int, frame: int, time: int) -> None:
    """Count an oddity, and keep where it was met first."""
    it = notes[code]
    if it.count == 0:
        it.frame = frame
        it.time = time
    it.count += 1


@bare_kernel
def open_flow(
    head: Any, flags: int, time: int, stream: int, flows: Any, sides: Any, layers: Any, layer_rows: Any, state: Any
) -> int:
    """Add a flow for a packet whose sender is side a, unless it answers a SYN. There is room for it."""
    row = state.flows
    state.flows += 1
    flow = flows[row]
    if head.protocol == 6 and flags & (_SYN | _ACK) == (_SYN | _ACK):
        flow.a0, flow.a1, flow.b0, flow.b1 = head.dst0, head.dst1, head.src0, head.src1
        flow.port_a, flow.port_b = head.dst_port, head.src_port
    else:
        flow.a0, flow.a1, flow.b0, flow.b1 = head.src0, head.src1, head.dst0, head.dst1
        flow.port_a, flow.port_b = head.src_port, head.dst_port
    flow.protocol, flow.version = head.protocol, head.version
    flow.encapsulation = head.encapsulation
    flow.marks = 0
    flow.stream = stream
    flow.start, flow.end = time, time
    flow.handshake_rtt = -1
    flow.layers_at = state.layers
    flow.layers = head.layers
    for k in range(head.layers):
        layer_rows[state.layers + k] = layers[k]
    state.layers += head.layers
    for k in range(2):
        side = sides[2 * row + k]
        side.packets, side.payload, side.edge, side.base, side.jumbo = 0, 0, 0, 0, 0
        side.mss, side.shift, side.scale, side.marks = -1, -1, -1, 0
    return row


@bare_kernel
def note_syn(flow: Any, mine: Any, peer: Any, flags: int, time: int, options: Any) -> None:
    """Take from a SYN what holds for the whole connection."""
    ace = (flags >> 6) & 7
    if flags & _ACK:
        if flow.marks & SYN_ACK:
            flow.marks |= SYN_AGAIN
        flow.marks |= SYN_ACK
        asked = flow.marks & ECN_ASKED
        # RFC 3168, 6.1.1, and RFC 9768, table 2 (a server that knows only the former answers with ECE alone).
        if ace in (1, 5) or (asked and ace in (2, 3, 4, 6)):
            flow.marks |= ECN_GRANTED
    else:
        if flow.marks & SYN:
            flow.marks |= SYN_AGAIN
        flow.marks |= SYN
        flow.syn_time = time
        if ace in (3, 7):
            flow.marks |= ECN_ASKED
    mine.marks |= SIDE_SYN
    mine.mss = options.mss
    mine.shift = options.shift
    if options.sack_permitted:
        mine.marks |= SACK_PERMITTED
    if options.timestamps:
        mine.marks |= SYN_TIMESTAMPS
    # RFC 7323, 2.2: the scale is in force only if both sent the option.
    if mine.shift < 0 or (peer.marks & SIDE_SYN and peer.shift < 0):
        mine.scale = 0
        peer.scale = 0
    elif peer.marks & SIDE_SYN:
        mine.scale = mine.shift
        peer.scale = peer.shift
    elif flags & _ACK:
        mine.scale = mine.shift


@bare_kernel
def full_size(mine: Any, peer: Any, payload: int, headers: int, options: int) -> int:
    """Payload of a full segment: by the MSS options less the options sent (RFC 6691), else by what was seen.

    Where no SYN was seen, the path is taken for Ethernet's 1500 bytes, until a frame comes that is longer, fits a jumbo
    frame, and is no multiple of what 1500 bytes carry; a still longer one shows that frames are put together.

    Parameters
    ----------
    mine, peer : SIDE records
        The sender's and the receiver's.
    payload
        Of this segment.
    headers
        Bytes of its IP and TCP headers.
    options
        Bytes of its TCP options.
    """
    if mine.mss > 0 and peer.mss > 0:
        return min(mine.mss, peer.mss) - options
    if mine.mss > 0 or peer.mss > 0:
        return max(mine.mss, peer.mss) - options
    usual = max(_ETHERNET_MTU - headers, _SMALLEST_MSS)
    if payload > usual and not mine.marks & OFFLOADED:
        if payload + headers > _JUMBO_MTU:
            mine.marks |= OFFLOADED
            mine.jumbo = 0
        elif payload % usual:
            mine.jumbo = max(mine.jumbo, payload)
    return max(usual, mine.jumbo)


@bare_kernel
def decode(
    buffer: Any, frames: Any, first: int, count: int, packets: Any, pool: Any, heads: Any, layers: Any, options: Any,
    edges: Any, flows: Any, sides: Any, flow_slots: Any, conversations: Any, conversation_slots: Any,
    layer_rows: Any, notes: Any, states: Any,
) -> tuple[int, int]:  # fmt: skip
    """Decode ``frames[first:count]`` into packets.

    Returns
    -------
    tuple
        The next frame, and why it stopped there: DONE, a full GROUP of packets, or a table that must grow first.
    """
    state = states[0]
    head = heads[0]
    outer = heads[1]
    option = options[0]
    for index in range(first, count):
        if state.packets == len(packets):
            return index, GROUP
        if state.flows >= len(flows):
            return index, GROW_FLOWS
        if state.conversations + 2 > len(conversations):
            return index, GROW_CONVERSATIONS
        if state.layers + len(layers) > len(layer_rows):
            return index, GROW_LAYERS
        frame = frames[index]
        number = state.frames + 1
        time = frame.time
        state.frames = number
        if frame.link < 0:  # counted by Wireshark, but no packet
            continue
        if not state.started:
            state.started = 1
            state.first_time = time
            state.last_time = time
        elif time < state.last_time:
            note(notes, TIME_BACKWARDS, number, time)
        elif time - state.last_time > _DAY_NS:
            note(notes, TIME_JUMP, number, time)
        state.last_time = time
        start = frame.offset
        end = start + frame.captured
        code = locate(buffer, start, end, start + frame.original, frame.link, heads, layers)
        if code == QUOTED:
            if head.protocol == 17:
                converse(head, 0, 0, 0, True, conversations, conversation_slots, state)
            else:
                seq, flags = be32(buffer, head.at + 4), be16(buffer, head.at + 12) & 0x1FF
                converse(head, flags, seq, 0, True, conversations, conversation_slots, state)
            continue
        if code != FOUND:
            note(notes, code, number, time)
            continue
        at = head.at
        flags = 0
        seq = 0
        ack = 0
        window = 0
        tcp = head.protocol == 6
        if tcp:
            seq, ack = be32(buffer, at + 4), be32(buffer, at + 8)
            flags, window = be16(buffer, at + 12) & 0x1FF, be16(buffer, at + 14)
            size = (u8(buffer, at + 12) >> 4) * 4
            payload = head.end - at - size
            if size < 20 or payload < 0:
                note(notes, BAD_TCP, number, time)
                continue
            if at + size > end:
                note(notes, OPTIONS_CUT, number, time)
            read_options(buffer, at + 20, min(at + size, end), option, edges)
        else:
            size = 8
            payload = head.end - at - 8
            length = be16(buffer, at + 4) - 8
            if 0 <= length < payload:
                payload = length
            payload = max(payload, 0)
        if head.first_fragment:
            note(notes, FIRST_FRAGMENT, number, time)

        # -- which flow
        if outer.protocol == 17:
            converse(outer, 0, 0, 0, False, conversations, conversation_slots, state)
        slot, row, direction = find(flows, flow_slots, head, head.encapsulation, state.seed)
        stream = -1
        if row < 0:
            stream = converse(head, flags, seq, ack, False, conversations, conversation_slots, state)
        elif tcp:
            side = sides[2 * row + direction]
            if flags & _SYN or not side.marks & BASE or not sides[2 * row + 1 - direction].marks & BASE:
                stream = converse(head, flags, seq, ack, False, conversations, conversation_slots, state)
                if head.encapsulation == 0:
                    if flags & (_SYN | _ACK) == _SYN and stream != flows[row].stream:
                        row = -1
                else:  # its conversation may hold other flows, around which something else stands
                    if is_reuse(flags, seq, side.marks & BASE != 0, side.base):
                        row = -1
        if row < 0:
            row = open_flow(head, flags, time, stream, flows, sides, layers, layer_rows, state)
            flow_slots[slot] = row
            direction = 1 if tcp and flags & (_SYN | _ACK) == (_SYN | _ACK) else 0
        flow = flows[row]
        mine = sides[2 * row + direction]
        peer = sides[2 * row + 1 - direction]
        flow.end = max(flow.end, time)
        mine.packets += 1
        mine.payload += payload

        # -- the row
        packet = packets[state.packets]
        packet.frame = number
        packet.time = time
        packet.flow = row
        packet.direction = direction
        packet.protocol = head.protocol
        packet.payload = payload
        packet.ip_bytes = head.ip_bytes
        packet.frame_bytes = frame.original
        packet.captured_bytes = frame.captured
        packet.interface = frame.interface
        if frame.link == _SLL2 and frame.captured >= 8:  # cooked frames of all interfaces tell theirs
            packet.interface = be32(buffer, start + 4) & 0x7FFFFFFF
        packet.ttl = head.ttl
        packet.tos = head.tos
        packet.flags = flags
        packet.window_raw = window
        packet.seq, packet.ack, packet.window, packet.tsval, packet.tsecr, packet.ip_id = 0, 0, 0, 0, 0, 0
        packet.sack = state.edges
        packet.edges = 0
        has = HAS_INTERFACE if packet.interface >= 0 else 0
        if head.ip_id >= 0:
            packet.ip_id = head.ip_id
            has |= HAS_IP_ID
        if not tcp:
            packet.segments = min(payload, 1)
            packet.has = has
            state.packets += 1
            continue
        has |= HAS_TCP
        if not mine.marks & BASE:
            mine.base = seq if flags & _SYN else (seq - 1) & 0xFFFFFFFF
            mine.marks |= BASE
        elif flags & (_SYN | _ACK) == (_SYN | _ACK) and mine.base != seq and mine.payload == payload:
            mine.base = seq  # another SYN-ACK, and nothing was sent yet: this one holds
            mine.edge = 0
        packet.seq = unwrap(seq, mine.base, mine.edge)
        if flags & _SYN:
            note_syn(flow, mine, peer, flags, time, option)
            if option.long_shift:
                note(notes, LONG_SCALE, number, time)
            if payload:
                flow.marks |= FAST_OPEN
            has |= HAS_WINDOW
            packet.window = window
        elif mine.scale >= 0:
            has |= HAS_WINDOW
            packet.window = window << mine.scale
        if not flags & _RST:
            mine.edge = max(mine.edge, packet.seq + payload + (flags & _FIN) + ((flags & _SYN) >> 1))
        if flags & _ACK:
            has |= HAS_ACK
            if not peer.marks & BASE:
                peer.base = (ack - 1) & 0xFFFFFFFF
                peer.marks |= BASE
            packet.ack = unwrap(ack, peer.base, peer.edge)
            if not flags & _RST:
                peer.edge = max(peer.edge, packet.ack)
            if (
                direction == 0
                and not flags & (_SYN | _RST)
                and flow.marks & SYN_ACK
                and not flow.marks & HANDSHAKE
                and packet.ack >= 1
            ):
                flow.marks |= HANDSHAKE
                if flow.marks & SYN and not flow.marks & SYN_AGAIN:  # else it is not known which SYN was answered
                    flow.handshake_rtt = time - flow.syn_time
        if option.timestamps:
            has |= HAS_TIMESTAMPS
            packet.tsval = option.tsval
            packet.tsecr = option.tsecr
            if not flags & _SYN:
                flow.marks |= TIMESTAMPS
        if option.edges and peer.marks & BASE:  # else it is not known what they count from
            has |= HAS_SACK
            flow.marks |= SACKS
            packet.edges = option.edges
            near = peer.edge
            for k in range(min(option.edges, MAX_EDGES)):
                pool[state.edges + k] = unwrap(edges[k], peer.base, near)
            state.edges += option.edges
        if option.mptcp:
            flow.marks |= MPTCP
        if option.fast_open:
            flow.marks |= FAST_OPEN
        if flags & _RST and not (mine.marks & FIN and peer.marks & FIN):
            flow.marks |= RST
        if flags & _FIN:
            mine.marks |= FIN
        limit = full_size(mine, peer, payload, head.ip_bytes - payload, size - 20)
        packet.segments = segments_of(payload, max(limit, _SMALLEST_MSS))
        if packet.segments > 1:
            note(notes, SUPER_FRAME, number, time)
        packet.has = has
        state.packets += 1
    return count, DONE
