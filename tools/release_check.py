"""Builds kcm as for a release and tries the result as a stranger would (`make release-check`).

Builds the source distribution and the wheel, lets twine check both, compares the wheel's files
with the source tree, installs the wheel with its dependencies into an empty environment, and starts
`kcm up` from it in an empty folder with the example controller. Creates one object, waits until its
pods run and the controller has deleted it, and stops everything. Prints each step; exits with 1 and
the reason when one fails.
"""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
import venv
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).parents[1]
PACKAGES = ("kcm", "workers")
READY = "Ctrl-C stops it all"
EXAMPLE = ROOT / "examples" / "05-controller" / "expiry.py"
PATIENCE = 120.0  # seconds for `kcm up` to be ready, for its pods to run, and for its end
REPLICA_SET = """
apiVersion: apps/v1
kind: ReplicaSet
metadata: {name: web}
spec:
  replicas: 2
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: web, image: "nginx:1.27"}]}
"""


EXPIRY = '{example.com/expires-after: "1s"}'


class CheckFailedError(Exception):
    """A step of the check failed; the message says which and why."""


def main() -> int:
    with tempfile.TemporaryDirectory(prefix="kcm-release-") as name:
        folder = Path(name)
        try:
            wheel = build(folder / "dist")
            check_contents(wheel)
            try_wheel(wheel, folder)
        except (CheckFailedError, subprocess.CalledProcessError) as error:
            say(f"failed: {error}")
            return 1
    say("all is well")
    return 0


def say(text: str) -> None:
    print(f"release-check: {text}", flush=True)  # noqa: T201 - the output of this program


def build(dist: Path) -> Path:
    """Builds both distributions and checks their metadata; returns the wheel's path."""
    say("building")
    run(sys.executable, "-m", "build", "--outdir", str(dist), str(ROOT))
    run(sys.executable, "-m", "twine", "check", "--strict", *map(str, dist.iterdir()))
    (wheel,) = dist.glob("*.whl")
    return wheel


def check_contents(wheel: Path) -> None:
    """Raises CheckFailedError unless the wheel has exactly the packages' files, and the licence."""
    say("comparing the wheel with the source")
    with zipfile.ZipFile(wheel) as archive:
        names = {name for name in archive.namelist() if not name.endswith("/")}
    expected = {"beat_schedule.py", *source_files()}
    packed = {name for name in names if ".dist-info/" not in name}
    if missing := sorted(expected - packed):
        lacking = ", ".join(missing)
        raise CheckFailedError(f"the wheel lacks {lacking}: see package-data in pyproject.toml")
    if added := sorted(packed - expected):
        raise CheckFailedError(f"the wheel has what the source has not: {', '.join(added)}")
    if not any(name.endswith("/licenses/LICENSE") for name in names):
        raise CheckFailedError("the wheel lacks its LICENSE")


def source_files() -> Iterator[str]:
    """Yields the files of the packages, data files included, by their paths from the root."""
    for package in PACKAGES:
        for path in (ROOT / package).rglob("*"):
            if path.is_file() and "__pycache__" not in path.parts:
                yield path.relative_to(ROOT).as_posix()


def try_wheel(wheel: Path, folder: Path) -> None:
    """Installs the wheel into an empty environment and lets kcm bring up two pods."""
    say("installing the wheel")
    venv.create(folder / "venv", with_pip=True)
    programs = folder / "venv" / "bin"
    run(str(programs / "python"), "-m", "pip", "install", "--quiet", str(wheel))
    say("starting kcm up")
    with kcm_up(programs, folder):
        say("creating a ReplicaSet")
        kcm = str(programs / "kcm")
        run(kcm, "apply", "-f", "-", cwd=folder, text=REPLICA_SET)
        wait(lambda: read(kcm, "get", "pods", cwd=folder).count("Running") == 2, "pods do not run")
        say("waiting for the example controller")
        expiring = REPLICA_SET.replace("name: web}", f"name: web, annotations: {EXPIRY}}}", 1)
        run(kcm, "apply", "-f", "-", cwd=folder, text=expiring)
        wait(lambda: "web" not in read(kcm, "get", "pods", cwd=folder), "pods are not deleted")


@contextmanager
def kcm_up(programs: Path, folder: Path) -> Iterator[None]:
    """Runs `kcm up` in `folder`, and stops it as Ctrl-C does. Raises CheckFailedError."""
    log = folder / "up.log"
    ports = ("--health-port", "--flower-port", "--api-port")
    command = [str(programs / "kcm"), "up"]
    command += [word for flag in ports for word in (flag, str(free_port()))]
    command += ["--", "--controller-module", str(EXAMPLE)]
    with log.open("wb") as out:
        process = subprocess.Popen(
            command, cwd=folder, env=clean_environment(), stdout=out, stderr=out
        )
    try:
        wait(lambda: READY in log.read_text() or process.poll() is not None, "kcm up is not ready")
        if process.poll() is not None:
            raise CheckFailedError(f"kcm up ended:\n{log.read_text()}")
        yield
        say("stopping")
        process.send_signal(signal.SIGINT)
        if code := process.wait(PATIENCE):
            raise CheckFailedError(f"kcm up exited with {code}:\n{log.read_text()}")
    finally:
        if process.poll() is None:
            process.terminate()
            process.wait(PATIENCE)


def wait(condition: Callable[[], bool], failure: str) -> None:
    """Waits until `condition()` is true. Raises CheckFailedError with `failure` after PATIENCE."""
    deadline = time.monotonic() + PATIENCE
    while not condition():
        if time.monotonic() > deadline:
            raise CheckFailedError(f"{failure} after {PATIENCE:g} s")
        time.sleep(0.2)


def run(*command: str, cwd: Path | None = None, text: str | None = None) -> None:
    """Runs a command to its end. Raises CheckFailedError with its output."""
    done = subprocess.run(
        command,
        cwd=cwd,
        env=clean_environment(),
        input=text,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    if done.returncode:
        raise CheckFailedError(f"{' '.join(command)} exited with {done.returncode}:\n{done.stdout}")


def read(*command: str, cwd: Path) -> str:
    """Returns what a command prints. Raises CalledProcessError."""
    done = subprocess.run(
        command, cwd=cwd, env=clean_environment(), capture_output=True, text=True, check=True
    )
    return done.stdout


def clean_environment() -> dict[str, str]:
    """Returns the environment without what points to this checkout or to another kcm."""
    left_out = ("KCM_", "PYTHON", "VIRTUAL_ENV")
    return {name: v for name, v in os.environ.items() if not name.startswith(left_out)}


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


if __name__ == "__main__":
    sys.exit(main())
