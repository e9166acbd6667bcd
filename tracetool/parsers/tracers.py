"""How the kernel's tracers print events: ftrace, ``trace-cmd report``, ``perf script``; and what cannot be read."""

from __future__ import annotations

import re

#: ``[cpu] (tgid) flags time: period system:``, or ``-pid cpuFLAGS time:`` (trace-cmd report -l). What is before it is
#: left out: a command's name may hold anything.
_ENVELOPE = (
    r"(?:\[\d{1,4}\]\s+|-\d{1,8}+\s{1,12}+\d{1,4}+(?=[^\s:]))(?:\(\s*[\d-]+\)\s+)?(?:[^\s:]{3,8}\s+)?"
    r"(\d{1,18})(?:\.(\d{6}(?:\d{3})?))?:\s+(?:\d+\s+)?(?:tcp:)?"
)
_NUMBER, _SEQUENCE = r"(\d{1,10})", r"(?:0x)?([0-9a-f]{1,8})"
KEYS = (
    "src",
    "dest",
    "data_len",
    "length",
    "snd_nxt",
    "snd_una",
    "snd_cwnd",
    "ssthresh",
    "snd_wnd",
    "srtt",
    "rcv_wnd",
)
_BODY = (
    rf"src=(\S+) dest=(\S+)(?: mark=\S+)? (data_len|length)={_NUMBER} snd_nxt={_SEQUENCE} snd_una={_SEQUENCE} "
    rf"snd_cwnd={_NUMBER} ssthresh={_NUMBER} snd_wnd={_NUMBER} srtt={_NUMBER} rcv_wnd={_NUMBER}"
    r"(?: sock_cookie=([0-9a-f]{1,16}))?(?=\s|$)"
)
PROBE = re.compile(rf"{_ENVELOPE}tcp_probe:\s+(?:family=\S+ )?{_BODY}")
PAYLOAD = re.compile(_BODY)
EVENT = re.compile(rf"{_ENVELOPE}(\w+):\s+(.*)")
PAIR = re.compile(r"(\w+)=(\S+)")
COMMENT = re.compile(r"\s*(?:#|$)|cpus=\d+$|version = \d+$|CPU \d+ is empty$")
LOST = re.compile(r"CPU:(\d+) \[LOST (?:(\d+) )?EVENTS\]")
WRITTEN = re.compile(r"# entries-in-buffer/entries-written: (\d{1,18})/(\d{1,18})\b")
#: Layouts of the tracers that cannot be read: what their lines look like, and what to do.
_LAYOUTS = (
    (
        r"^# latency: |\blatency trace v\d|\d{1,12}us[ !+#*@$]{0,4}:\s+tcp_probe:",
        "latency-format lines have no absolute time; turn the trace option latency-format off",
    ),
    (
        r"<INVALID-SIZE>|tcp_probe:\s.*\bsaddr=",
        "raw fields do not show the addresses; turn the trace option fields (or -R of trace-cmd) off",
    ),
    (r"^\s*[0-9a-f]+ [0-9a-f]+ [0-9a-f]+ type: \d+", "lines are raw; turn the trace options raw and hex off"),
    (r"^tcp_probe:\s", "lines have no time; turn the trace option context-info on"),
    (
        r"^\s*\d+\.\d+\s+\d+\s+(?:family=\S+ )?src=\S+ dest=",
        "perf report rounds times and merges events; use perf script",
    ),
)
_UNREADABLE = tuple((re.compile(layout), reason) for layout, reason in _LAYOUTS)
#: An event of TCP.
TCP_EVENT = re.compile(
    rf"{_ENVELOPE}(?:tcp_probe|tcp_retransmit_skb|tcp_cong_state_set|tcp_receive_reset|tcp_destroy_sock|"
    r"tcp_rcv_space_adjust|tcp_send_reset|tcp_retransmit_synack):\s"
)


def unreadable(text: str) -> str | None:
    """Say why the layout that a line is of cannot be read; None where it can.

    Examples
    --------
    >>> unreadable("tcp_probe: src=192.0.2.1:5000 dest=192.0.2.2:80")
    'lines have no time; turn the trace option context-info on'
    """
    return next((reason for layout, reason in _UNREADABLE if layout.search(text)), None)
