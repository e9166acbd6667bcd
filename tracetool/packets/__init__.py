"""Frames to rows of `packets` and `flows`: link layers, IP, TCP options, flow numbering."""
