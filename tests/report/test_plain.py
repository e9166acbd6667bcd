"""Names written by strangers cannot drive a terminal or break a layout."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tracetool.report.plain import ascii_only, display_width, printable, wrap


@given(st.text())
def test_printable_text_holds_no_control_characters(text):
    assert printable(text).isprintable()


@given(st.text())
def test_ascii_text_is_seven_bit_and_printable(text):
    assert all(" " <= char <= "~" for char in ascii_only(text))


def test_escapes_and_bidirectional_overrides_are_replaced():
    assert printable("\x1b]0;title\x07 \u202egnp.exe") == "?]0;title? ?gnp.exe"


def test_long_text_is_cut():
    assert printable("x" * 1000, limit=10) == "xxxxxxx..."


@given(st.text(st.sampled_from("ab \u6f22\u0301"), max_size=80), st.integers(2, 20))
def test_wrapped_lines_fit(text, width):
    assert all(display_width(line) <= width for line in wrap(text, width))


def test_wrap_keeps_every_word():
    assert " ".join(wrap("the quick brown fox", 9)) == "the quick brown fox"
