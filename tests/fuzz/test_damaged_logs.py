"""Ten thousand damaged logs of each format: tables or a clear refusal, never a crash.

See `test_damaged_captures.py`.
"""

from __future__ import annotations

import pytest

from tests.fuzz.contract import survives
from tracetool import parsers


@pytest.mark.parametrize("name", [name for name in parsers.FORMATS if name not in {"pcap", "pcapng"}])
def test_damaged_logs_give_tables_or_a_refusal(name):
    survives(name)
