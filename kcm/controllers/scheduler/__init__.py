"""The scheduler: `controller` is its controller, `passes` runs one pass, the rest are pure parts.

`snapshot` follows nodes and pods, `queue` chooses the pods to try, `placer` finds nodes for them
with the filters and scores of `template`, `preemption` chooses victims, and `decisions` turns the
results into writes.
"""

from kcm.controllers.scheduler.controller import SchedulerController
from kcm.controllers.scheduler.options import SchedulerOptions

__all__ = ["SchedulerController", "SchedulerOptions"]
