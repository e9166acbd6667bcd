"""Long lines made to keep patterns busy: every text parser is through with them at once."""

from __future__ import annotations

import contextlib
import multiprocessing
import time
from queue import Empty

import pytest

from tracetool import parsers
from tracetool.errors import TracetoolError

TEXT_PARSERS = tuple(name for name in parsers.FORMATS if name not in {"pcap", "pcapng"})
N = 60_000
LINES = {
    "brackets": "[000] " * (N // 6),
    "blanks": "[000]" + " " * N + "x",
    "tabs": "\t" * N + "cwnd:10",
    "one word": "a" * N + "     b",
    "digits": "9" * N,
    "colons": ":" * N,
    "addresses": "ESTAB 0 0 " + "1:" * (N // 2),
    "users": "ESTAB 0 0 192.0.2.1:1 192.0.2.2:2 users:((" + '"a",' * (N // 4) + " cwnd:1",
    "tokens": "\t cubic " + "rtt:1/1 " * (N // 8),
    "padding": "\t cubic cwnd:1" + (" " * 6 + "b") * (N // 7),
    "counters": "Tcp: " + "Aa" * (N // 2) + "!",
    "names": "Tcp: " + "Aa " * (N // 3) + "!",
    "nested": "[" * N,
    "objects": '{"a":' * (N // 5),
    "quotes": '"' * N,
    "commas": "time,cwnd" + "," * N,
    "hash": "# entries-in-buffer/entries-written: " + "1" * N,
    "probe": "x-1 [000] 1.000000: tcp_probe: " + "src=1 " * (N // 6),
    "flent": '{"metadata": {' + '"a": {' * (N // 6),
}  # fmt: skip


def through(queue):
    import io

    from tracetool.diagnostics import DiagnosticLog
    from tracetool.parsers.options import ParseOptions

    class Stream(io.BytesIO):
        def head(self):
            return self.getvalue()[:65536]

    for name in TEXT_PARSERS:
        parser = parsers.get(name)
        for label, line in LINES.items():
            queue.put(f"{name} with {label!r}")
            time.sleep(0.001)  # a pattern lets no other thread run: the queue's must have sent this before
            for text in (line, f"{line}\n{line}\n", f"1796026431\n{line}\n"):
                parser.sniff(text.encode()[:65536])
                with contextlib.suppress(TracetoolError):
                    list(parser.parse(Stream(text.encode()), DiagnosticLog("x"), ParseOptions()))
    queue.put("all done")


@pytest.mark.slow
def test_no_line_keeps_a_parser_busy():
    """In a process of its own, which is ended where it does not return: a pattern cannot be interrupted."""
    context = multiprocessing.get_context("spawn")
    queue = context.Queue()
    worker = context.Process(target=through, args=(queue,))
    worker.start()
    doing = "start"
    try:
        while doing != "all done":
            doing = queue.get(timeout=60)
    except Empty:
        pytest.fail(f"busy for a minute: {doing}")
    finally:
        worker.kill()
        worker.join()
