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

pytestmark = pytest.mark.slow


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
    assert inputs.row(by_predicate=inputs["format"].is_in(["pcap"]), named=True)["time_resolution_ns"] == 1


def test_the_data_flow_is_in_all_three(recording):
    import polars as pl

    flows = rows(recording, "flows").with_columns(
        ends=pl.concat_str("addr_a", "port_a", "addr_b", "port_b", separator=" ")
    )
    captured = flows.filter(pl.col("payload_bytes_a2b") > 1_000_000)
    assert captured.height == 1
    assert flows.filter(pl.col("ends") == captured["ends"].item())["input"].n_unique() == 3


def test_the_clocks_agree(recording):
    """Each ACK that the kernel tells of stands in the capture, at most 10 ms earlier in nearly all cases."""
    import polars as pl

    flows = rows(recording, "flows")
    bulk = flows.filter(pl.col("payload_bytes_a2b") > 1_000_000).row(0, named=True)
    packets = rows(recording, "packets").filter(pl.col("flow") == bulk["flow"], pl.col("direction") == "b2a")
    same = flows.filter(pl.col("port_a") == bulk["port_a"])
    samples = rows(recording, "samples").join(same.select("input", "flow"), on=["input", "flow"], how="semi")
    probe = samples.filter(pl.col("origin") == "tcp_probe").sort("time")
    late = probe.join_asof(packets.sort("time").select("time", arrived="time"), on="time", strategy="backward")
    assert probe.height > 100
    assert (late["time"] - late["arrived"] < timedelta(milliseconds=10)).mean() > 0.99
    polled = samples.filter(pl.col("origin") == "ss").sort("time")
    assert polled["time"].is_between(bulk["start"] - timedelta(seconds=1), bulk["end"] + timedelta(seconds=1)).all()
    assert polled.height > 20


def test_tcp_probe_and_ss_tell_the_same_cwnd(recording):
    """Where cwnd did not change for 20 ms around a poll, ss and tcp_probe name the same value."""
    import polars as pl

    samples = rows(recording, "samples").sort("time")
    known = samples.filter(pl.col("origin") == "tcp_probe").select("time", "cwnd_segments")
    agree = total = 0
    for when, cwnd in samples.filter(pl.col("origin") == "ss").select("time", "cwnd_segments").iter_rows():
        near = known.filter((pl.col("time") - pl.lit(when)).abs() < timedelta(milliseconds=20))["cwnd_segments"]
        if near.n_unique() == 1:
            agree, total = agree + (near[0] == cwnd), total + 1
    assert total > 5
    assert agree / total > 0.9


def test_counters_are_there_before_and_after(recording):
    for name in ("nstat-before.txt", "nstat-after.txt"):
        assert "TcpExtTCPHystartTrainDetect" in (recording / name).read_text(encoding="utf-8")


def test_nothing_stays_behind(recording, tracefs):
    assert not [p.name for p in (tracefs / "instances").iterdir() if p.name.startswith("tracetool-")]
