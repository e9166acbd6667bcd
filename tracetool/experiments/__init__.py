"""Fairness of flows that share a bottleneck: one set of captures, or a folder of runs.

Stands between `tracetool.metrics`, whose functions it applies, and `tracetool.report`, which draws what it returns.
"""
