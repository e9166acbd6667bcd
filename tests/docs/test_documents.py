"""The documents tell the truth: examples print what is shown, commands and files that are named exist."""

from __future__ import annotations

import importlib.util
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
DOCUMENTS = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md"), ROOT / "sample_traces" / "README.md"])
NAMES = [str(path.relative_to(ROOT)) for path in DOCUMENTS]
BIN = Path(sys.executable).parent


def refresh():
    spec = importlib.util.spec_from_file_location("refresh", ROOT / "docs" / "refresh.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def command_lines() -> dict[str, str]:
    """README.md's two lines for a fresh machine, by the comment before them."""
    found = re.findall(r"<!-- ([a-z ]+) -->\n```bash\n(.*)\n```", (ROOT / "README.md").read_text(encoding="utf-8"))
    return dict(found)


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_examples_print_what_is_shown(name, capsys):
    assert refresh().main(["--check", str(ROOT / name)]) == 0, capsys.readouterr().out


def test_the_check_fails_where_an_output_differs(tmp_path, monkeypatch):
    module = refresh()
    document = tmp_path / "page.md"
    document.write_text("```console\n$ echo one\ntwo\n```\n", encoding="utf-8")
    monkeypatch.setattr(module, "ROOT", tmp_path)
    assert module.main(["--check", str(document)]) == 1
    assert "two" in document.read_text(encoding="utf-8")
    assert module.main([str(document)]) == 0
    assert document.read_text(encoding="utf-8") == "```console\n$ echo one\none\n```\n"


@pytest.mark.parametrize("name", NAMES)
def test_files_that_are_named_exist(name):
    path = ROOT / name
    text = path.read_text(encoding="utf-8")
    links = [link.split("#")[0] for link in re.findall(r"\]\((?!https?:)([^)]+)\)", text)]
    missing = [link for link in links if link and not (path.parent / link).exists()]
    assert not missing
    paths = re.findall(r"\b((?:sample_traces|docs|tests|schemas|benchmarks|tracetool)/[\w./-]*\w)", text)
    made_up = re.compile(r"NAME|TABLE|^tracetool/[a-z-]+$")  # (as in ~/.cache/tracetool/...)
    assert not [p for p in paths if not made_up.search(p) and not (ROOT / p).exists() and not list(ROOT.glob(f"{p}*"))]


def test_commands_that_are_named_exist_and_every_command_has_help_and_is_documented():
    from typer.main import get_command

    from tracetool.cli import app

    commands = get_command(app).commands
    assert not [name for name, command in commands.items() if not command.help]
    text = "".join(path.read_text(encoding="utf-8") for path in DOCUMENTS)
    named = set(re.findall(r"(?:`|\$ |^|&& |/)tracetool ([a-z][a-z-]+)(?=[ \n`])", text, re.MULTILINE))
    prose = {"reads", "turns", "counts", "marks", "says", "takes", "is"}  # where a line of text begins with the name
    assert set(commands) <= named
    assert named - set(commands) - prose == set()


def test_the_line_for_the_main_job_works_once_installed(tmp_path):
    """The part after the installation, in a folder with the sample traces; the page that it leaves needs no network."""
    job = command_lines()["main job"].split(" && ", 4)[4].replace(".venv/bin/", f"{BIN}/")
    (tmp_path / "sample_traces").symlink_to(ROOT / "sample_traces")
    done = subprocess.run(["bash", "-c", job], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "cwnd" in done.stdout
    page = (tmp_path / "cwnd.html").read_text(encoding="utf-8")
    assert not re.findall(r"<(?:script|link|img)[^>]+(?:src|href)=[\"']https?:", page)


def test_both_lines_start_alike_and_ci_runs_the_second():
    lines = command_lines()
    assert set(lines) == {"main job", "tests"}
    starts = {line.split("python3 -m venv .venv")[0] for line in lines.values()}
    assert starts == {"git clone https://example.org/tracetool.git && cd tracetool && "}
    script = (ROOT / ".ci" / "run").read_text(encoding="utf-8")
    assert "README.md" in script
    assert "pytest" not in script
    assert os.access(ROOT / ".ci" / "run", os.X_OK)
    pattern = re.search(r"\$\(sed .*\)", script)
    assert pattern is not None
    found = subprocess.run(["bash", "-c", f"echo {pattern[0]}"], cwd=ROOT, capture_output=True, text=True, check=True)
    assert found.stdout.strip() == lines["tests"].removeprefix(next(iter(starts)))


def test_images_that_examples_write_are_kept_and_compared_by_their_words(tmp_path, monkeypatch, capsys):
    module = refresh()
    document = tmp_path / "page.md"
    text = "```console\n$ echo '<text x=\"1\">{}</text>' > a.svg\n```\n\n![a](images/a.svg)\n"
    document.write_text(text.format("one"), encoding="utf-8")
    monkeypatch.setattr(module, "ROOT", tmp_path)
    assert module.main(["--check", str(document)]) == 1
    assert not (tmp_path / "images").exists()
    assert module.main([str(document)]) == 0
    kept = tmp_path / "images" / "a.svg"
    kept.write_text(kept.read_text().replace('"1"', '"2"'))
    assert module.main(["--check", str(document)]) == 0
    document.write_text(text.format("two"), encoding="utf-8")
    capsys.readouterr()
    assert module.main(["--check", str(document)]) == 1
    assert "-one\n+two\n" in capsys.readouterr().out


def test_the_gallery_shows_every_chart_in_images_below_150_kB():
    from tracetool.report.charts import CHARTS

    page = (ROOT / "docs" / "gallery.md").read_text(encoding="utf-8")
    shown = set(re.findall(r"\]\(images/([\w.-]+)\)", page))
    assert {path.name for path in (ROOT / "docs" / "images").iterdir()} == shown
    assert max((ROOT / "docs" / "images" / name).stat().st_size for name in shown) < 150_000
    written = dict(re.findall(r"^\$ tracetool plot-([a-z-]+) .*-o ([\w.-]+)$", page, re.MULTILINE))
    assert set(written) | {"slow-start"} == set(CHARTS)
    assert set(re.findall(r"-o ([\w.-]+)$", page, re.MULTILINE)) == shown
