"""Cuts the sample traces from recordings of real Linux TCP flows (kernel 6.18) over an emulated bottleneck.

usage: python3 sample_traces/cut.py [TRACES] [--table]

``SAMPLES`` below says, for each sample, which recording it comes from, which flows, and for how long from the first
SYN. What is left out: iperf3's control connection, the payload (each frame ends with its TCP header; the original
length stays), and what came later. What is kept is kept exactly: handshakes, time stamps in their resolution, the
kernel's lines as it printed them. Files are written without a time, so that the same input gives the same bytes.

The recordings (``../shared/traces``, or the folder given) are not part of this repository; where they are missing
the script says so and does nothing. ``--table`` prints README.md's table from ``kernel.json``, which this writes too.
"""

from __future__ import annotations

import gzip
import io
import json
import re
import struct
import sys
from pathlib import Path
from typing import Any, NamedTuple

HERE = Path(__file__).resolve().parent
TRACES = HERE.parent.parent / "shared" / "traces"
FIRST_PORT = 5201  # flow i of a recording goes to this port + i
SERVER_PORTS = range(FIRST_PORT, FIRST_PORT + 60)
UNSET = 0x7FFFFFFF  # the kernel's "no ssthresh yet"
ETHERNET_BYTES = 14

PROBE = re.compile(
    r" (?P<time>\d+\.\d+): tcp_probe: .*src=(?P<src>\S+) dest=(?P<dest>\S+) .*"
    r"snd_cwnd=(?P<cwnd>\d+) ssthresh=(?P<ssthresh>\d+) "
)
EVENT = re.compile(r" (?P<time>\d+\.\d+): tcp_\w+: .*sport=(?P<sport>\d+) dport=(?P<dport>\d+) ")
ENTRIES = re.compile(r"entries-in-buffer/entries-written: \d+/\d+")
COUNTERS = ("HystartTrainDetect", "HystartTrainCwnd", "HystartDelayDetect", "HystartDelayCwnd", "Timeouts")


class Sample(NamedTuple):
    """One sample: where it comes from, how much of it, and what it shows."""

    recording: str
    seconds: float
    shows: str
    capture: str = "sender"
    flows: tuple[int, ...] = (0,)
    logs: bool = True
    packets: bool = True


SAMPLES = {
    "cubic-hystart-train": Sample(
        "cubic-hystart-train", 3, "CUBIC leaves slow start by HyStart's ACK train, at half of what the path can hold"
    ),
    "cubic-hystart-delay": Sample(
        "cubic-hystart-delay", 2.5, "CUBIC leaves slow start by HyStart's delay test, too late to spare the queue"
    ),
    "cubic-nohystart": Sample(
        "cubic-nohystart", 2, "CUBIC with HyStart turned off: slow start ends in a burst of losses"
    ),
    "cubic-loss-exit": Sample(
        "cubic-no-timestamps", 3, "CUBIC with HyStart on, but loss comes first; no TCP timestamps"
    ),
    "reno-sawtooth": Sample("reno-shallow", 5, "Reno's saw-tooth over a queue of 0.3 BDP"),
    "reno-ecn": Sample("reno-ecn", 3, "Reno on a path that marks: reductions without any loss"),
    "reno-rto": Sample(
        "reno-heavy-loss-rto", 8, "Reno at 6 % random loss: a retransmission timeout, back to slow start"
    ),
    "bbr-startup": Sample("bbr-base", 4, "BBR: startup, drain, and the gain cycle of probe_bw"),
    "cubic-gso": Sample("cubic-gso", 2.5, "a capture with segmentation offload: frames larger than the MTU"),
    "cubic-hystart-train-receiver": Sample(
        "cubic-hystart-train",
        2,
        "the flow of cubic-hystart-train as the receiver's host saw it",
        "receiver",
        logs=False,
    ),
    "cubic-reorder-receiver": Sample(
        "cubic-reorder",
        1.5,
        "a path that lets packets overtake one another, as the receiver's host saw it",
        "receiver",
        logs=False,
    ),
    "two-reno": Sample(
        "two-reno", 10, "two Reno flows, the second 3 s later: do they come to share?", flows=(0, 1), logs=False
    ),
    "reno-nanoseconds": Sample(
        "four-mixed-nano", 5, "time stamps in nanoseconds; Reno squeezed by three other flows", flows=(1,)
    ),
    "cubic-no-exit": Sample(
        "cubic-rwnd-limited",
        1.2,
        "the receiver's window holds CUBIC back before slow start ends; the kernel's logs only",
        packets=False,
    ),
}


class Frame(NamedTuple):
    """One record of a capture."""

    time_ns: int
    header: bytes
    data: bytes
    original_bytes: int
    source: str
    target: str


def read(path: Path) -> bytes:
    """Bytes of a file, plain or gzip."""
    return gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()


def frames(capture: bytes) -> list[Frame]:
    """TCP frames of a little-endian classic capture of Ethernet and IPv4, each cut after its TCP header."""
    tick_ns = 1 if capture[:4] == bytes.fromhex("4d3cb2a1") else 1000
    found, at = [], 24
    while at + 16 <= len(capture):
        seconds, fraction, captured, original = struct.unpack_from("<IIII", capture, at)
        data = capture[at + 16 : at + 16 + captured]
        ip = ETHERNET_BYTES
        tcp = ip + (data[ip] & 15) * 4
        if data[12:14] == b"\x08\x00" and data[ip + 9] == 6:  # IPv4, TCP
            data = data[: tcp + (data[tcp + 12] >> 4) * 4]
            ends = [".".join(map(str, data[ip + a : ip + a + 4])) for a in (12, 16)]
            ports = struct.unpack_from(">HH", data, tcp)
            source, target = (f"{address}:{port}" for address, port in zip(ends, ports, strict=True))
            header = struct.pack("<IIII", seconds, fraction, len(data), original)
            found.append(Frame(seconds * 10**9 + fraction * tick_ns, header, data, original, source, target))
        at += 16 + captured
    return found


def data_flow(capture: list[Frame], port: int) -> frozenset[str]:
    """Both ends of the connection that sent the most to a port (the other one is iperf3's control connection)."""
    sent: dict[frozenset[str], int] = {}
    for frame in capture:
        if frame.target.endswith(f":{port}"):
            ends = frozenset((frame.source, frame.target))
            sent[ends] = sent.get(ends, 0) + frame.original_bytes
    return max(sent, key=lambda ends: sent[ends])


def cut_probe(text: str, flows: set[frozenset[str]], start: float, end: float) -> str:
    """Lines of a tcp_probe log that belong to the flows' senders and the span; the count in its heading is kept true.

    Both ends ran on one host, so the log has events of the receiving sockets, too: their own port is the server's.
    """
    ports = {frozenset(e.rsplit(":", 1)[1] for e in ends) for ends in flows}
    kept = []
    for line in text.splitlines(keepends=True):
        probe, event = PROBE.search(line), EVENT.search(line)
        match = probe or event
        mine = (probe and frozenset((probe["src"], probe["dest"])) in flows) or (
            event and int(event["dport"]) in SERVER_PORTS and frozenset((event["sport"], event["dport"])) in ports
        )
        if match is None or (mine and start <= float(match["time"]) < end):
            kept.append(line)
    count = sum(not line.startswith("#") for line in kept)
    return ENTRIES.sub(f"entries-in-buffer/entries-written: {count}/{count}", "".join(kept))


def cut_ss(text: str, flows: set[frozenset[str]], start: float, end: float) -> str:
    """Polls of an ss log in the span, with the sockets of the flows only."""
    out, poll, keep = [], 0.0, False
    for line in text.splitlines(keepends=True):
        if re.fullmatch(r"\d+\.\d+\n", line):
            poll, keep = float(line), True
        elif not line[0].isspace():
            keep = line.startswith("State") or frozenset(line.split()[3:5]) in flows
        if keep and start <= poll < end:
            out.append(line)
    return "".join(out)


def kernel_word(probe: str, flow: frozenset[str], counters: dict[str, int] | None, start: float) -> dict[str, Any]:
    """What the kernel said: when ssthresh was first set, cwnd then (or at last), HyStart's counters, retransmissions.

    The counters are the host's, so they say something about a flow only where it had the host to itself.
    """
    rows = [m for line in probe.splitlines() if (m := PROBE.search(line)) and {m["src"], m["dest"]} == flow]
    left = next((m for m in rows if int(m["ssthresh"]) != UNSET), None)
    return {
        "exit_seconds": round(float(left["time"]) - start, 3) if left else None,
        "cwnd_segments": int((left or rows[-1])["cwnd"]),
        "ssthresh_segments": int(left["ssthresh"]) if left else None,
        "retransmissions": probe.count(": tcp_retransmit_skb: "),
        "counters": {name: counters[f"TcpExtTCP{name}"] if counters else None for name in COUNTERS},
    }


def write(name: str, data: bytes) -> int:
    """Write one gzip file that depends on nothing but its content; returns its size."""
    packed = io.BytesIO()
    with gzip.GzipFile(filename="", mode="wb", fileobj=packed, compresslevel=9, mtime=0) as stream:
        stream.write(data)
    (HERE / name).write_bytes(packed.getvalue())
    return len(packed.getvalue())


def cut(name: str, sample: Sample, traces: Path) -> dict[str, bytes]:
    """Files of one sample, uncompressed, by name, and what the kernel said of its first flow."""
    folder = traces / sample.recording
    capture = read(folder / f"{sample.capture}.pcap.gz")
    everything = frames(capture)
    flows = {data_flow(everything, FIRST_PORT + i) for i in sample.flows}
    mine = [f for f in everything if frozenset((f.source, f.target)) in flows]
    start_ns = mine[0].time_ns
    end_ns = start_ns + int(sample.seconds * 10**9)
    kept = [f for f in mine if f.time_ns < end_ns]
    files = {f"{name}.pcap": capture[:24] + b"".join(f.header + f.data for f in kept)} if sample.packets else {}
    start, end = start_ns / 1e9 - 1e-6, end_ns / 1e9
    probe = cut_probe(read(folder / "tcp_probe.txt.gz").decode(), flows, start, end)
    if sample.logs:
        files[f"{name}.tcp_probe.txt"] = probe.encode()
        files[f"{name}.ss.txt"] = cut_ss(read(folder / "ss.txt.gz").decode(), flows, start, end).encode()
    nstat = dict(re.findall(r"^(\S+)\s+(\d+)", (folder / "nstat.txt").read_text(encoding="utf-8"), re.MULTILINE))
    first = data_flow(everything, FIRST_PORT + sample.flows[0])
    path = json.loads((folder / "scenario.json").read_text(encoding="utf-8"))
    counters = {k: int(v) for k, v in nstat.items()} if len(path["flows"]) == 1 else None
    word = kernel_word(probe, first, counters, start_ns / 1e9)
    word |= {key: path[key] for key in ("rate_mbit", "rtt_ms", "queue_bytes_used")}
    files["kernel.json"] = json.dumps(word).encode()
    return files


def exit_text(word: dict[str, Any]) -> str:
    """The kernel's word on the first slow start, in a few words."""
    if word["exit_seconds"] is None:  # the host's counters are of its whole run, and say nothing about this part of it
        return f"ssthresh not set, cwnd {word['cwnd_segments']} at the end; {word['retransmissions']} retransmissions"
    counters = word["counters"]
    test = next((t for t in ("Train", "Delay") if counters[f"Hystart{t}Detect"]), None)
    said = f"; `TCPHystart{test}Cwnd` {counters[f'Hystart{test}Cwnd']}" if test else ""
    timeouts = f"; `TCPTimeouts` {counters['Timeouts']}" if counters["Timeouts"] else ""
    return (
        f"ssthresh first set after {word['exit_seconds']:.3f} s, at cwnd {word['cwnd_segments']}{said}; "
        f"{word['retransmissions']} retransmissions{timeouts}"
    )


def table() -> str:
    """README.md's table, in Markdown."""
    words = json.loads((HERE / "kernel.json").read_text(encoding="utf-8"))
    lines = ["| sample | what it shows | path | the kernel's word |", "| --- | --- | --- | --- |"]
    for name, sample in SAMPLES.items():
        word = words[name]
        path = f"{word['rate_mbit']} Mbit/s, {word['rtt_ms']} ms, queue {word['queue_bytes_used'] // 1000} kB"
        lines.append(f"| `{name}` | {sample.shows} ({sample.seconds:g} s) | {path} | {exit_text(word)} |")
    return "\n".join(lines) + "\n"


def main(words: list[str]) -> int:
    """Cut all samples, or print the table."""
    if "--table" in words:
        print(table(), end="")
        return 0
    traces = Path(words[0]) if words else TRACES
    if not traces.is_dir():
        print(f"{traces}: no such folder; the recordings are not part of the repository", file=sys.stderr)
        return 0
    kernel = {}
    for name, sample in SAMPLES.items():
        files = cut(name, sample, traces)
        kernel[name] = json.loads(files.pop("kernel.json"))
        print(name, {file: write(f"{file}.gz", data) for file, data in files.items()})
    (HERE / "kernel.json").write_text(json.dumps(kernel, indent=1) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
