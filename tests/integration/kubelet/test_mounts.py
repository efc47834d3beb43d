"""Read-only mounts, where the tests' user may create mount namespaces."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from kcm.kubelet.cri import Mount
from tests.integration.kubelet.runtimes import RealRuntime

ALLOWED = (
    shutil.which("unshare")
    and not subprocess.run(["unshare", "-m", "true"], capture_output=True, check=False).returncode
)
pytestmark = pytest.mark.skipif(not ALLOWED, reason="mount namespaces are not allowed here")

TRY = "cat fixed/file; echo new >> fixed/file || echo refused; echo x > open/made && echo made"


@pytest.fixture
def volume(tmp_path: Path) -> Callable[[str], Path]:
    def make(name: str) -> Path:
        folder = tmp_path / name
        folder.mkdir()
        (folder / "file").write_text("content\n")
        return folder

    return make


def test_a_read_only_mount_is_read_and_not_written(
    real: RealRuntime, volume: Callable[[str], Path]
) -> None:
    fixed, path = volume("one"), volume("two")
    mounts = [Mount(str(fixed), "/fixed", read_only=True), Mount(str(path), "/open")]
    container = real.shell(TRY, mounts=mounts)
    assert real.wait_for_end(container).exit_code == 0
    assert [line for line in real.output(container) if "Read-only" not in line] == [
        "content", "refused", "made",
    ]  # fmt: skip
    assert (fixed / "file").read_text() == "content\n"


def test_a_command_run_in_the_container_may_not_write_either(
    real: RealRuntime, volume: Callable[[str], Path]
) -> None:
    mounts = [Mount(str(volume("one")), "/fixed", read_only=True)]
    container = real.start("sleep", "1000", mounts=mounts)
    ran = real.runtime.exec_sync(container, ["sh", "-c", "echo x > fixed/file"], 20)
    assert ran.exit_code != 0
    assert real.runtime.exec_sync(container, ["cat", "fixed/file"], 20).stdout == b"content\n"


def test_what_others_write_is_seen(real: RealRuntime, volume: Callable[[str], Path]) -> None:
    shared = volume("one")
    reader = real.start("sleep", "1000", mounts=[Mount(str(shared), "/data", read_only=True)])
    writer = real.shell("echo new > data/later", mounts=[Mount(str(shared), "/data")])
    assert real.wait_for_end(writer).exit_code == 0
    assert real.runtime.exec_sync(reader, ["cat", "data/later"], 20).stdout == b"new\n"
    (shared / "newer").write_text("of the host")
    os.replace(shared / "newer", shared / "file")
    assert real.runtime.exec_sync(reader, ["cat", "data/file"], 20).stdout == b"of the host"


def test_the_machine_has_no_mount_more(real: RealRuntime, volume: Callable[[str], Path]) -> None:
    before = Path("/proc/self/mountinfo").read_text()
    folder = volume("one")
    real.start("sleep", "1000", mounts=[Mount(str(folder), "/data", read_only=True)])
    assert Path("/proc/self/mountinfo").read_text() == before
    shutil.rmtree(folder)
    assert not folder.exists()


LIST_SECRETS = "cd /var/run/secrets; find . -type f | sort; cat kubernetes.io/serviceaccount/file"


def test_secrets_are_at_the_path_where_libraries_look(
    real: RealRuntime, volume: Callable[[str], Path]
) -> None:
    token, other = volume("token"), volume("other")
    before = os.listdir("/run/secrets") if os.path.isdir("/run/secrets") else []
    mounts = [
        Mount(str(token), "/var/run/secrets/kubernetes.io/serviceaccount", read_only=True),
        Mount(str(other), "/run/secrets/vault"),
    ]
    container = real.shell(f"{LIST_SECRETS}; echo x > vault/new", mounts=mounts)
    assert real.wait_for_end(container).exit_code == 0
    assert real.output(container) == [
        "./kubernetes.io/serviceaccount/file",
        "./vault/file",
        "content",
    ]
    assert (other / "new").exists()
    assert (token / "file").read_text() == "content\n"
    assert os.listdir("/run/secrets") == before


def test_secrets_are_read_only_where_the_pod_says_so(
    real: RealRuntime, volume: Callable[[str], Path]
) -> None:
    token = volume("token")
    path = "/var/run/secrets/kubernetes.io/serviceaccount"
    container = real.start("sleep", "1000", mounts=[Mount(str(token), path, read_only=True)])
    ran = real.runtime.exec_sync(container, ["sh", "-c", f"echo x > {path}/file"], 20)
    assert ran.exit_code != 0
    (token / "file").write_text("renewed")
    assert real.runtime.exec_sync(container, ["cat", f"{path}/file"], 20).stdout == b"renewed"
