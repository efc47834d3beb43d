"""The images of the composition, built from the Dockerfile.

Where no registry can be reached, stand-ins for the base images are made from Debian's
packages; they have the same names on this machine only, and are only made if nobody pulled the
real ones. They take over this machine's certificates and pip configuration, for a machine
without a registry often has a mirror.
"""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

from tests.compose.engine import ROOT, Engine, NoEngineError

PYTHON, REDIS = "docker.io/library/python:3.13-slim", "docker.io/library/redis:7.4-alpine"
HAPROXY = "docker.io/library/haproxy:3.0-alpine"
_PACKAGES = "python3,python3-venv,python3-pip,redis-server,haproxy,wget,ca-certificates"
_CERTIFICATES = Path("/etc/ssl/certs/ca-certificates.crt")
_PIP = Path("/etc/pip.conf")


def build(engine: Engine, folder: Path) -> None:
    """Builds all images. Raises NoEngineError, AssertionError."""
    if engine.name == "docker":
        engine.compose("build")
        engine.of("docker-compose.ha.yml", "kcm-ha").compose("build", "haproxy")
        return
    missing = [image for image in (PYTHON, REDIS, HAPROXY) if not _is_there(image)]
    if missing:
        _stand_in(missing, folder)
    built = {"kcm": "kcm:0.2.0", "redis": "kcm-redis:0.2.0", "haproxy": "kcm-haproxy:0.2.0"}
    for target, image in built.items():
        # On the machine's own network: the composition's has no way out.
        command = ["podman", "build", "--network=host", "--target", target, "-t", image, "."]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr


def _is_there(image: str) -> bool:
    if subprocess.run(["podman", "image", "exists", image], check=False).returncode == 0:
        return True
    pulled = subprocess.run(["podman", "pull", image], capture_output=True, check=False)
    return pulled.returncode == 0


def _stand_in(images: list[str], folder: Path) -> None:
    if not shutil.which("debootstrap"):
        raise NoEngineError(
            f"{', '.join(images)} cannot be pulled: log in to a registry, or "
            "apt-get install debootstrap for stand-ins from Debian's packages"
        )
    root = folder / "debian"
    command = ["debootstrap", "--variant=minbase", f"--include={_PACKAGES}", "trixie", str(root)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    (root / "usr/bin/python").symlink_to("python3")
    (root / "usr/lib/python3.13/EXTERNALLY-MANAGED").unlink(missing_ok=True)
    if _CERTIFICATES.exists():
        shutil.copy(_CERTIFICATES, root / str(_CERTIFICATES).lstrip("/"))
    if _PIP.exists():
        shutil.copy(_PIP, root / str(_PIP).lstrip("/"))
    for image in images:
        with subprocess.Popen(["tar", "-C", root, "-c", "."], stdout=subprocess.PIPE) as tar:
            # Debian's own packages of Python, such as packaging, cannot be replaced, only hidden.
            variables = [f"ENV PIP_CERT={_CERTIFICATES}", "ENV PIP_IGNORE_INSTALLED=1"]
            changes = [part for variable in variables for part in ("--change", variable)]
            command = ["podman", "import", *changes, "-", image]
            subprocess.run(command, stdin=tar.stdout, capture_output=True, check=True)
