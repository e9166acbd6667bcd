"""Ten thousand damaged captures of each format: tables or a clear refusal, never a crash.

The logs have a file of their own, so that two processes share the work.
"""

from __future__ import annotations

import pytest

from tests.fuzz.contract import survives


@pytest.mark.parametrize("name", ["pcap", "pcapng"])
def test_damaged_captures_give_tables_or_a_refusal(name):
    survives(name)
