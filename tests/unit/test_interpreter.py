"""The interpreter's settings."""

from __future__ import annotations

import subprocess
import sys

# What is registered first comes last, with what is left to the interpreter's own end.
LEFT = """
import atexit, gc
atexit.register(lambda: print(len(gc.get_objects()) < 1000))
from kcm.interpreter import end_quickly
end_quickly()
held = [{"me": []} for _ in range(10_000)]
for each in held:
    each["me"].append(each)
"""


def test_a_process_that_ends_looks_through_nothing_that_it_holds() -> None:
    ran = subprocess.run([sys.executable, "-c", LEFT], capture_output=True, text=True, check=True)
    assert ran.stdout.strip() == "True"


PAUSED = """
import gc
from kcm.interpreter import pause_collector
with pause_collector(freezes=True):
    held = [[] for _ in range(10_000)]
later = [[] for _ in range(1_000)]
print(gc.isenabled(), gc.get_freeze_count() > 10_000, len(gc.get_objects()) < 2_000)
"""


def test_what_is_imported_while_the_collector_pauses_is_never_traversed() -> None:
    ran = subprocess.run([sys.executable, "-c", PAUSED], capture_output=True, text=True, check=True)
    assert ran.stdout.strip() == "True True True"
