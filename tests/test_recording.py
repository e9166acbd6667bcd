"""The commands of docs/recording.md, run as they stand: the three files that they leave can be read, and agree.

A flow of two seconds runs between two network namespaces of this test's own, over a veth pair with a bottleneck; the
kernel's word comes from a tracefs instance of its own. All of them are gone afterwards.
"""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from datetime import timedelta
from pathlib import Path

import pytest

DOCUMENT = Path(__file__).resolve().parents[1] / "docs" / "recording.md"
TOOLS = ("ip", "tc", "ss", "nstat", "tcpdump", "iperf3", "nsenter", "perl", "mount")


def run(*words: object, **options) -> subprocess.CompletedProcess[str]:
    return subprocess.run([str(word) for word in words], check=True, capture_output=True, text=True, **options)


def script() -> str:
    """All commands of the document, in its order."""
    return "".join(re.findall(r"^```bash\n(.*?)^```$", DOCUMENT.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL))


@pytest.fixture(scope="module")
def tracefs(tmp_path_factory):
    """A mount of tracefs of this test's own."""
    if os.geteuid() != 0:
        pytest.skip("recording needs root")
    if missing := [tool for tool in TOOLS if shutil.which(tool) is None]:
        pytest.skip(f"recording needs {', '.join(missing)}")
    folder = tmp_path_factory.mktemp("tracefs")
    if subprocess.run(["mount", "-t", "tracefs", "nodev", folder], capture_output=True, check=False).returncode:
        pytest.skip("no tracefs can be mounted here")
    try:
        if not (folder / "events" / "tcp" / "tcp_probe").is_dir():
            pytest.skip("this kernel has no tracepoint tcp:tcp_probe")
        before = set((folder / "instances").iterdir())
        yield folder
        for instance in set((folder / "instances").iterdir()) - before:
            if instance.name.startswith("tracetool-"):  # left behind by a script that failed
                (instance / "tracing_on").write_text("0")
                instance.rmdir()
    finally:
        run("umount", folder)


@pytest.fixture(scope="module")
def path():
    """Two namespaces and a bottleneck of 20 Mbit/s between them: the names of both, and the receiver's port."""
    if os.geteuid() != 0 or any(shutil.which(tool) is None for tool in TOOLS):
        pytest.skip("needs root, iproute2 and iperf3")
    mark = f"tt{os.getpid()}"
    sender, receiver, port = f"{mark}s", f"{mark}r", 20000 + os.getpid() % 20000
    if subprocess.run(["ip", "netns", "add", sender], capture_output=True, check=False).returncode:
        pytest.skip("no network namespace can be made here")
    server = None
    try:
        run("ip", "netns", "add", receiver)
        run("ip", "link", "add", "veth0", "netns", sender, "type", "veth", "peer", "name", "veth0", "netns", receiver)
        for namespace, address in ((sender, "192.0.2.2/24"), (receiver, "192.0.2.1/24")):
            run("ip", "-n", namespace, "addr", "add", address, "dev", "veth0")
            run("ip", "-n", namespace, "link", "set", "veth0", "up")
        shape = ["rate", "20mbit", "burst", "16kb", "limit", "60kb"]
        run("tc", "-n", sender, "qdisc", "add", "dev", "veth0", "root", "tbf", *shape)
        server = subprocess.Popen(
            ["nsenter", f"--net=/run/netns/{receiver}", "iperf3", "-s", "-p", str(port)], stdout=subprocess.DEVNULL
        )
        listening = f"sport = :{port}"
        for _ in range(50):
            if run("ip", "netns", "exec", receiver, "ss", "-ltnH", listening).stdout:
                break
            time.sleep(0.1)
        yield sender, port
    finally:
        if server is not None:
            server.terminate()
            server.wait()
        for namespace in (sender, receiver):
            subprocess.run(["ip", "netns", "del", namespace], capture_output=True, check=False)


@pytest.fixture(scope="module")
def recording(tracefs, path, tmp_path_factory):
    """The folder that the document's commands leave."""
    namespace, port = path
    out = tmp_path_factory.mktemp("recording")
    settings = {
        "DEV": "veth0",
        "PEER": "192.0.2.1",
        "PORT": str(port),
        "OUT": str(out),
        "TRACEFS": str(tracefs),
        "DURATION": "2",
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
    }
    shell = subprocess.Popen(
        ["nsenter", f"--net=/run/netns/{namespace}", "bash", "-euo", "pipefail", "-c", script()],
        env={**os.environ, **settings},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )
    try:
        said = shell.communicate(timeout=120)[0]
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(shell.pid, signal.SIGKILL)  # the ss loop and tcpdump, where the script failed half-way
    assert shell.returncode == 0, said
    return out


def rows(recording: Path, table: str):
    import tracetool

    return tracetool.open(recording / "dataset").scan(table).collect()


def test_each_file_is_read_as_what_it_is_and_none_is_damaged(recording):
    inputs = rows(recording, "inputs")
    assert sorted(inputs["format"]) == ["pcap", "ss", "tcp_probe"]
    assert not inputs["damaged"].any()
    assert dict(inputs.select("format", "time_resolution_ns").iter_rows())["pcap"] == 1


def captured(recording: Path) -> dict:
    """The data flow as the capture has it (iperf3 has a second, small connection)."""
    import polars as pl

    flows = rows(recording, "flows").join(rows(recording, "inputs").select("input", "format"), on="input")
    return flows.filter(pl.col("format") == "pcap").sort("payload_bytes_a2b").row(-1, named=True)


def samples_of(recording: Path, flow: dict, origin: str):
    """The kernel's samples of that flow, from one source."""
    import polars as pl

    mine = rows(recording, "flows").filter(pl.col("port_a") == flow["port_a"], pl.col("port_b") == flow["port_b"])
    samples = rows(recording, "samples").join(mine.select("input", "flow"), on=["input", "flow"], how="semi")
    return samples.filter(pl.col("origin") == origin).sort("time")


def test_the_data_flow_is_in_all_three_and_they_agree_on_its_size(recording):
    flow = captured(recording)
    flows = rows(recording, "flows")
    for end in ("addr_a", "port_a", "addr_b", "port_b"):
        flows = flows.filter(flows[end] == flow[end])
    assert flows["input"].n_unique() == flows.height == 3
    assert flow["payload_bytes_a2b"] > 1_000_000
    assert flows["payload_bytes_a2b"].min() > 0.8 * flow["payload_bytes_a2b"]


def test_the_clocks_agree(recording):
    """What an event's ACK acknowledged shows in the next event; that ACK stands in the capture shortly before it.

    Most of them do: a machine under load lets a socket's backlog, or its ss loop, wait for longer.
    """
    import polars as pl

    flow = captured(recording)
    arrived = (
        rows(recording, "packets")
        .filter(pl.col("flow") == flow["flow"], pl.col("direction") == "b2a", pl.col("ack").is_not_null())
        .group_by(snd_una=pl.col("ack") - 1)  # the log counts from its first byte, the capture from the SYN
        .agg(arrived=pl.col("time").min())
    )
    probe = samples_of(recording, flow, "tcp_probe").select("time", snd_una=pl.col("snd_una").shift(-1))
    new = probe.filter(pl.col("snd_una") > pl.col("snd_una").shift(1)).join(arrived, on="snd_una")
    assert new.height > 0.2 * arrived.height > 20  # a busy kernel takes several ACKs as one
    delay = new["time"] - new["arrived"]
    assert delay.is_between(timedelta(), timedelta(milliseconds=50)).mean() > 0.5
    polled = samples_of(recording, flow, "ss")["time"]
    assert polled.len() > 5
    assert polled.is_between(flow["start"] - timedelta(seconds=1), flow["end"] + timedelta(seconds=1)).all()


def test_tcp_probe_and_ss_tell_the_same_cwnd(recording):
    """What ss tells lies between what tcp_probe tells around that time (ss runs some time after its time stamp)."""
    import polars as pl

    flow = captured(recording)
    known = samples_of(recording, flow, "tcp_probe").select("time", "cwnd_segments")
    inside = []
    for when, cwnd in samples_of(recording, flow, "ss").select("time", "cwnd_segments").iter_rows():
        span = pl.col("time").is_between(when - timedelta(milliseconds=10), when + timedelta(milliseconds=100))
        near = known.filter(span)["cwnd_segments"]
        if near.len() > 2:
            inside.append(near.min() <= cwnd <= near.max())
    assert len(inside) > 3
    assert sum(inside) > 0.5 * len(inside)


def test_counters_are_there_before_and_after(recording):
    for name in ("nstat-before.txt", "nstat-after.txt"):
        assert "TcpExtTCPHystartTrainDetect" in (recording / name).read_text(encoding="utf-8")


def test_nothing_stays_behind(recording, tracefs):
    assert not [p.name for p in (tracefs / "instances").iterdir() if p.name.startswith("tracetool-")]
