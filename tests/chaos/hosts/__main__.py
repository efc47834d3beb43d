"""Breaks kcm on three hosts again and again, and checks that nothing is doubled or lost.

    python -m tests.chaos.hosts --seed=1 --faults 300 --durability replicated

Each host is a network namespace with a Redis and a sentinel; two of them have an API server, two a
worker and a manager, two a beat. The seed draws the faults. After each round of one to three, all
is right again without a manual step, or the run fails: every acknowledged write is stored, and what
was deleted is gone; no resourceVersion is given twice; no key was synced twice at once; ReplicaSets
have exactly their pods; and the caches of three watchers have exactly what is stored.
"""

from __future__ import annotations

import argparse
import shutil
import signal
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from kcm.logs import configure
from tests.chaos.hosts.network import enter_namespaces, find_missing
from tests.chaos.hosts.rig import Rig
from tests.chaos.hosts.run import Failure, Run


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--faults", type=int, default=300)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--durability", choices=("local", "replicated"), default="replicated")
    parser.add_argument("--folder", type=Path, help="keep all logs here")
    options = parser.parse_args(arguments)
    folder = options.folder or Path(tempfile.mkdtemp(prefix="kcm-hosts-"))
    folder.mkdir(exist_ok=True)
    command = [sys.executable, "-m", "tests.chaos.hosts", *arguments, "--folder", str(folder)]
    try:
        status = enter_namespaces(command)
        return break_hosts(folder, options) if status is None else status
    finally:
        if options.folder is None:
            shutil.rmtree(folder, ignore_errors=True)


def break_hosts(folder: Path, options: argparse.Namespace) -> int:
    """Runs everything within the namespaces. Returns the exit status."""
    configure("console", "error")  # of the clients in this process
    rig = Rig(folder, options.durability)
    try:
        rig.start()
        run = Run(rig, options.seed)
        try:
            run.prepare()
            run.break_all(options.faults)
        except (Failure, AssertionError) as error:
            run.wrong.append(f"{error}\n{rig.tell_logs()}")
        say = print
        say(f"{options.durability}, seed {options.seed}: {run.end()}")
        for text in run.wrong:
            say(f"WRONG: {text}")
        say(f"{len(run.wrong)} wrong", flush=True)
        return 1 if run.wrong else 0
    finally:
        rig.stop()


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # after the namespaces were ended
    missing = find_missing()
    sys.exit(missing or main(sys.argv[1:]))
