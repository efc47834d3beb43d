"""Runs the suite with other versions than the locked ones (`make test-newest`).

Once with the newest of everything, and once with the oldest that pyproject.toml allows of what kcm
itself needs; what only tests need is then the newest that goes with it. When tests fail, each
package that differs from the lock is put back by itself, and the failed tests are run again: so it
is said which version broke what.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from tools.lock import read_versions

ROOT = Path(__file__).parents[1]
LOCK = ROOT / "locks" / "dev.txt"
UV = (sys.executable, "-m", "uv", "pip")
_BASE = frozenset({"pip", "setuptools"})  # of the environment itself
SUITE = (
    ("-n", "logical", "tests/unit"),
    ("-n", "6", "-m", "not chaos and not long and not compose", "--ignore=tests/unit"),
)


class Environment:
    """A virtual environment of this checkout with versions of its own."""

    def __init__(self, name: str) -> None:
        self.folder = ROOT / f".venv-{name}"
        self.python = str(self.folder / "bin" / "python")

    def create(self) -> None:
        """Makes the environment anew, and empty."""
        _run(sys.executable, "-m", "venv", "--clear", str(self.folder))

    def install(self, *arguments: str) -> None:
        """Installs packages."""
        _run(*UV, "install", "--quiet", "--python", self.python, *arguments)

    def read_versions(self) -> dict[str, str]:
        """Returns the installed versions by package."""
        text = _read(*UV, "list", "--python", self.python, "--format", "freeze")
        pairs = (line.partition("==") for line in text.splitlines())
        return {name.lower().replace("_", "-"): version for name, _, version in pairs}

    def find_failures(self, arguments: Sequence[str]) -> list[str]:
        """Runs tests, shows how they go, and returns the ids of those that failed."""
        command = [self.python, "-m", "pytest", "-q", "-p", "no:cacheprovider", *arguments]
        failed: list[str] = []
        with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as process:
            assert process.stdout is not None
            for line in process.stdout:
                sys.stdout.write(line)
                sys.stdout.flush()
                status, _, rest = line.partition(" ")
                if status in {"FAILED", "ERROR"}:
                    failed.append(rest.partition(" - ")[0].strip())
        if process.returncode not in {0, 1} and not failed:
            raise SystemExit(f"test-newest: pytest ended with {process.returncode}")
        return failed


def main() -> int:
    """Runs what the arguments ask for. Returns 1 if a version broke a test."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("which", nargs="*", default=["newest", "oldest"], help="newest, oldest")
    parser.add_argument("--tests", nargs="+", help="these tests instead of the suite")
    options = parser.parse_args()
    broken = [which for which in options.which if not _try(which, options.tests)]
    return 1 if broken else 0


def _try(which: str, tests: Sequence[str] | None) -> bool:
    """Runs the suite in one environment. Reports whether all tests passed."""
    environment = Environment(which)
    environment.create()
    if which == "newest":
        environment.install("--upgrade", "-e", ".[dev]")
    else:
        environment.install("--resolution", "lowest-direct", "-e", ".[grpc]")
        environment.install("-c", str(_write_constraints(environment)), *_list_test_packages())
    differing = _compare(environment)
    _say(f"{which}: {len(differing)} packages differ from the lock")
    for name, (locked, installed) in differing.items():
        _say(f"  {name}  {locked} -> {installed}")
    suite = [tests] if tests else SUITE
    failed = [test for arguments in suite for test in environment.find_failures(arguments)]
    if not failed:
        _say(f"{which}: all tests passed")
        return True
    _blame(environment, differing, failed)
    return False


def _list_test_packages() -> list[str]:
    """Returns the names of what the extra `dev` names."""
    import tomllib  # noqa: PLC0415 - only here

    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    lines: list[str] = project["optional-dependencies"]["dev"]
    return [re.split(r"[\[<>=!~; ]", line)[0] for line in lines if not line.startswith("kcm")]


def _write_constraints(environment: Environment) -> Path:
    """Writes the installed versions down, so that what tests need does not raise them."""
    file = environment.folder / "oldest.txt"
    versions = environment.read_versions().items()
    file.write_text("".join(f"{n}=={v}\n" for n, v in versions if v and n not in _BASE))
    return file


def _compare(environment: Environment) -> dict[str, tuple[str, str]]:
    """Returns the locked and the installed version of each package for which they differ."""
    locked, installed = read_versions(LOCK), environment.read_versions()
    return {
        name: (locked[name], installed[name])
        for name in sorted({*locked, *installed})
        if name in locked and name in installed and installed[name] not in locked[name].split()
    }


def _blame(
    environment: Environment, differing: dict[str, tuple[str, str]], failed: Sequence[str]
) -> None:
    """Puts one package after the other back, and says which tests pass then."""
    left = environment.find_failures(failed)  # some may have failed by chance
    _say(f"{len(failed)} tests failed, {len(left)} of them twice")
    for name, (locked, installed) in differing.items():
        if not left:
            return
        environment.install("--no-deps", f"{name}=={locked.split()[0]}")
        still = set(environment.find_failures(left))
        for test in left:
            if test not in still:
                _say(f"{name} {installed} breaks {test}: it passes with {locked}")
        environment.install("--no-deps", f"{name}=={installed}")
        left = [test for test in left if test in still]
    for test in left:
        _say(f"no version alone breaks {test}")


def _run(*command: str) -> None:
    subprocess.run(command, cwd=ROOT, check=True)


def _read(*command: str) -> str:
    return subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout


def _say(text: str) -> None:
    print(f"test-newest: {text}", flush=True)  # noqa: T201 - the output of this program


if __name__ == "__main__":
    raise SystemExit(main())
