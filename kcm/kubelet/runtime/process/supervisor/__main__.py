"""Run as `python -I -S -E <this file> <folder>` with a launch record on standard input.

The folder is the container's. It writes one reply to standard output: "ok", or why the container
could not be started.
"""

from __future__ import annotations

import sys

sys.path.insert(0, __file__.rsplit("/", 6)[0])

from kcm.kubelet.runtime.process.supervisor.loop import main

if __name__ == "__main__":
    main(sys.argv[1])
