"""The table of flows has one row per connection, with all inputs that saw it, in every form."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import polars as pl
import pytest

import tracetool
from tracetool.cli import main
from tracetool.cli.flows import _control
from tracetool.report.flow_table import flow_table
from tracetool.report.page_sections import flows_sheet

SAMPLES = Path(__file__).resolve().parents[2] / "sample_traces"
TRAIN = ("cubic-hystart-train-receiver.pcap", "cubic-hystart-train.pcap", "cubic-hystart-train.ss.txt",
         "cubic-hystart-train.tcp_probe.txt")  # fmt: skip
OTHER = "reno-rto.ss.txt"


@pytest.fixture(scope="module")
def dataset(tmp_path_factory):
    files = [SAMPLES / f"{name}.gz" for name in (*TRAIN, OTHER)]
    made = tracetool.ingest(files, tmp_path_factory.mktemp("views") / "dataset")
    return tracetool.reconstruct(made)


@pytest.fixture
def run(dataset, monkeypatch, capsys):
    def running(*words):
        monkeypatch.setattr(sys, "argv", ["tracetool", "flows", str(dataset.path), *words])
        with pytest.raises(SystemExit) as left:
            main()
        assert left.value.code in (0, None)
        return capsys.readouterr().out

    return running


def test_views_of_one_connection_are_one_row_and_it_is_the_sender_s_capture(dataset):
    table = flow_table(dataset)
    assert table["input"].to_list() == ["cubic-hystart-train", "reno-rto.ss"]
    assert table["vantage"].to_list() == ["sender", None]
    assert table["origins"].to_list() == [["capture", "capture", "ss", "tcp_probe"], ["ss"]]
    assert table["inputs"][0].to_list() == [
        "cubic-hystart-train",
        "cubic-hystart-train-receiver",
        "cubic-hystart-train.ss",
        "cubic-hystart-train.tcp_probe",
    ]
    assert table["cc"].to_list() == ["cubic", "reno"]  # inferred where there are packets, else what ss says
    alone = dataset.read("flow_stats", ["cubic-hystart-train"]).filter(pl.col("direction") == "a2b")
    assert table["goodput_bps"][0] == alone["goodput_bps"][0]


def test_the_library_gives_the_same(dataset):
    assert tracetool.flows(dataset).equals(flow_table(dataset))


def test_text_csv_and_json_name_all_that_saw_it(run):
    lines = run().splitlines()
    assert lines[0].endswith("seen by")
    assert [line.rsplit("  ", 1)[1].strip() for line in lines[1:]] == ["2 captures, ss, tcp_probe", "ss"]
    assert pl.read_csv(run("--csv").encode())["origins"].to_list() == ["capture capture ss tcp_probe", "ss"]
    assert [row["inputs"].split()[0] for row in json.loads(run("--json"))] == ["cubic-hystart-train", "reno-rto.ss"]


def test_a_choice_by_any_view_gives_the_one_row(run):
    row = json.loads(run("--json", "--flow", ":35877"))
    assert [each["input"] for each in row] == ["cubic-hystart-train"]


def test_the_report_lists_it_once(dataset):
    sheet = flows_sheet(dataset)
    place = sheet.headings.index("seen by")
    assert sorted(row[place].text for row in sheet.rows) == ["2 captures, ss, tcp_probe", "ss"]


def test_a_name_that_is_a_guess_has_a_question_mark():
    assert [_control("cubic", 0.0), _control("cubic", 0.4), _control("unknown", 0.0)] == ["cubic?", "cubic", "unknown"]
    assert [_control(None, None), _control("bbr", None)] == ["-", "bbr"]
