"""Each number of a log in turn is one that no field holds: mutations at random seldom meet the one that matters."""

from __future__ import annotations

import re

import pytest

from tests.fuzz.contract import parse
from tests.fuzz.seeds import seeds
from tracetool import parsers

LOGS = [name for name in parsers.FORMATS if name not in {"pcap", "pcapng"}]
#: Seconds beyond 2262; the largest of 63 bits, and a thousandth of it; beyond a float's integers.
EXTREMES = (b"9588855600", b"9223372036854775807", b"9223372036854775", b"1e300", b"-5")
NUMBER = re.compile(rb"\d+(\.\d+)?")
PER_SEED = 60


@pytest.mark.parametrize("name", LOGS)
def test_every_number_may_be_extreme(name):
    for data in seeds(name):
        for found in list(NUMBER.finditer(data))[:PER_SEED]:
            for value in EXTREMES:
                changed = data[: found.start()] + value + data[found.end() :]
                parse(name, changed, cast=False)
