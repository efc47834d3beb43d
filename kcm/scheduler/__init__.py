"""The scheduler: `controller` is its entry, `passes` one pass, and the rest are its pure parts.

`snapshot` follows nodes and pods, `queue` says which pods are tried, `placer` finds their nodes
with the filters and scores of `template`, `preemption` makes room, and `decisions` turns the
results into writes.
"""

from kcm.scheduler.controller import SchedulerController
from kcm.scheduler.options import SchedulerOptions

__all__ = ["SchedulerController", "SchedulerOptions"]
