"""Fixtures of the tests with real containers, which skip with a word where there can be none."""

from __future__ import annotations

import json
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.containers import registry
from tests.containers.cluster import Cluster
from tests.containers.machine import find_missing
from tests.scenarios.system import KUBECTL

FLAGS = (
    "--container-log-max-size=8Ki", "--container-log-monitor-interval=0.5s", "--sync-frequency=3s",
)  # fmt: skip


def start(*flags: str) -> Iterator[Cluster]:
    missing = find_missing() or ("" if KUBECTL else "needs kubectl, see KCM_KUBECTL_DIR")
    if missing:
        pytest.skip(missing)
    folder = Path(tempfile.mkdtemp(prefix="kcm-ct-"))  # short: it holds a socket
    folder.chmod(0o711)  # containers with users of their own pass through it
    if flags:
        flags = (*flags, f"--allowed-host-paths={folder / 'host'}", *_write_plugin(folder))
        (folder / "host").mkdir()
    cluster = Cluster(folder, *flags)
    try:
        cluster.start()
        yield cluster
    finally:
        cluster.stop()
        shutil.rmtree(folder, ignore_errors=True)


def _write_plugin(folder: Path) -> list[str]:
    """Writes a plugin that knows the registry's password; returns the kubelet's flags for it."""
    kind = {"apiVersion": "credentialprovider.kubelet.k8s.io/v1"}
    auth = {"127.0.0.1:5000": {"username": registry.USER, "password": registry.PASSWORD}}
    answer = json.dumps({**kind, "kind": "CredentialProviderResponse", "cacheKeyType": "Global",
                         "cacheDuration": "1h", "auth": auth})  # fmt: skip
    (folder / "login").write_text(f"#!/bin/sh\ncat <<'END'\n{answer}\nEND\n")
    (folder / "login").chmod(0o755)
    provider = {
        **kind,
        "name": "login",
        "matchImages": ["127.0.0.1:5000"],
        "defaultCacheDuration": "0s",
    }
    config = {"apiVersion": "kubelet.config.k8s.io/v1", "kind": "CredentialProviderConfig",
              "providers": [provider]}  # fmt: skip
    (folder / "login.json").write_text(json.dumps(config))
    flag = "--image-credential-provider"
    return [f"{flag}-config={folder / 'login.json'}", f"{flag}-bin-dir={folder}"]


@pytest.fixture(scope="session")
def cluster() -> Iterator[Cluster]:
    """Gives `kcm up` with a node of containers, one per test process."""
    yield from start()


@pytest.fixture(scope="session")
def node() -> Iterator[Cluster]:
    """Gives the same with a kubelet that can be killed and started, and that has short times."""
    yield from start(*FLAGS)
