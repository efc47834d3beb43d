"""`python -m kcm.apiserver` as a process of its own."""

from __future__ import annotations

import os
import ssl
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import yaml

from kcm.redisio.embedded import EmbeddedServer
from kcm.testing.waiting import until


def environment(redis_server: EmbeddedServer, folder: Path) -> dict[str, str]:
    return {
        **os.environ,
        "KCM_REDIS_URL": redis_server.url,
        "KCM_STATE_DIR": str(folder),
        "KCM_PREFIX": f"cmd-{folder.name}",
    }


def command(*flags: str) -> list[str]:
    return [sys.executable, "-m", "kcm.apiserver", *flags]


@contextmanager
def start(
    redis_server: EmbeddedServer, folder: Path, *flags: str
) -> Iterator[tuple[subprocess.Popen[bytes], httpx.Client]]:
    """Gives the process of an API server, and a client with the credentials of its kubeconfig."""
    env = environment(redis_server, folder)
    process = subprocess.Popen(command("--port", "0", *flags), env=env, stdout=subprocess.DEVNULL)
    try:
        with client_of(folder / "kubeconfig") as client:
            yield process, client
    finally:
        process.kill()
        process.wait()


def client_of(kubeconfig: Path) -> httpx.Client:
    until(kubeconfig.exists, "the kubeconfig")
    config = yaml.safe_load(kubeconfig.read_text())
    url = config["clusters"][0]["cluster"]["server"]
    token = config["users"][0]["user"]["token"]
    certificate = kubeconfig.with_name("apiserver.crt")
    verify = ssl.create_default_context(cafile=str(certificate)) if "https" in url else False
    return httpx.Client(base_url=url, verify=verify, headers={"authorization": f"Bearer {token}"})
