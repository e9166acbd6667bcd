"""Every public file of the corpus, damaged ones too: an exit code that tells, a message to act on, little memory."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
CORPUS = Path(os.environ.get("TRACETOOL_SHARED", ROOT.parent / "shared")) / "corpus"
MOST_MB = 600
#: Runs commands one after the other in one process; tells each one's code, messages, and the memory so far. (That is
#: asked of /proc: what getrusage tells was the parent's before.)
_RUNNER = """
import contextlib, io, json, re, sys, tempfile
from tracetool.cli import main
for path in json.loads(sys.stdin.read()):
    for command in ("ingest", "check"):
        out, err, code = io.StringIO(), io.StringIO(), None
        with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            sys.argv = ["tracetool", command, path, *(["--out", folder + "/d"] if command == "ingest" else [])]
            try:
                main()
            except SystemExit as stop:
                code = stop.code or 0
        memory = int(re.search("VmHWM:[^0-9]*([0-9]+)", open("/proc/self/status").read())[1]) // 1024
        told = [path, command, code, out.getvalue(), err.getvalue(), memory]
        print(json.dumps(told), file=sys.__stdout__, flush=True)
"""


def run(files: list[str]) -> list[list]:
    done = subprocess.run(
        [sys.executable, "-c", _RUNNER], cwd=ROOT, input=json.dumps(files), capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr[-3000:]
    results = [json.loads(line) for line in done.stdout.splitlines()]
    assert len(results) == 2 * len(files)
    return results


@pytest.mark.slow
def test_memory_of_the_largest():
    """Each in a process of its own: what one file leaves behind is not counted for the next."""
    files = sorted((path for path in CORPUS.rglob("*") if path.is_file()), key=lambda path: -path.stat().st_size)
    if not files:
        pytest.skip("the corpus is not there")
    assert {str(path): run([str(path)])[-1][-1] for path in files[:4]} == {
        str(path): pytest.approx(MOST_MB / 2, abs=MOST_MB / 2) for path in files[:4]
    }


@pytest.mark.slow
@pytest.mark.timeout(1500)
def test_every_file_of_the_corpus():

    files = sorted(str(path) for path in CORPUS.rglob("*") if path.is_file())
    if not files:
        pytest.skip("the corpus is not there")
    results = run(files)
    wrong = []
    for path, command, code, out, err, _ in results:
        told = [line for line in err.splitlines() if line.strip()]
        fine = code in (0, 3, 4) and "Traceback" not in err
        fine = fine and all(line.isprintable() for line in (out + err).splitlines())
        if code == 3:  # one line with the file's name, and nothing else
            fine = fine and len(told) == 1 and Path(path).name in told[0] and not out
        elif code == 4 and command == "ingest":
            fine = fine and any(": error: " in line for line in told)
        elif command == "check":
            fine = fine and "throughput" in out
        if not fine:
            wrong.append((Path(path).name, command, code, err[-300:]))
    assert wrong == []
