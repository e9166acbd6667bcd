"""Kernels that are in the cache are linked when they are first called: by many threads at once, too."""

from __future__ import annotations

import subprocess
import sys

import numpy as np

from tracetool.kernels import departures

SCRIPT = """
import threading
import numpy as np
from tracetool.kernels import departures

time, order = np.arange(4000), np.empty(4000, np.int64)
start, done = threading.Barrier(8), []

def call():
    mine = order.copy()
    start.wait()
    done.append(departures.in_order(time, time % 2 == 0, time, mine) and (mine == time).all())

threads = [threading.Thread(target=call) for _ in range(8)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
assert len(done) == 8 and all(done)
"""


def test_a_cached_kernel_is_linked_once_by_many_threads():
    some = np.arange(4)
    departures.in_order(some, some > 1, some, some.copy())  # now it is in the cache
    for _ in range(3):
        done = subprocess.run([sys.executable, "-c", SCRIPT], capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
