"""JSON read piece by piece: the same members as when it is decoded whole, bounded, and told where it breaks."""

from __future__ import annotations

import io
import json

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tracetool.parsers import json_text
from tracetool.parsers.json_text import JsonDamageError, members, number

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=4),
    max_leaves=20,
)


class Slow(io.BytesIO):
    """A stream whose reads give a few bytes only."""

    def read(self, size=-1):
        return super().read(min(size, 3) if size >= 0 else 3)


def collect(text, found):
    for member in members(Slow(text), [()]):
        found.append(member)


@given(st.lists(VALUES, max_size=5))
def test_members_of_an_array_are_its_values(values):
    stream = Slow(json.dumps(values, ensure_ascii=False).encode("utf-8", "surrogatepass"))
    found = [value for path, value in members(stream, [()]) if path == ("*",)]
    assert found == json.loads(json.dumps(values).encode().decode())


@given(st.dictionaries(st.text(max_size=5), VALUES, max_size=5), st.integers(0, 200))
@example({"a": None, "b": 10}, 18)  # of which the first digit is left
def test_a_cut_document_gives_its_first_members_and_says_so(values, at):
    text = json.dumps(values).encode()[:at]
    found = []
    if text in (b"", json.dumps(values).encode()):
        found.extend(members(Slow(text), [()]))
    else:
        with pytest.raises(JsonDamageError) as caught:
            collect(text, found)
        assert 0 <= caught.value.offset_bytes <= len(text)
    whole = [(path, value) for path, value in members(Slow(json.dumps(values).encode()), [()]) if path]
    told = [(path, value) for path, value in found if path]
    assert told == whole[: len(told)]


def test_long_members_are_read_as_a_whole_and_bounded(monkeypatch):
    long = "x" * 300_000
    assert next(members(io.BytesIO(json.dumps({"a": long}).encode()), [()])) == (("a",), long)
    monkeypatch.setattr(json_text, "MEMBER_CHARS", 100_000)
    with pytest.raises(JsonDamageError, match="more than 100000"):
        list(members(io.BytesIO(json.dumps({"a": long}).encode()), [()]))


@pytest.mark.parametrize("at", range(1, 21))
def test_a_number_may_be_anywhere_in_what_is_read_at_once(monkeypatch, at):
    monkeypatch.setattr(json_text, "READ_BYTES", at)
    text = b"[12.5, -3e+2, 4E-1, 70]"
    assert [value for path, value in members(io.BytesIO(text), [()]) if path] == [12.5, -300.0, 0.4, 70]


@pytest.mark.parametrize(
    ("text", "message", "offset"),
    [
        ('{"a": [1]', "ends early", 9),
        ('{"a": 1.', "ends early", 6),
        ('{"a": 1', "ends early", 6),  # or what is left of 12
        ('{"a" 1}', "':' is missing", 5),
        ('["é" 2]', "',' is missing", 6),
        ("{1: 2}", "no text", 2),
        ('{"a": bad}', "no JSON", 6),
        ("[" * 100_000, "nested too deeply", 1),
        ("[" + "9" * 5000 + "]", "cannot be", 1),
    ],
)
def test_damage_is_told_with_its_place(text, message, offset):
    with pytest.raises(JsonDamageError, match=message) as caught:
        list(members(io.BytesIO(text.encode()), [()]))
    assert caught.value.offset_bytes == offset


def test_nan_is_null_and_numbers_are_checked():
    assert list(members(io.BytesIO(b"[NaN, -Infinity]"), [()]))[:2] == [(("*",), None), (("*",), None)]
    odd = (None, "x", "", True, -1, float("inf"), 1e300, [], {}, "9" * 400)
    assert [number(value) for value in odd[:-1]] == [None] * 9
    assert number("1.5", 2) == 3
