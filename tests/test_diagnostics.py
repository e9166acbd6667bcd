"""No oddity is dropped, and no control character gets through."""

from __future__ import annotations

from tracetool.diagnostics import LIMIT, DiagnosticLog


def test_many_of_a_kind_are_counted_in_the_last_row() -> None:
    log = DiagnosticLog("x")
    for i in range(LIMIT + 900):
        log.add("torn_line", f"line {i} is torn", line=i)
    log.add("other", "another kind")
    rows = log.table().to_pylist()
    assert len(rows) == LIMIT + 1
    assert sum(row["count"] for row in rows if row["code"] == "torn_line") == LIMIT + 900
    assert rows[LIMIT - 1]["message"].startswith("901 more of this kind")
    assert rows[LIMIT - 1]["line"] == LIMIT - 1


def test_errors_mean_damage() -> None:
    log = DiagnosticLog("x")
    log.add("a", "m")
    assert not log.damaged
    log.add("b", "m", severity="error")
    assert log.damaged


def test_control_characters_are_escaped() -> None:
    log = DiagnosticLog("x")
    log.add("a", "name \x1b]0;evil\x07 \u009b31m")
    assert log.rows[0]["message"] == "name \\x1b]0;evil\\x07 \\x9b31m"
