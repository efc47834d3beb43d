"""The commands of docs/access.md do what it says."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from kcm.redisio.embedded import EmbeddedServer
from kcm.testing.waiting import until
from tests.docs.pages import ROOT, blocks
from tests.integration.apiserver.kubectl import VERSIONS, find

# `kcm up` of the page, as far as it matters here: its flags, any port.
KCM = """#!/bin/sh
shift
"{python}" -m kcm.apiserver --port 0 "$@" > apiserver.log 2>&1 &
echo $! > pid
"""
SHELL = [block.text for block in blocks(ROOT / "docs" / "access.md", "sh")]


def find_command(words: str) -> str:
    """Returns the block of the page that has these words."""
    (text,) = [text for text in SHELL if words in text]
    return text


class Place:
    """The folder in which a reader follows the document."""

    def __init__(self, redis: EmbeddedServer, kubectl: str) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="kcm-howto-"))
        programs = self.folder / "bin"
        programs.mkdir()
        (programs / "kubectl").symlink_to(kubectl)
        (programs / "kcm").write_text(KCM.format(python=sys.executable))
        (programs / "kcm").chmod(0o755)
        self._env = {
            "PATH": f"{programs}:{os.environ['PATH']}", "HOME": str(self.folder),
            "PYTHONPATH": str(ROOT), "KCM_REDIS_URL": redis.url,
            "KCM_STATE_DIR": str(self.folder / ".kcm"), "KCM_PREFIX": self.folder.name,
        }  # fmt: skip

    def run(self, text: str) -> str:
        done = subprocess.run(
            ["sh", "-e", "-c", text], cwd=self.folder, env=self._env, timeout=60,
            capture_output=True, text=True, check=False,
        )  # fmt: skip
        log = self.folder / "apiserver.log"
        assert done.returncode == 0, f"{done.stderr}{log.read_text() if log.exists() else ''}"
        return done.stdout

    def wait(self) -> None:
        ready = "kubectl --kubeconfig .kcm/kubeconfig get --raw /readyz || echo no"
        until((self.folder / ".kcm" / "kubeconfig").exists, "the kubeconfig")
        until(lambda: self.run(ready) == "ok", "the server")

    def end(self) -> None:
        pid = self.folder / "pid"
        if pid.exists():
            os.kill(int(pid.read_text()), signal.SIGTERM)
        shutil.rmtree(self.folder, ignore_errors=True)


@pytest.fixture(params=VERSIONS)
def place(request: pytest.FixtureRequest, redis_server: EmbeddedServer) -> Iterator[Place]:
    binary = find(request.param)
    if binary is None or shutil.which("openssl") is None:
        pytest.skip(f"kubectl.{request.param} or openssl is not here")
    new_place = Place(redis_server, binary)
    yield new_place
    new_place.end()


def test_a_read_only_user(place: Place) -> None:
    place.run(find_command("--token-auth-file users.csv"))
    place.wait()
    place.run(find_command("create clusterrolebinding jane-views"))
    output = place.run(find_command("she may not"))
    assert "jane" in output
    assert output.endswith("no\nshe may not\n")
    kubeconfig = place.folder / "jane.kubeconfig"
    token = (place.folder / ".kcm" / "apiserver-token").read_text().strip()
    assert token not in kubeconfig.read_text()
    assert kubeconfig.stat().st_mode & 0o077 == 0


def test_a_user_with_a_certificate(place: Place) -> None:
    place.run(find_command("--client-ca-file people.crt"))
    place.wait()
    output = place.run(find_command("--client-certificate=erin.crt"))
    assert "erin" in output
    assert "[dev system:authenticated]" in output
    token = (place.folder / ".kcm" / "apiserver-token").read_text().strip()
    assert token not in (place.folder / "erin.kubeconfig").read_text()
