"""Runs every example of the documents and writes what it printed beside it; makes the reference pages.

usage: python docs/refresh.py [--check] [DOCUMENT...]

Two kinds of blocks are examples. In a ``console`` block each line that starts with ``$`` is run by bash, and what
follows is its standard output. A ``python`` block is run as a program; the ``text`` block right behind it is its
output. All examples of a document run in one new folder, in order, with ``sample_traces`` in it, 80 columns wide and
without colour. Images that a document shows from ``images/`` and its examples write are kept there; two images differ
if their words do, for their lines depend on fonts. ``--check`` writes nothing, shows what differs, and exits with 1 if
anything does.
"""

from __future__ import annotations

import difflib
import inspect
import json
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
TIMEOUT_S = 900  # the first command after a change of a kernel compiles them all
EXAMPLES = re.compile(
    r"^```console\n(?P<session>.*?)^```$|^```python\n(?P<program>.*?)^```\n\n```text\n(?P<printed>.*?)^```$",
    re.MULTILINE | re.DOTALL,
)


def documents() -> list[Path]:
    """All documents that may hold examples."""
    return sorted({*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md"), ROOT / "sample_traces" / "README.md"})


def run(words: list[str], folder: Path) -> str:
    """Standard output of a command that must succeed, without blanks at the ends of lines."""
    env = {name: value for name, value in os.environ.items() if name not in ("FORCE_COLOR", "COLORTERM")}
    env |= {
        "COLUMNS": "80",
        "LINES": "24",
        "NO_COLOR": "1",
        "TERM": "xterm",
        "LC_ALL": "C.UTF-8",
        "PYTHONUTF8": "1",
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
    }
    done = subprocess.run(
        words,
        cwd=folder,
        env=env,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
        timeout=TIMEOUT_S,
    )
    if done.returncode:
        raise SystemExit(f"{words[-1]}: exit {done.returncode}\n{done.stderr}")
    return "".join(f"{line.rstrip()}\n" for line in done.stdout.splitlines())


def session(text: str, folder: Path) -> str:
    """A console block with each command's present output."""
    out = ""
    for command in re.findall(r"^\$ (.*(?:\\\n.*)*)\n", text, re.MULTILINE):
        out += f"$ {command}\n" + run(["bash", "-o", "pipefail", "-c", command], folder)
    return out


def refreshed(text: str, images: dict[str, bytes] | None = None) -> str:
    """A document with the present output of all its examples; `images` takes what they wrote of those it shows."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "sample_traces").symlink_to(ROOT / "sample_traces")

        def replace(match: re.Match[str]) -> str:
            if match["session"] is not None:
                return f"```console\n{session(match['session'], folder)}```"
            program = match["program"]
            return f"```python\n{program}```\n\n```text\n{run([sys.executable, '-c', program], folder)}```"

        done = EXAMPLES.sub(replace, text)
        for image in re.findall(r"\]\(images/([\w-]+\.(?:svg|png))\)", text) if images is not None else []:
            images[image] = (folder / image).read_bytes()
        return done


def words_of(image: bytes) -> list[str]:
    """All text in an SVG picture, line by line; of any other only that it is there."""
    words = re.findall(rb"<text[^>]*>(?:<tspan[^>]*>)?([^<]*)", image)
    return [f"{line.decode()}\n" for line in words] or ["an image\n"]


def tables() -> str:
    """The document about the tables, from their schemas."""
    out = [
        "# Tables",
        "",
        "Made by `python docs/refresh.py` from `schemas/*.json`, which the tool itself reads. `tracetool schema TABLE`",
        "tells the same. Times are nanoseconds since 1970 in UTC (`timestamp`), durations are `int64` nanoseconds.",
        "Null means unknown; a column without a tick under *null* always has a value.",
    ]
    for path in sorted((ROOT / "schemas").glob("*.json")):
        table = json.loads(path.read_text(encoding="utf-8"))
        out += ["", f"## {table['table']}", "", table["description"], "", f"Key: {', '.join(table['key'])}.", ""]
        out += ["| column | type | unit | null | meaning |", "| --- | --- | --- | --- | --- |"]
        for column in table["columns"]:
            values = f" One of: {', '.join(column['values'])}." if "values" in column else ""
            meaning = f"{column['description']}{values}".replace("|", "\\|")
            null = "✓" if column["nullable"] else ""
            out.append(f"| `{column['name']}` | {column['type']} | {column.get('unit', '')} | {null} | {meaning} |")
    return "\n".join(out) + "\n"


def commands() -> str:
    """The document about the commands, from what they say of themselves."""
    from typer.main import get_command

    from tracetool.cli import app

    found = get_command(app).commands  # type: ignore[attr-defined]
    plots = {name: command for name, command in found.items() if name.startswith("plot-")}
    out = ["# Commands", "", "Made by `python docs/refresh.py` from the commands' own help.", ""]
    out += ["| command | what it does |", "| --- | --- |"]
    out += [f"| `tracetool {name}` | {(command.help or '').splitlines()[0]} |" for name, command in found.items()]
    shown = [name for name in found if name not in plots] + list(plots)[:1]
    with tempfile.TemporaryDirectory() as folder:
        for name in shown:
            title = "plot-CHART" if name in plots else name
            words = f"$ tracetool {name} --help"
            out += ["", f"## {title}", "", "```console", session(f"{words}\n", Path(folder)).rstrip("\n"), "```"]
    return "\n".join(out) + "\n"


def formats() -> str:
    """The document about input formats, from what the parsers say of themselves."""
    from tracetool import parsers

    out = ["# Input formats", "", "Made by `python docs/refresh.py` from the parsers' docstrings.", ""]
    out += ["What a file is, its content decides, never its name."]
    out += ["", "| format | what it is |", "| --- | --- |"]
    out += [f"| [{name}](#{name}) | {parsers.get(name).DESCRIPTION} |" for name in parsers.FORMATS]
    for name in parsers.FORMATS:
        said = inspect.getdoc(parsers.get(name)) or ""
        out += ["", f"## {name}", "", re.sub(r"::\n\n((?: {4}.*\n?|\n)+)", _block, said).replace("``", "`").rstrip()]
    return "\n".join(out) + "\n"


def _block(match: re.Match[str]) -> str:
    """A literal block of a docstring as Markdown has it."""
    return f":\n\n```text\n{inspect.cleandoc(match[1])}\n```\n\n"


MADE = {"tables.md": tables, "commands.md": commands, "formats.md": formats}


def main(words: list[str]) -> int:
    """Refresh or check the documents given, or all."""
    check = "--check" in words
    chosen = [Path(word).resolve() for word in words if word != "--check"] or documents()
    differ = False
    for path in chosen:
        before = path.read_text(encoding="utf-8") if path.exists() else ""
        images: dict[str, bytes] = {}
        after = MADE[path.name]() if path.name in MADE else refreshed(before, images)
        texts = [(path, after.encode(), before.splitlines(keepends=True), after.splitlines(keepends=True))]
        for image, now in images.items():
            kept = path.parent / "images" / image
            texts.append((kept, now, words_of(kept.read_bytes()) if kept.exists() else [], words_of(now)))
        for file, content, old, new in texts:
            differ = differ or old != new
            sys.stdout.writelines(difflib.unified_diff(old, new, str(file.relative_to(ROOT)), "now"))
            if not check and (old != new or content != file.read_bytes()):
                file.parent.mkdir(exist_ok=True)
                file.write_bytes(content)
    return int(check and differ)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
