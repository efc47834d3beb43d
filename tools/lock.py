"""Writes down what is installed (`make lock`): every package, direct and not, with hashes.

`locks/kcm.txt` is for users of the image, `locks/dev.txt` for `make install`. Both hold for every
platform and every Python that kcm supports. Prints the versions that have changed, which is the
diff to read: the hashes are for pip.
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
LOCKS = {"kcm.txt": (), "dev.txt": ("--extra", "dev")}
_PINNED = re.compile(r"^([A-Za-z0-9._-]+)(?:\[[^]]*\])?==([^\s;]+)", re.MULTILINE)


def read_versions(lock: Path) -> dict[str, str]:
    """Returns the locked versions by package, {} if there is no lock. Where platforms or Pythons
    differ, the versions are joined.
    """
    versions: dict[str, list[str]] = {}
    for name, version in _PINNED.findall(lock.read_text() if lock.exists() else ""):
        versions.setdefault(name, []).append(version)
    return {name: " ".join(sorted(found)) for name, found in versions.items()}


def render_changes(before: dict[str, str], after: dict[str, str]) -> list[str]:
    """Returns a line for each package whose version differs."""
    return [
        f"  {name}  {before.get(name, 'absent')} -> {after.get(name, 'absent')}"
        for name in sorted({*before, *after})
        if before.get(name) != after.get(name)
    ]


def main() -> int:
    """Renews both locks. Returns the exit code."""
    for name, extra in LOCKS.items():
        lock = ROOT / "locks" / name
        lock.parent.mkdir(exist_ok=True)
        before = read_versions(lock)
        subprocess.run(
            [
                *(sys.executable, "-m", "uv", "pip", "compile", "--quiet", "--upgrade"),
                *("--universal", "--python-version", "3.11", "--generate-hashes"),
                # pip looks at newer releases for `coverage[toml]` when only `coverage` is pinned,
                # and then refuses to install anything.
                "--no-strip-extras",
                *("--custom-compile-command", "make lock", *extra),
                *("--output-file", str(lock), "pyproject.toml"),
            ],
            cwd=ROOT,
            check=True,
            stdout=subprocess.DEVNULL,
        )
        changes = render_changes(before, read_versions(lock))
        print(f"locks/{name}: {len(changes)} changes")  # noqa: T201 - the output of this program
        print("\n".join(changes), end="\n" if changes else "")  # noqa: T201 - as above
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
