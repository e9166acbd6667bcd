"""The command line: what it prints where, and how it exits."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tracetool.cli import app
from tracetool.parsers import FORMATS
from tracetool.report.charts import CHARTS

SAMPLES = Path(__file__).parent.parent / "sample_traces"
SHARED = Path(os.environ.get("TRACETOOL_SHARED", Path(__file__).resolve().parents[2] / "shared"))
CAPTURE = str(SAMPLES / "cubic-hystart-train.pcap.gz")


def test_ingest_reconstruct_and_look(run, tmp_path) -> None:
    dataset = tmp_path / "d"
    code, out, err = run("ingest", CAPTURE, "--out", dataset)
    assert (code, out) == (0, "")
    assert "pcap" in err
    assert run("reconstruct", dataset)[0] == 0
    code, out, err = run("flows", dataset)
    assert code == 0
    assert out.splitlines()[0].startswith("flow")
    assert err == ""
    commands = json.loads((dataset / "dataset.json").read_text())["commands"]
    assert commands[0].startswith("tracetool ingest")


def test_ingesting_again_skips(run, tmp_path) -> None:
    run("ingest", CAPTURE, "--out", tmp_path / "d")
    code, _, err = run("ingest", CAPTURE, "--out", tmp_path / "d")
    assert code == 0
    assert "already there" in err


def test_a_capture_needs_no_dataset(run) -> None:
    code, out, _ = run("slow-starts", CAPTURE, "--json")
    assert code == 0
    assert json.loads(out)[0]["exit_cause"] == "hystart_train"


def test_csv_and_json_tell_the_same(run) -> None:
    rows = json.loads(run("flows", CAPTURE, "--json")[1])
    lines = run("flows", CAPTURE, "--csv")[1].splitlines()
    assert len(lines) == len(rows) + 1
    assert lines[0].split(",") == list(rows[0])


def test_plot_in_the_terminal_is_ascii_and_narrow(run) -> None:
    code, out, _ = run("plot-cwnd", CAPTURE, "--ascii")
    assert code == 0
    assert out.isascii()
    assert max(map(len, out.splitlines())) <= 79
    assert "cwnd" in out
    assert "ssthresh" in out


@pytest.mark.parametrize("suffix", ["html", "svg", "png", "pdf", "json", "csv", "txt"])
def test_plot_files(run, tmp_path, suffix) -> None:
    out = tmp_path / f"cwnd.{suffix}"
    assert run("plot-cwnd", CAPTURE, "-o", out)[0] == 0
    assert out.stat().st_size > 1000


def test_export(run, tmp_path) -> None:
    code, out, _ = run("export", "flows", CAPTURE, "--columns", "flow,addr_a,start")
    assert code == 0
    assert out.splitlines()[0] == "flow,addr_a,start"
    assert out.splitlines()[1].endswith("Z")
    for suffix in ("csv", "json", "parquet"):
        assert run("export", "flows", CAPTURE, "-o", tmp_path / f"x.{suffix}")[0] == 0
        assert (tmp_path / f"x.{suffix}").stat().st_size > 0


def test_compare(run, tmp_path) -> None:
    log = CAPTURE.replace(".pcap.gz", ".tcp_probe.txt.gz")
    code, out, _ = run("compare", CAPTURE, log, "-o", tmp_path / "x.svg")
    assert code == 0
    assert "its clock is" in out
    assert (tmp_path / "x.svg").stat().st_size > 1000
    rows = {row["quantity"]: row for row in json.loads(run("compare", CAPTURE, log, "--json")[1])}
    assert rows["cwnd_segments"]["median"] == 0
    assert abs(rows["cwnd_segments"]["clock_offset_ns"]) < 1_000_000
    assert run("compare", CAPTURE)[0] == 5


def test_compare_asks_no_ssthresh_of_a_log_that_never_tells_one(run) -> None:
    folder = SHARED / "traces" / "reno-base"
    if not folder.is_dir():
        pytest.skip("the shared traces are not there")
    code, out, _ = run("compare", folder / "sender.pcap.gz", folder / "iperf3-0.json", folder / "ss.txt.gz", "--json")
    assert code == 0
    asked = {(row["origin"], row["quantity"]) for row in json.loads(out)}
    assert ("iperf3", "cwnd_segments") in asked
    assert ("iperf3", "ssthresh_segments") not in asked
    assert ("ss", "ssthresh_segments") in asked


def test_schema(run) -> None:
    code, out, _ = run("schema")
    assert code == 0
    assert "slow_starts" in out
    assert "rtt_ns" in run("schema", "rtts")[1]
    assert json.loads(run("schema", "rtts", "--json")[1])["table"] == "rtts"


@pytest.mark.parametrize(
    ("args", "code", "words"),
    [
        (["flows", "nosuch.pcap"], 3, "nosuch.pcap: No such file or directory"),
        (["flows", __file__], 3, "unknown format"),
        (["flows", CAPTURE, "--flow", "999"], 5, "no flow '999'"),
        (["plot-cwnd", CAPTURE, "--flow", "1.2.3.4:5-6.7.8.9:10"], 5, "no flow"),
        (["schema", "nosuch"], 2, "no table 'nosuch'"),
        (["export", "flows", CAPTURE, "--columns", "nosuch"], 2, "no column nosuch"),
        (["export", "flows", CAPTURE, "-o", "x.xlsx"], 2, ".csv, .json or .parquet"),
        (["plot-cwnd", CAPTURE, "-o", "x.bmp"], 2, "x.bmp"),
        (["plot-cwnd", CAPTURE, "-o", "nosuch/x.svg"], 1, "nosuch/x.svg: cannot be written: No such file or directory"),
        (["export", "flows", CAPTURE, "-o", "nosuch/x.csv"], 1, "nosuch/x.csv: cannot be written: No such file"),
        (["report", CAPTURE, "-o", "nosuch/x.html"], 1, "nosuch/x.html: cannot be written: No such file"),
        (["report", CAPTURE, "-o", "x.pdf"], 2, "x.pdf: a page is HTML in a file: give a name that ends in .html"),
        (["report", CAPTURE, "-o", "-"], 2, "-: a page is HTML in a file"),
        (["report", str(SAMPLES / "experiment.toml"), "-o", "x.csv"], 2, "x.csv: a page is HTML"),
        (["plot-cwnd", CAPTURE, "--to", "2.5"], 2, "--until 2.5"),
        (["plot-cwnd", CAPTURE, "--ascii", "--unicode"], 2, "exclude each other"),
        (["flows", CAPTURE, "--json", "--csv"], 2, "exclude each other"),
        (["reconstruct", "nosuch"], 3, "no dataset there"),
        (["reconstruct", CAPTURE], 3, "a file, no dataset"),
        (["ingest", CAPTURE, "--out", str(SAMPLES)], 3, "is no dataset, and not empty"),
    ],
)
def test_errors_are_one_line(run, args, code, words) -> None:
    got, out, err = run(*args)
    assert got == code
    assert out == ""
    assert words in err
    assert len(err.strip().splitlines()) == 1
    assert err.startswith("tracetool: ")


def test_usage_errors(run) -> None:
    assert run("flows")[0] == 2
    assert run("nosuch")[0] == 2
    assert run("flows", "--nosuch", CAPTURE)[0] == 2


def test_a_failed_input_does_not_stop_the_others(run, tmp_path) -> None:
    code, _, err = run("ingest", CAPTURE, __file__, "--out", tmp_path / "d")
    assert code == 4
    assert "unknown format" in err
    assert json.loads((tmp_path / "d" / "dataset.json").read_text())["inputs"].keys() == {"cubic-hystart-train"}


def test_where_nothing_can_be_read_no_dataset_is_left(run, tmp_path) -> None:
    code, out, err = run("ingest", "nosuch.pcap", __file__, "--out", tmp_path / "d")
    assert (code, out) == (3, "")
    assert [line.split(": ")[:2] for line in err.splitlines()] == [
        ["tracetool", "nosuch.pcap"],
        ["tracetool", __file__],
    ]
    assert not (tmp_path / "d").exists()
    code, _, err = run("check", "nosuch.pcap", __file__)
    assert (code, err.count("\n")) == (3, 2)


def test_where_nothing_can_be_read_a_dataset_that_was_there_stays(run, tmp_path) -> None:
    run("ingest", CAPTURE, "--out", tmp_path / "d", "-q")
    before = (tmp_path / "d" / "dataset.json").read_bytes()
    assert run("ingest", "nosuch.pcap", "--out", tmp_path / "d")[0] == 3
    assert (tmp_path / "d" / "dataset.json").read_bytes() == before


def test_a_pipe_is_opened_once(tmp_path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with subprocess.Popen(["sh", "-c", f"cat {CAPTURE} > {tmp_path / 'pipe'}"]):
        done = tracetool("ingest", str(tmp_path / "pipe"), "--out", str(tmp_path / "d"))
    assert done.returncode == 0, done.stderr


def test_version_and_help(run) -> None:
    assert run("--version")[1].startswith("tracetool 0.")
    code, out, _ = run("--help")
    assert code == 0
    for command in ("ingest", "reconstruct", "flows", "plot-cwnd", "slow-starts", "export", "schema"):
        assert command in out


def test_help_describes_each_command_in_a_whole_sentence(run, monkeypatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    words = " ".join(run("--help")[1].split())
    for name, chart in CHARTS.items():
        assert f" plot-{name} Draw {chart.summary}. " in words
    for name in (command.name for command in app.registered_commands):
        assert re.search(rf" {name} [A-Z][^.]*\. ", words), name


def test_the_help_of_ingest_lists_the_formats(run) -> None:
    words = " ".join(run("ingest", "--help")[1].split())
    assert f"Known formats: {', '.join(FORMATS[:-1])}, and tables with a time and a cwnd column" in words


def tracetool(*args: str, **options) -> subprocess.CompletedProcess:
    return subprocess.run([sys.executable, "-m", "tracetool", *args], capture_output=True, check=False, **options)


def test_standard_input(tmp_path) -> None:
    done = tracetool("ingest", "-", "--out", str(tmp_path / "d"), input=Path(CAPTURE).read_bytes())
    assert done.returncode == 0, done.stderr
    assert b"input 'stdin'" in done.stderr


def test_a_closed_pipe_is_silent() -> None:
    read, write = os.pipe()
    os.close(read)
    done = subprocess.run(
        [sys.executable, "-m", "tracetool", "export", "packets", CAPTURE],
        stdout=write,
        stderr=subprocess.PIPE,
        check=False,
    )
    os.close(write)
    assert done.stderr == b""
    assert done.returncode in {0, 1}


def test_ascii_where_the_terminal_is_dumb() -> None:
    done = tracetool("plot-cwnd", CAPTURE, env=os.environ | {"PYTHONIOENCODING": "ascii"})
    assert done.returncode == 0, done.stderr
    assert done.stdout.isascii()
    wide = tracetool(
        "plot-cwnd", CAPTURE, env=os.environ | {"PYTHONIOENCODING": "utf-8", "COLUMNS": "120", "TERM": "xterm"}
    )
    assert not wide.stdout.isascii()
    assert b"\x1b" not in wide.stdout
