"""What runs for long: the shape of a loop, and the hosts that run loops (design 0047)."""

from kcm.loops.host import Host, contain
from kcm.loops.loop import NEVER, Loop, Turn
from kcm.loops.stepped import StepHost
from kcm.loops.threads import ThreadHost, start_thread

__all__ = ["NEVER", "Host", "Loop", "StepHost", "ThreadHost", "Turn", "contain", "start_thread"]
