"""`python -m kcm.manager`: the manager as a process of its own."""

from __future__ import annotations

import signal
import sys
import threading

from kcm.manager.context import build_context
from kcm.manager.logs import configure
from kcm.manager.manager import Manager


def main() -> int:
    context = build_context()
    configure(context.settings.log_format, context.settings.log_level)
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: context.stop.set())
    if "--stop-with-stdin" in sys.argv:
        threading.Thread(target=lambda: (sys.stdin.read(), context.stop.set()), daemon=True).start()
    manager = Manager(context)
    manager.start()
    context.stop.wait()
    manager.stop()
    return 0


if __name__ == "__main__":
    sys.exit(main())
