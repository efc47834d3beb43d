"""Settings of the Python interpreter for processes with large caches.

For 1,000 pods created by one ReplicaSet, on two cores with two child processes, the defaults took
520 ms and these take 290 ms.
"""

from __future__ import annotations

import atexit
import gc
import sys
from collections.abc import Iterator
from contextlib import contextmanager

# Cached objects are many small containers without cycles. With the defaults, the middle and full
# collections traverse whole caches again and again while these fill; rare collections still find
# the cycles that exceptions leave. The young collections stay small: each object is traversed once
# in any case, but a collection of 100,000 objects stops the process for longer (bench watch.p99,
# alternating, on a busy machine: 10 and 14 ms with 100,000, 5 and 6 ms with 2,000; 5,000 is as good
# as 2,000). A middle one, too, stays below 100,000 objects: each object is traversed once in it in
# any case (3 million small objects: 6 ms at most with 50, 170 ms with 1,000, the same in total).
GC_THRESHOLDS = (2_000, 50, 2_000)

# Seconds. A thread that syncs releases the interpreter at every call to Redis; with the default of
# 5 ms, the thread that fills the caches then keeps it for that long.
SWITCH_INTERVAL = 0.0005


def tune() -> None:
    """Applies these settings to this process."""
    gc.set_threshold(*GC_THRESHOLDS)
    sys.setswitchinterval(SWITCH_INTERVAL)
    end_quickly()


@contextmanager
def pause_collector(*, freezes: bool = False) -> Iterator[None]:
    """Disables the garbage collector in the block, which is for imports.

    Imports create only objects that stay; traversing these again and again takes a tenth of their
    time. A program whose imports are all in the block `freezes` them: the first collection after it
    would traverse them once more, in 60 ms for all of the API server's. In a fork, they also stay
    shared, since a collection writes to what it visits.
    """
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if freezes:
            gc.freeze()
        if was_enabled:
            gc.enable()


def end_quickly() -> None:
    """Keeps the interpreter from searching for cycles when it exits.

    The search traverses all objects several times: it takes 1.2 s for 600,000 small objects. With
    `kcm up` several processes exit at once, and are killed after 3.7 s.
    """
    atexit.register(gc.freeze)
