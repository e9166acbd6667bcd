"""Small captures made by hand: TCP flows of full segments, written as pcap bytes."""

from __future__ import annotations

import struct

SECOND = 10**9


def frame(flow, seq, ack, flags, payload, ip_id, *, back=False):
    """An Ethernet frame of flow ``flow``: 10.0.0.<flow>:4000 to 10.0.1.1:520<flow>."""
    ends = [(bytes([10, 0, 0, flow]), 4000), (bytes([10, 0, 1, 1]), 5200 + flow)]
    (src, sport), (dst, dport) = ends[::-1] if back else ends
    tcp = struct.pack("!HHIIBBHHH", sport, dport, seq, ack, 5 << 4, flags, 65535, 0, 0)
    ip = struct.pack("!BBHHHBBH4s4s", 0x45, 0, 40 + payload, ip_id & 0xFFFF, 0, 64, 6, 0, src, dst)
    return bytes(12) + b"\x08\x00" + ip + tcp + bytes(payload)


def pcap(frames):
    """Bytes of a nanosecond pcap of ``(time_ns, frame)``."""
    head = struct.pack("<IHHiIII", 0xA1B23C4D, 2, 4, 0, 0, 262144, 1)
    body = b"".join(
        struct.pack("<IIII", *divmod(time, SECOND), len(data), len(data)) + data for time, data in sorted(frames)
    )
    return head + body


def flow(number, start_s, seconds, per_second, *, size=1000):
    """A flow that sends ``per_second`` segments a second: its frames, each with its time."""
    start = 1_700_000_000 * SECOND + round(start_s * SECOND)
    frames = [
        (start, frame(number, 100, 0, 2, 0, 1)),
        (start + 1000, frame(number, 500, 101, 18, 0, 1, back=True)),
        (start + 2000, frame(number, 101, 501, 16, 0, 2)),
    ]
    for count in range(seconds * per_second):
        time = start + 10**6 + count * SECOND // per_second
        frames.append((time, frame(number, 101 + size * count, 501, 24, size, 3 + count)))
    return frames


def run(folder, *flows, dropped=()):
    """A run's folder: the sender's capture, and the receiver's without the frames at the positions ``dropped``."""
    folder.mkdir(parents=True)
    frames = sorted(entry for one in flows for entry in one)
    (folder / "sender.pcap").write_bytes(pcap(frames))
    later = [(time + 10**7, data) for position, (time, data) in enumerate(frames) if position not in set(dropped)]
    (folder / "receiver.pcap").write_bytes(pcap(later))
