"""The manifests shown in the documentation are read."""

from __future__ import annotations

import re
from pathlib import Path

from tests.experiments.captures import flow, run
from tracetool.experiments.layout import layout

PAGE = (Path(__file__).parents[2] / "docs" / "fairness.md").read_text(encoding="utf-8")


def test_manifests_of_the_documentation(tmp_path):
    whole, named = re.findall(r"^```toml\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
    run(tmp_path / "16ms" / "cubic" / "1", flow(1, 0, 1, 2))
    (tmp_path / "experiment.toml").write_text(whole)
    (only,) = layout(tmp_path).runs
    assert (only.levels, only.repetition) == ((("delay", "16ms"), ("protocol", "cubic")), "1")
    assert (only.setting.rate_bps, only.setting.queue_bytes, only.setting.flows) == (8_000_000, 80_000, 2)
    assert only.setting.ports == {5201: "flow1", 5202: "flow2"}

    run(tmp_path / "first", flow(1, 0, 1, 2))
    (tmp_path / "experiment.toml").write_text(named)
    first, second = layout(tmp_path).runs
    assert [side for side, _ in first.captures] == ["receiver", "sender"]
    assert (second.levels, second.setting.rate_bps) == ((("delay", "42ms"), ("protocol", "cubic")), 10_000_000)
    assert second.counters == (str(tmp_path / "b/tc.log"),)
