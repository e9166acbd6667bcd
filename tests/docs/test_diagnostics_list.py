"""docs/diagnostics.md lists each code that the package can write, and no other."""

from __future__ import annotations

import ast
import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
DOCUMENT = ROOT / "docs" / "diagnostics.md"
SEVERITIES = ("info", "warning", "error")


def codes_in(source: str) -> set[str]:
    """Codes as they are written: first arguments of `.add(code, message)`, and in tuples `(code, severity, ...)`."""
    found: list[ast.expr] = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "add":
            found += node.args[:1] if len(node.args) > 1 or node.keywords else []
        if isinstance(node, ast.Tuple) and len(node.elts) > 1 and ast.unparse(node.elts[1]).strip("'") in SEVERITIES:
            found.append(node.elts[0])
    branches = [e for f in found for e in ((f.body, f.orelse) if isinstance(f, ast.IfExp) else (f,))]
    written = {e.value for e in branches if isinstance(e, ast.Constant) and isinstance(e.value, str)}
    return written - set(SEVERITIES)


def test_the_search_finds_codes():
    source = """
log.add("torn_line", f"line {n}", line=n)
log.add("cut" if end else "bad_length", "message")
seen.add("other")
TEXTS = {3: ("headers_cut", "warning", "frames end early"), 4: ("a", "b")}
Severity = Literal["info", "warning", "error"]
"""
    assert codes_in(source) == {"torn_line", "cut", "bad_length", "headers_cut"}


def test_each_code_is_documented_and_each_documented_code_exists():
    used = {
        code: path.relative_to(ROOT)
        for path in sorted((ROOT / "tracetool").rglob("*.py"))
        for code in codes_in(path.read_text(encoding="utf-8"))
    }
    listed = re.findall(r"^\| `([a-z0-9_]+)` \|", DOCUMENT.read_text(encoding="utf-8"), re.MULTILINE)
    assert len(listed) == len(set(listed))
    assert {code: str(path) for code, path in used.items() if code not in listed} == {}
    assert set(listed) - set(used) == set()
