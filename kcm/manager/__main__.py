"""Runs the manager as a process: `python -m kcm.manager`."""

from __future__ import annotations

import sys

from kcm.interpreter import pause_collector

with pause_collector(freezes=True):
    from kcm.manager.command import main

if __name__ == "__main__":
    sys.exit(main())
