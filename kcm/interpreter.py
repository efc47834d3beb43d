"""Settings of the Python interpreter that processes with large caches need.

Measured on two cores with 1,000 pods created by one ReplicaSet: the defaults
took 520 ms, these take 290 ms (prefork, two children).
"""

from __future__ import annotations

import atexit
import gc
import sys

# Cached objects are many small containers without cycles. With the defaults the
# middle and full collections walk whole caches over and over while they fill;
# rare ones still find the cycles that exceptions leave. The young ones stay
# small: each object is looked at once either way, but a pass over 100,000 stops
# the process for longer (bench watch.p99, taking turns on a busy machine: 10 and
# 14 ms with 100,000, 5 and 6 ms with 2,000; 5,000 is as good as 2,000).
GC_THRESHOLDS = (2_000, 1_000, 100)

# Seconds. A sync thread gives the interpreter up at every call to Redis; with
# the default of 5 ms, the thread that fills the caches keeps it that long.
SWITCH_INTERVAL = 0.0005


def tune() -> None:
    """Apply these settings to this process."""
    gc.set_threshold(*GC_THRESHOLDS)
    sys.setswitchinterval(SWITCH_INTERVAL)
    end_quickly()


def end_quickly() -> None:
    """Let the interpreter's end look for no cycles: what is left goes with the process.

    That search goes through all that a process holds, several times: 1.2 s for 600,000 small
    objects, and several of them end at once with `kcm up`, which kills after 3.7 s.
    """
    atexit.register(gc.freeze)
