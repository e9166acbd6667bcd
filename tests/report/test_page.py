"""The report page: whole, self-contained, safe, and alive in a browser."""

from __future__ import annotations

import html
import html.parser
import json
import re

import pytest

from tests.report import made
from tests.report.made import HOSTILE, make
from tracetool.dataset import Dataset
from tracetool.report.page import html_of, write


@pytest.fixture(scope="session")
def dataset(tmp_path_factory):
    return make(tmp_path_factory.mktemp("made") / "dataset")


@pytest.fixture(scope="session")
def page(dataset):
    return html_of(dataset, command=f"tracetool report {HOSTILE}", title=HOSTILE)


@pytest.fixture(scope="session")
def static_page(dataset):
    return html_of(dataset, static=True)


class Outline(html.parser.HTMLParser):
    """Elements and addresses of a page, as a browser would see them."""

    def __init__(self, text):
        super().__init__()
        self.tags, self.addresses, self.handlers, self.open, self.text = [], [], [], [], []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.addresses += [value for name, value in attrs if name in ("src", "href", "srcset", "action") and value]
        self.handlers += [name for name, _ in attrs if name.startswith("on")]
        if tag not in ("meta", "link", "img", "input", "br"):
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text.append(data)


def test_markup_is_well_formed_and_asks_for_nothing(page, static_page):
    for text in (page, static_page):
        outline = Outline(text)
        assert outline.open == []
        assert all(address.startswith(("#", "data:")) for address in outline.addresses)
        assert outline.handlers == []
        assert "default-src 'none'" in html.unescape(text)


def test_text_from_captures_is_shown_and_never_run(page):
    outline = Outline(page)
    assert "<script>alert" not in page
    assert "img" not in outline.tags
    assert "\x1b" not in page
    assert any("alert(1)" in text for text in outline.text)


def test_one_copy_of_the_javascript_and_small(page):
    assert page.count("window.vegaEmbed=") == 1
    assert len(page) < 3_000_000


def test_every_specification_is_json(page):
    specs = re.findall(r'<script type="application/json" id="([^"]+)">(.*?)</script>', page, re.DOTALL)
    assert len(specs) == 5 + 2 * 6
    assert all(json.loads(text)["$schema"] for _, text in specs)
    assert all(f'data-spec="{name}"' in page for name, _ in specs)


def test_the_static_page_has_pictures_and_no_script(static_page):
    outline = Outline(static_page)
    assert "script" not in outline.tags
    assert "script-src" not in static_page
    assert outline.tags.count("img") == 5 + 2 * 6
    assert outline.tags.count("input") == 0


def test_it_says_what_there_is(page):
    for said in (
        "record cut short",
        "192.0.2.1:4000",
        "Evidence: ACKs followed one another",
        "0.80 of the path",
        "tcp.stream eq 1",
        "throughput_ratio",
        "How each number was obtained",
        "hystart train",
    ):
        assert said in page


def test_no_flows_make_a_page_too(tmp_path):
    path = write(Dataset.create(tmp_path / "empty"), tmp_path / "report.html")
    assert "There is no flow to show" in path.read_text()


def test_progress_counts_up_to_the_whole(dataset):
    told = []
    html_of(dataset, flows=1, progress=lambda done, total: told.append((done, total)))
    assert told[-1] == (7, 7)
    assert [done for done, _ in told] == sorted({done for done, _ in told})


def test_thousands_of_flows_stay_usable(tmp_path):
    dataset = Dataset.create(tmp_path / "many")
    flows = [
        made._flow("sender", 0, vantage="sender")
        | {"flow": number, "stream": number, "port_a": 1000 + number, "payload_bytes_a2b": 10_000 + number}
        for number in range(6_000)
    ]
    with dataset.reserve(["sender"]) as writer:
        made._write(writer, "flows", flows)
        made._write(writer, "inputs", [made._input("sender", "pcap", 1)])
        writer.commit()
    page = html_of(dataset)
    assert len(page) < 4_000_000
    assert "1,000 more rows are left out" in page
