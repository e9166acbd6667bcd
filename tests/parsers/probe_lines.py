"""Lines of tcp_probe logs, as tracefs prints them."""

from __future__ import annotations

PAYLOAD = (
    "src={src} dest={dest} mark=0x0 data_len={length} snd_nxt={nxt:#x} snd_una={una:#x} snd_cwnd={cwnd} "
    "ssthresh={ssthresh} snd_wnd=65536 srtt={srtt} rcv_wnd=64512"
)
FACTS = {
    "src": "192.0.2.1:5000", "dest": "192.0.2.9:443", "length": 0, "nxt": 0x9000, "una": 0x1000, "cwnd": 10,
    "ssthresh": 2147483647, "srtt": 30250,
}  # fmt: skip


def payload(**facts):
    return PAYLOAD.format(**(FACTS | facts))


def ftrace(time="12.000001", event="tcp_probe", body=None, cookie="2a", **facts):
    body = body or payload(**facts) + (f" sock_cookie={cookie}" if cookie else "")
    return f"          <idle>-0       [001] ..s2.   {time}: {event}: {body}\n"


def state(number, time="12.000002", local="192.0.2.1", port=5000, remote="192.0.2.9", dport=443):
    return ftrace(
        time,
        "tcp_cong_state_set",
        f"family=AF_INET sport={port} dport={dport} saddr={local} daddr={remote} saddrv6=::ffff:{local} "
        f"daddrv6=::ffff:{remote} cong_state={number}",
    )


def resent(time="12.000003", extra=""):
    return ftrace(
        time,
        "tcp_retransmit_skb",
        "skbaddr=00000000aa skaddr=00000000bb family=AF_INET sport=5000 dport=443 saddr=192.0.2.1 daddr=192.0.2.9 "
        f"saddrv6=::ffff:192.0.2.1 daddrv6=::ffff:192.0.2.9 state=TCP_ESTABLISHED{extra}",
    )
