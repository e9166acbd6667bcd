"""A small experiment with made-up numbers: unequal repetitions, a missing cell, one that never converged."""

from __future__ import annotations

from tracetool.experiments.campaign import Campaign
from tracetool.experiments.layout import Layout, Run
from tracetool.experiments.run import RunResult, Value
from tracetool.experiments.setting import Manifest, Setting
from tracetool.experiments.sharing import SharingOptions


def result(jain, ratio, convergence, *, source="router-counters", interval_s=40.0):
    time = Value("convergence_time", convergence, label="J >= 0.95")
    if convergence is None:
        time = Value("convergence_time", None, "not-reached", None, "J >= 0.95", 40.0)
    values = (
        Value("jain", jain, label="payload, overlap"),
        Value("throughput_ratio", ratio, label="payload, overlap"),
        Value("link_utilisation", 0.954319, label="frame, delivered, overlap"),
        Value("queue_drop_ratio", 0.000171, label=source),
        time,
        *(Value("jain_by_scale", jain, scale=scale) for scale in (1.0, 5.0)),
        Value("jain_by_scale", None, "insufficient-windows", 160.0),
        *(Value("cov_by_scale", 0.1, scale=scale, label="frame") for scale in (1.0, 5.0)),
        Value("cov_by_scale", None, "insufficient-windows", 160.0, "frame"),
    )
    rates = {"rate_bps": 4e6, "share": 0.5, "goodput_bps": 4e6}
    flows = tuple(
        {"label": f"10.0.0.{n}:1 > 10.0.1.1:520{n}", "group": "x", "start_s": 0.0, "end_s": 40.0, **rates}
        for n in (1, 2)
    )
    return RunResult(values, flows, "overlap", interval_s)


def run(delay, protocol, repetition):
    levels = (("delay", delay), ("protocol", protocol))
    setting = Setting(rate_bps=8_000_000, queue_bytes=80_000)
    return Run(levels, repetition, f"{delay}/{protocol}/{repetition}", (), (), setting)


def campaign(**changes):
    order = {"protocol": ["cubic", "bbr"]}
    runs = [
        (run("16ms", "cubic", "1"), result(0.999791, 0.971515, 25.0, **changes)),
        (run("16ms", "bbr", "1"), result(0.991, 0.9, 15.0, **changes)),
        (run("16ms", "bbr", "2"), result(0.995, 0.8, 20.0, **changes)),
        (run("162ms", "bbr", "1"), result(0.75, 0.3, None, **changes)),
        (run("162ms", "bbr", "2"), result(0.85, 0.4, 35.0, **changes)),
    ]
    return Campaign(
        Layout("x", Manifest(order=order), tuple(one for one, _ in runs)),
        SharingOptions(),
        tuple(one for _, one in runs),
    )
