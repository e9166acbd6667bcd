"""tc -s qdisc: the shapes of several disciplines, times before listings, and what is torn."""

from __future__ import annotations

import pytest

from tracetool.metrics.queue_drops import bottleneck_queues, drops_from_counters

POLL = """\
qdisc noqueue 0: dev lo root refcnt 2
 Sent 0 bytes 0 pkt (dropped 0, overlimits 0 requeues 0)
 backlog 0b 0p requeues 0
qdisc htb 1: dev eth1 root refcnt 2 r2q 10 default 0x10 direct_packets_stat 0 direct_qlen 1000
 Sent {sent} bytes {packets} pkt (dropped {dropped}, overlimits 12 requeues 0)
 backlog 12Kb 8p requeues 0
qdisc fq_codel 10: dev eth1 parent 1:10 limit 10240p flows 1024 quantum 1514 target 5ms interval 100ms ecn
 Sent {sent} bytes {packets} pkt (dropped {dropped}, overlimits 0 requeues 0)
 backlog 12112b 8p requeues 0
  maxpacket 1514 drop_overlimit 0 new_flow_count 1 ecn_mark {marked}
  new_flows_len 0 old_flows_len 1
"""


def poll(second, packets, dropped, marked=0):
    return f"179602643{second}.500000000\n" + POLL.format(
        sent=1514 * packets, packets=packets, dropped=dropped, marked=marked
    )


def test_all_columns(read):
    result = read(poll(1, 100, 3, 5))
    assert result.parser == "tc_qdisc"
    row = result.row("queue_counters", 2)
    assert {name: row[name] for name in row if name not in {"time", "input"}} == {
        "device": "eth1",
        "kind": "fq_codel",
        "handle": "10:",
        "parent": "1:10",
        "is_root": False,
        "sent_bytes": 151400,
        "sent_packets": 100,
        "dropped_packets": 3,
        "overlimits": 0,
        "requeues": 0,
        "backlog_bytes": 12112,
        "backlog_packets": 8,
        "marked_packets": 5,
    }
    assert result.nanoseconds(table="queue_counters")[0] == 1_796_026_431_500_000_000
    assert result.row("queue_counters", 1)["backlog_bytes"] == 12000
    assert result.row("queue_counters", 1)["marked_packets"] is None


@pytest.mark.parametrize("chunk", [1, 7, 64])
def test_any_split_of_the_bytes_gives_the_same(read, chunk):
    text = poll(1, 100, 3) + poll(2, 180, 23)
    assert read(text, chunk=chunk).frames["queue_counters"].equals(read(text).frames["queue_counters"])


def test_drop_ratio_of_the_leaf_of_the_bottleneck(read):
    counters = read(poll(1, 100, 3) + poll(2, 180, 23, 4)).frames["queue_counters"]
    queues = drops_from_counters(counters)
    (leaf,) = bottleneck_queues(queues).iter_rows(named=True)
    assert (leaf["device"], leaf["handle"]) == ("eth1", "10:")
    assert (leaf["value"], leaf["mark_ratio"]) == (20 / 100, 4 / 100)


def test_times_of_ts_and_none(read):
    stamped = "".join(
        f"1796026431.5 {line}\n" for line in POLL.format(sent=1, packets=1, dropped=0, marked=0).splitlines()
    )
    assert read(stamped).column("device", "queue_counters") == ["lo", "eth1", "eth1"]
    bare = read(POLL.format(sent=1, packets=1, dropped=0, marked=0))
    assert "no_time" in bare.codes


def test_counters_without_their_queue_are_told(read):
    result = read(" Sent 5 bytes 1 pkt (dropped 0, overlimits 0 requeues 0)\n" + poll(1, 1, 0))
    assert result.codes == ["torn_line"]
    assert result.log.damaged


def test_counters_beyond_any_counter_are_left_out(read):
    result = read(poll(1, 10**18, 0))
    assert len(result.rows("queue_counters")) == 1


def test_other_text_is_not_taken(read):
    from tracetool.parsers import tc_qdisc

    assert not tc_qdisc.sniff(b"qdisc noqueue 0: dev lo root refcnt 2\n")
    assert not tc_qdisc.sniff(bytes(range(256)))
