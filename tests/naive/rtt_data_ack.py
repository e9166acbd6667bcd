"""Slow, obvious twin of tracetool/kernels/rtt_data_ack.py."""

from __future__ import annotations


def rtt_data_ack(rows):
    """Rows are (is_ack, time, start, end); returns samples and the counts of segments without one."""
    segments, samples = [], []
    cumulative = nosample = ambiguous = 0
    for is_ack, time, start, end in rows:
        if not is_ack:
            highest = max((s["end"] for s in segments), default=None)
            for s in segments:
                if not s["done"] and s["start"] < end and s["end"] > start:
                    s["sent"].append(time)
            if highest is None or end > highest:
                first = start if highest is None else max(start, highest)
                segments.append({"start": first, "end": end, "sent": [time], "done": False})
            continue
        fresh = [s for s in segments if not s["done"] and s["end"] <= end]
        for position, s in enumerate(fresh):
            s["done"] = True
            resent_before = [earlier["sent"][-1] for earlier in fresh[:position] if len(earlier["sent"]) > 1]
            if s["end"] != end:
                cumulative += 1
            elif len(s["sent"]) > 1:
                ambiguous += 1
            elif any(again > s["sent"][0] for again in resent_before):
                nosample += 1
            else:
                samples.append(time - s["sent"][0])
    return samples, cumulative, nosample, ambiguous
