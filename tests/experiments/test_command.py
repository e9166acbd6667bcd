"""The commands: exit codes, forms, and options that make no sense."""

from __future__ import annotations

import json

import pytest
import typer
from typer.testing import CliRunner

from tests.experiments.captures import flow, run
from tracetool.cli import fairness, metrics
from tracetool.errors import TracetoolError

APP = typer.Typer()
APP.command("fairness")(fairness.command)
APP.command("metrics")(metrics.command)


@pytest.fixture
def call(monkeypatch, tmp_path):
    monkeypatch.setattr(fairness, "_cache_folder", lambda: tmp_path / "cache")

    def calling(*words, code=0):
        done = CliRunner().invoke(APP, [str(word) for word in words])
        if isinstance(done.exception, TracetoolError):
            assert done.exception.exit_code == code
            return str(done.exception)
        assert done.exit_code == code, done.output
        return done.stdout

    return calling


@pytest.fixture
def experiment(tmp_path):
    for delay in ("16ms", "42ms"):
        run(tmp_path / "runs" / delay / "reno" / "1", flow(1, 0, 10, 30), flow(2, 0, 10, 10))
    return tmp_path / "runs"


def test_experiment_in_all_forms(call, experiment, tmp_path):
    text = call("fairness", experiment, "--rate", "1mbit", "-j", 1)
    assert "1.1 Fairness index (Jain's)" in text
    assert call("fairness", experiment, "--rate", "1mbit", "-j", 1) == text
    assert "\t" in call("fairness", experiment, "--format", "seed", "-j", 1)
    assert json.loads(call("fairness", experiment, "--json", "-j", 1))["cells"]
    assert call("fairness", experiment, "--csv", "-j", 1).startswith("table,delay,protocol,")
    call("fairness", experiment, "--format", "html", "--out", tmp_path / "site", "-j", 1)
    assert (tmp_path / "site" / "run-1.html").is_file()


def test_the_ending_of_a_file_says_its_form_unless_an_option_does(call, experiment, tmp_path):
    for name, words, start in (
        ("a.csv", (), "table,delay,protocol,"),
        ("a.json", (), "{"),
        ("a.html", (), "<!DOCTYPE html>"),
        ("b.csv", ("--format", "json"), "{"),
        ("b.html", ("--format", "html"), "<!DOCTYPE html>"),
    ):
        call("fairness", experiment, "--out", tmp_path / name, *words, "-j", 1)
        assert (tmp_path / name).read_text().startswith(start), name


def test_failed_runs_tell_by_the_exit_code(call, experiment):
    run(experiment / "82ms" / "reno" / "1", flow(1, 0, 1, 2))
    assert "82ms" in call("fairness", experiment, "-j", 1, code=4)


def test_captures(call, experiment):
    sender = experiment / "16ms" / "reno" / "1" / "sender.pcap"
    assert "Jain's fairness index" in call("fairness", sender, "--group", "port", "--label", "5201=old")
    assert json.loads(call("fairness", sender, "--json", "--scales", "0.5,2"))["options"]["scales_ns"] == [
        5 * 10**8,
        2 * 10**9,
    ]
    assert call("fairness", sender, "--csv").startswith("entity,label,group,")


@pytest.mark.parametrize(
    "words",
    [
        ("--interval", "best"),
        ("--layer", "cable"),
        ("--scales", "0"),
        ("--scales", "x"),
        ("--label", "old"),
        ("--absent", "maybe"),
        ("--format", "pdf"),
        ("--json", "--csv"),
        ("--rate", "fast"),
        ("--group", "colour"),
    ],
)
def test_options_that_make_no_sense(call, experiment, words):
    where = experiment / "16ms" / "reno" / "1" / "sender.pcap" if words[0] == "--group" else experiment
    assert (
        "expected" in call("fairness", where, *words, code=2) or words == ("--json", "--csv") or words[0] == "--absent"
    )


def test_metrics_are_listed_and_explained(call):
    assert "jain_by_scale" in call("metrics")
    assert "RFC 4737" in call("metrics", "reordering")
    assert json.loads(call("metrics", "--json"))[0]["function"] == "tracetool.metrics.throughput:throughput"
    assert "expected one of" in call("metrics", "speed", code=2)


def test_every_registered_metric_loads():
    from tracetool.metrics import METRICS

    for metric in METRICS.values():
        assert callable(metric.load())
        assert metric.load().__doc__
