"""The printed forms: the testbed page's layout byte for byte, and that all other forms say the same."""

from __future__ import annotations

import csv
import io
import json
import re

import pytest

from tests.report.tables.made_up import campaign
from tracetool.errors import UsageError
from tracetool.experiments.cells import long_table, parts
from tracetool.report.tables import FORMS, data, html, renderer, seed
from tracetool.report.tables.document import Document, Grid, Heading, Text
from tracetool.report.tables.experiment import experiment_page
from tracetool.report.tables.text import grid_lines

SEED = """\
Intra Protocol Fairness

Experimental Setting

Bottleneck Bandwidth: 8 Mbit/s (frame bytes)
Queue size: 80000 bytes
Background traffic: not declared
Interval: overlap; a silent flow counts as zero

1. Intra-Protocol Fairness

1.1 Fairness index (Jain's) for intra-protocol fairness

(payload, overlap)

Delay\tcubic\tbbr
16ms\t0.999791 [1]\t0.993000 [1] [2]
162ms\t-\t0.800000 [1] [2]

1.2 Throughput Ratio for intra-protocol fairness

(min/max; payload, overlap)

Delay\tcubic\tbbr
16ms\t0.971515 [1]\t0.850000 [1] [2]
162ms\t-\t0.350000 [1] [2]

2. Link Utilization

Link utilization table
(frame, delivered, overlap)

Delay\tcubic\tbbr
16ms\t0.954319 [1]\t0.954319 [1] [2]
162ms\t-\t0.954319 [1] [2]

3. Queue Dropping Ratio

Queue drop ratio on the bottleneck router

Delay\tcubic\tbbr
16ms\t0.000171 [1]\t0.000171 [1] [2]
162ms\t-\t0.000171 [1] [2]

4. Convergence Time

4.1 Convergence Time for two flows

(J >= 0.95; seconds from the later flow's start)
162ms/bbr [1]: not reached in 40.000000 s, not in the mean

Delay\tcubic\tbbr
16ms\t25.000000 [1]\t17.500000 [1] [2]
162ms\t-\t35.000000 [1] [2] (1 of 2)

4.2 Fairness index over various time scales

Fairness index table

Protocol\t\t16ms\t162ms
cubic\t1sec\t0.999791\t-
\t5sec\t0.999791\t-
\t160sec\tn/a\t-
bbr\t1sec\t0.993000\t0.800000
\t5sec\t0.993000\t0.800000
\t160sec\tn/a\tn/a

5. Coefficient of Variance (CoV) of Total throughput

CoV table
(standard deviation with ddof 0; all captured frames towards the receivers)

Protocol\t\t16ms\t162ms
cubic\t1sec\t0.100000\t-
\t5sec\t0.100000\t-
\t160sec\tn/a\t-
bbr\t1sec\t0.100000\t0.100000
\t5sec\t0.100000\t0.100000
\t160sec\tn/a\tn/a
"""


def page(**changes):
    measured = campaign(**changes)
    found, warnings = parts(measured)
    return experiment_page(measured, found, warnings)


def test_layout_of_the_testbed_page():
    assert renderer("seed")(page()) == SEED


def test_text_says_the_same_in_eighty_columns():
    text = renderer("text")(page())
    assert max(map(len, text.splitlines())) <= 80
    assert text.split() == SEED.split()
    assert "\n162ms  -              35.000000 [1] [2] (1 of 2)\n" in text


@pytest.mark.parametrize("form", FORMS)
def test_forms_are_stable(form):
    assert renderer(form)(page()) == renderer(form)(page())


def test_a_table_too_wide_continues_below_with_its_row_names():
    header = ("Delay", *(f"protocol{n}" for n in range(9)))
    rows = (tuple(Text(text) for text in ("16ms", *(f"{n}.000000" for n in range(9)))),)
    lines = grid_lines(Grid(header, rows), 40)
    assert max(map(len, lines)) <= 40
    assert sum(line.startswith("16ms") for line in lines) == 3
    assert re.findall(r"\d\.0+", " ".join(lines)) == [f"{n}.000000" for n in range(9)]


def test_a_row_must_have_a_heading_for_every_cell():
    with pytest.raises(ValueError, match="2 cells under 1"):
        Grid(("Delay",), ((Text("16ms"), Text("1")),))


@pytest.mark.parametrize(
    ("source", "heading"),
    [("endpoint-captures", "3p. Path loss ratio"), ("sender-capture", "3e. Estimated loss ratio")],
)
def test_only_the_router_fills_table_three(source, heading):
    text = renderer("seed")(page(source=source))
    assert heading in text
    assert "Queue drop ratio on the bottleneck router" not in text
    assert ("0.000171~ [1] [2]" in text) == (source == "sender-capture")


def test_markdown_escapes_what_would_be_links():
    text = renderer("markdown")(page())
    assert "| 16ms | 0.999791 \\[1\\] | 0.993000 \\[1\\] \\[2\\] |" in text


def test_every_repetition_links_to_its_run():
    found = html.pages(page())
    assert set(found) == {"index.html", *(f"run-{number}.html" for number in range(5))}
    links = re.findall(r'href="([^"]+)"', found["index.html"])
    assert set(links) == set(found) - {"index.html"}
    assert len(links) == 5 * 5  # five grid tables with five repetitions each
    alone = renderer("html")(page())
    assert {f"#{name}" for name in re.findall(r'id="([^"]+)"', alone)} == set(re.findall(r'href="([^"]+)"', alone))


def test_html_of_hostile_names():
    document = Document((Heading(1, "<script>"), Grid(("a",), ((Text("<b>\x1b[0m"),),), 0)))
    assert "<script>" not in renderer("html")(document)
    assert "\x1b" not in renderer("html")(document)
    assert "\x1b" not in renderer("text")(document)


def test_long_csv_is_the_authority():
    found, _ = parts(campaign())
    rows = list(csv.DictReader(io.StringIO(data.csv(long_table(found)))))
    assert list(rows[0]) == [
        "table", "delay", "protocol", "scale", "repetition", "value", "n", "label", "reason", "censored_at",
    ]  # fmt: skip
    cell = [
        row for row in rows if (row["table"], row["delay"], row["protocol"]) == ("convergence_time", "162ms", "bbr")
    ]
    assert [(row["repetition"], row["value"], row["n"], row["reason"]) for row in cell] == [
        ("1", "", "0", "not-reached"),
        ("2", "35.0", "1", ""),
        ("", "35.0", "1", ""),
    ]


def test_json_has_every_value_and_no_nan():
    measured = campaign()
    found, warnings = parts(measured)
    document = json.loads(data.experiment_json(measured, found, warnings))
    (cell,) = [
        cell
        for cell in document["cells"]
        if cell["table"] == "jain" and cell["levels"] == {"delay": "16ms", "protocol": "bbr"}
    ]
    assert [one["value"] for one in cell["repetitions"]] == [0.991, 0.995]
    assert cell["n"] == 2
    assert cell["sd"] == pytest.approx(0.002)


def test_reader_of_old_tables_keeps_values_without_a_heading():
    with pytest.warns(UserWarning, match="1 values stand in columns without a heading"):
        found = seed.parse_scale_table("Protocol\t\t16ms\nBIC\t1sec\t0.5\t0.6\n\t5sec\t0.7")
    assert [(row["protocol"], row["scale"], row["column"], row["value"]) for row in found] == [
        ("BIC", "1sec", "16ms", 0.5),
        ("BIC", "1sec", "extra_1", 0.6),
        ("BIC", "5sec", "16ms", 0.7),
    ]
    with pytest.raises(ValueError, match="line 2"):
        seed.parse_scale_table("Protocol\t\t16ms\nBIC\t1sec\tx")


def test_reader_reads_what_the_writer_writes():
    text = renderer("seed")(page())
    table = text[text.index("Protocol\t\t") :].split("\n\n")[0].replace("n/a", "0").replace("\t-", "\t0")
    assert len(seed.parse_scale_table(table)) == 6 * 2


def test_unknown_form():
    with pytest.raises(UsageError, match="expected one of text"):
        renderer("pdf")


def test_long_addresses_stand_in_a_table_of_their_own():
    import polars as pl

    from tests.metrics.frames import packets
    from tracetool.experiments.sharing import SharingOptions, sharing
    from tracetool.report.tables.sharing import sharing_page

    rows = [
        {"flow": flow, "time": second * 10**9, "seq": 1 + 30_000 * second, "payload_bytes": 30_000}
        for second in range(8)
        for flow in (0, 1)
    ]
    addresses = {"addr_a": "2001:db8:1111:2222:3333:4444:5555:6666", "addr_b": "2001:db8::2", "port_b": 5201}
    flows = pl.DataFrame(
        [
            {"input": "in", "flow": flow, "protocol": "tcp", "start": flow, "port_a": 40_000 + flow, **addresses,
             "payload_bytes_a2b": 240_000, "payload_bytes_b2a": 0}
            for flow in (0, 1)
        ],
        schema_overrides={"flow": pl.Int32},
    )  # fmt: skip
    options = SharingOptions(scales_ns=(10**9,))
    text = renderer("text")(sharing_page(sharing(packets(*rows), flows, options), options))
    assert max(map(len, text.splitlines())) <= 80
    assert "2001:db8:1111:2222:3333:4444:5555:6666:40001 > 2001:db8::2:5201" in text
    assert "Jain's fairness index       1.000000" in text
