"""Runs the command line after everything slow is loaded and told, so that a kill meets the work and not the imports."""

from __future__ import annotations

import sys

import polars as pl  # noqa: F401
import pyarrow.parquet  # noqa: F401

import tracetool.cli
import tracetool.ingest
import tracetool.kernels.decode
import tracetool.parsers.pcap
import tracetool.parsers.tcp_probe
import tracetool.reconstruct.driver

if __name__ == "__main__":
    print("ready", flush=True)  # noqa: T201 - what the test waits for
    sys.argv[0] = "tracetool"
    tracetool.cli.main()
