"""Write a valid pcap of N packets over F TCP flows, as a sender's host would record them; the same seed, the same file.

Each flow has a handshake with MSS, SACK, time stamps and window scale, delayed ACKs, segments that get lost on the way
and are sent again after three duplicate ACKs with SACK blocks, and a close. Checksums are right (payload is zeros).
With --under-way the handshakes are left out, as in a capture that began when the connections were there.

    python benchmarks/generate.py out.pcap --packets 1000000 --flows 100 --snaplen 96
"""

from __future__ import annotations

import argparse
import struct
from pathlib import Path

import numba
import numpy as np

MSS = 1448
CHUNK = 1 << 24
FLOW = np.dtype(
    [
        ("number", "i8"), ("left", "i8"), ("stage", "i8"), ("isn", "i8"), ("peer_isn", "i8"), ("nxt", "i8"),
        ("lost", "i8"), ("high", "i8"), ("duplicates", "i8"), ("unacked", "i8"), ("ip_id", "i8"),
        ("peer_ip_id", "i8"),
    ]
)  # fmt: skip


@numba.njit
def _random(state):
    x = state[0]
    x ^= (x << 13) & 0x7FFFFFFFFFFFFFFF
    x ^= x >> 7
    x ^= (x << 17) & 0x7FFFFFFFFFFFFFFF
    state[0] = x
    return x


@numba.njit
def _put16(out, at, value):
    out[at] = (value >> 8) & 255
    out[at + 1] = value & 255


@numba.njit
def _put32(out, at, value):
    _put16(out, at, (value >> 16) & 0xFFFF)
    _put16(out, at + 2, value & 0xFFFF)


@numba.njit
def _sum(out, at, length):
    total = 0
    for k in range(0, length, 2):
        total += (out[at + k] << 8) | out[at + k + 1]
    return total


@numba.njit
def _fold(total):
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return ~total & 0xFFFF


@numba.njit
def _frame(out, at, time, snaplen, flow, up, flags, seq, ack, payload, options, sack_low, sack_high):
    """Write a record: options 0 time stamps, 1 a SYN's, 2 time stamps and a SACK block. Return its end."""
    size = 20 + (12 if options == 0 else 20 if options == 1 else 24)
    length = 14 + 20 + size + payload
    captured = min(length, snaplen)
    for k, value in enumerate((time // 1_000_000, time % 1_000_000, captured, length)):
        for byte in range(4):
            out[at + 4 * k + byte] = (value >> (8 * byte)) & 255
    start = at + 16
    out[start : start + captured] = 0
    out[start + 5] = 2 if up else 1
    out[start + 11] = 1 if up else 2
    _put16(out, start + 12, 0x0800)
    ip = start + 14
    out[ip] = 0x45
    _put16(out, ip + 2, 20 + size + payload)
    _put16(out, ip + 4, (flow.ip_id if up else flow.peer_ip_id) & 0xFFFF)
    out[ip + 6] = 0x40
    out[ip + 8] = 64 if up else 57
    out[ip + 9] = 6
    here = 0x0A000000 + flow.number // 50_000 + 1
    there = 0x0A010000 + flow.number % 200 + 1
    _put32(out, ip + 12, here if up else there)
    _put32(out, ip + 16, there if up else here)
    _put16(out, ip + 10, _fold(_sum(out, ip, 20)))
    tcp = ip + 20
    port = 10_000 + flow.number % 50_000
    _put16(out, tcp, port if up else 5201)
    _put16(out, tcp + 2, 5201 if up else port)
    _put32(out, tcp + 4, ((flow.isn if up else flow.peer_isn) + seq) & 0xFFFFFFFF)
    if flags & 16:
        _put32(out, tcp + 8, ((flow.peer_isn if up else flow.isn) + ack) & 0xFFFFFFFF)
    out[tcp + 12] = (size // 4) << 4
    out[tcp + 13] = flags
    _put16(out, tcp + 14, 64240 if options == 1 else 501 if up else 2000)
    stamp = tcp + 24 if options != 1 else tcp + 28
    if options == 1:
        _put32(out, tcp + 20, 0x020405B4)
        _put32(out, tcp + 24, 0x0402080A)
        _put32(out, tcp + 36, 0x01030307)
    else:
        _put32(out, tcp + 20, 0x0101080A)
    _put32(out, stamp, (time // 1000 + (7 if up else 900)) & 0xFFFFFFFF)
    _put32(out, stamp + 4, (time // 1000 - 20 + (900 if up else 7)) & 0xFFFFFFFF)
    if options == 2:
        _put32(out, tcp + 32, 0x0101050A)
        _put32(out, tcp + 36, (flow.isn + sack_low) & 0xFFFFFFFF)
        _put32(out, tcp + 40, (flow.isn + sack_high) & 0xFFFFFFFF)
    pseudo = _sum(out, ip + 12, 8) + 6 + size + payload
    _put16(out, tcp + 16, _fold(pseudo + _sum(out, tcp, size)))
    if up:
        flow.ip_id += 1
    else:
        flow.peer_ip_id += 1
    return start + captured


@numba.njit
def _open(flow, number, quota, under_way, random):
    flow.number = number
    flow.left = max(quota // 2 + _random(random) % (quota + 1), 1) if quota > 1 else 1
    flow.stage = 3 if under_way else 0
    flow.isn = _random(random) & 0xFFFFFFFF
    flow.peer_isn = _random(random) & 0xFFFFFFFF
    flow.nxt, flow.lost, flow.high, flow.duplicates, flow.unacked = 1, 0, 1, 0, 0
    flow.ip_id, flow.peer_ip_id = _random(random) & 0xFFFF, 0
    if number == 0:
        flow.isn = 0xFFFF0000  # this one wraps soon


@numba.njit
def generate(out, made, wanted, snaplen, flows, total, quota, under_way, state, random):
    """Fill a buffer with records; return its length and the number of packets made so far."""
    at = 0
    while made < wanted and at + snaplen + 128 < len(out):
        flow = flows[_random(random) % len(flows)]
        if flow.stage < 0:
            continue
        state[1] += 1 + _random(random) % 9
        time = state[1]
        if flow.stage == 0:
            at = _frame(out, at, time, snaplen, flow, True, 2, 0, 0, 0, 1, 0, 0)
            flow.stage = 1
        elif flow.stage == 1:
            at = _frame(out, at, time, snaplen, flow, False, 18, 0, 1, 0, 1, 0, 0)
            flow.stage = 2
        elif flow.stage == 2:
            at = _frame(out, at, time, snaplen, flow, True, 16, 1, 1, 0, 0, 0, 0)
            flow.stage = 3
        elif flow.stage == 4:
            at = _frame(out, at, time, snaplen, flow, False, 17, 1, flow.nxt + 1, 0, 0, 0, 0)
            flow.stage = 5
        elif flow.stage == 5:
            at = _frame(out, at, time, snaplen, flow, True, 16, flow.nxt + 1, 2, 0, 0, 0, 0)
            flow.left = 0
        elif flow.left <= 3 and not flow.lost and not flow.unacked:
            at = _frame(out, at, time, snaplen, flow, True, 17, flow.nxt, 1, 0, 0, 0, 0)
            flow.stage = 4
        elif flow.duplicates == 3:
            at = _frame(out, at, time, snaplen, flow, True, 16, flow.lost, 1, MSS, 0, 0, 0)
            flow.lost, flow.duplicates, flow.unacked = 0, 0, 2
        elif flow.unacked >= 2 or (flow.lost and flow.unacked):
            if flow.lost:
                at = _frame(out, at, time, snaplen, flow, False, 16, 1, flow.lost, 0, 2, flow.lost + MSS, flow.nxt)
                flow.duplicates += 1
            else:
                at = _frame(out, at, time, snaplen, flow, False, 16, 1, flow.nxt, 0, 0, 0, 0)
            flow.unacked = 0
        else:
            if not flow.lost and flow.left > 40 and _random(random) % 400 == 0:
                flow.lost = flow.nxt
            else:
                flow.unacked += 1
            at = _frame(out, at, time, snaplen, flow, True, 16 + 8 * (flow.unacked == 2), flow.nxt, 1, MSS, 0, 0, 0)
            flow.nxt += MSS
        made += 1
        flow.left -= 1
        if flow.left <= 0:
            if state[0] < total:
                _open(flow, state[0], quota, under_way, random)
                state[0] += 1
            elif quota > 1:
                flow.left = 1 << 40  # the last ones go on
                if flow.stage >= 4:
                    flow.stage = 3
                    flow.nxt += 1
            else:
                flow.stage = -1
    return at, made


def write(path: str, packets: int, flows: int, snaplen: int = 96, seed: int = 1, *, under_way: bool = False) -> None:
    """Write the file."""
    random = np.array([seed * 0x9E3779B97F4A7 + 12345], np.int64)
    active = np.zeros(min(flows, 2000), FLOW)
    quota = max(packets // flows, 1)
    for number in range(len(active)):
        _open(active[number], number, quota, under_way, random)
    state = np.array([len(active), 1_700_000_000_000_000], np.int64)
    buffer = np.empty(CHUNK, np.uint8)
    made = 0
    with Path(path).open("wb") as file:
        file.write(struct.pack("<IHHIIII", 0xA1B2C3D4, 2, 4, 0, 0, snaplen, 1))
        while made < packets:
            length, now = generate(buffer, made, packets, snaplen, active, flows, quota, under_way, state, random)
            file.write(memoryview(buffer)[:length])
            if now == made:
                break
            made = now


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out")
    parser.add_argument("--packets", type=int, default=1_000_000)
    parser.add_argument("--flows", type=int, default=100)
    parser.add_argument("--snaplen", type=int, default=96, help="bytes kept of each frame; 65535 keeps all")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--under-way", action="store_true", help="without handshakes")
    options = parser.parse_args()
    write(options.out, options.packets, options.flows, options.snaplen, options.seed, under_way=options.under_way)


if __name__ == "__main__":
    main()
