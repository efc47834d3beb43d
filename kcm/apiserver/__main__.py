"""Runs the API server as a process of its own: `python -m kcm.apiserver`."""

from __future__ import annotations

import sys

from kcm.interpreter import pause_collector

with pause_collector(freezes=True):
    from kcm.apiserver.command import main

if __name__ == "__main__":
    sys.exit(main())
