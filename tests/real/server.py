"""A real kube-apiserver over a real etcd, whose binaries the environment names."""

from __future__ import annotations

import os
import ssl
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import IO

import httpx
import yaml
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa

from kcm.testing.waiting import until
from tests.ports import free_port
from tests.real.client import Api
from tests.signing_requests import write_authority

APISERVER, ETCD = "KCM_REAL_APISERVER", "KCM_REAL_ETCD"
TOKEN, MANAGER_TOKEN = "real-admin", "real-manager"


def missing_binaries() -> str:
    """Returns why the tests cannot run, "" if they can."""
    unset = [name for name in (APISERVER, ETCD) if not os.access(os.environ.get(name, ""), os.X_OK)]
    if not unset:
        return ""
    return f"{' and '.join(unset)} must name the binaries of kube-apiserver and etcd"


class Program:
    """A running program, which can be killed and started again."""

    def __init__(self, command: Sequence[str], log: IO[bytes]) -> None:
        self._command, self._log = command, log
        self._process = self._start()

    def _start(self) -> subprocess.Popen[bytes]:
        return subprocess.Popen(self._command, stdout=self._log, stderr=self._log)

    def restart(self) -> None:
        """Kills the program, and starts it again at once."""
        self._process.kill()
        self._process.wait()
        self._process = self._start()

    def stop(self) -> None:
        """Ends the program."""
        self._process.terminate()
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(10)
        self._process.kill()
        self._process.wait()


@dataclass
class Server:
    """A running server. `manager` is a kubeconfig of `system:kube-controller-manager`."""

    folder: Path
    url: str
    program: Program
    api: Api
    admin: Path
    manager: Path

    def restart(self) -> None:
        """Kills the API server, and returns once the next one is ready."""
        self.program.restart()
        until(lambda: _is_ready(self.url), "a server that is ready again", within=60)

    def build_environment(self, controllers: str) -> dict[str, str]:
        """Returns the environment of kcm as the manager of this cluster, with these controllers."""
        authority = {"CERT": self.folder / "ca.crt", "KEY": self.folder / "ca.key"}
        signing = {f"KCM_CLUSTER_SIGNING_{n}_FILE": str(path) for n, path in authority.items()}
        return {
            **signing,
            "KCM_KUBECONFIG": str(self.manager),
            "KCM_CONTROLLERS": controllers,
            "KCM_USE_SERVICE_ACCOUNT_CREDENTIALS": "true",
            "KCM_SERVICE_ACCOUNT_PRIVATE_KEY_FILE": str(self.folder / "sa.key"),
            "KCM_ROOT_CA_FILE": str(self.folder / "ca.crt"),
        }


@contextmanager
def serve(folder: Path) -> Iterator[Server]:
    """Yields a server with RBAC and the default admission plugins, and nothing else."""
    write_authority(folder, datetime.now(UTC))
    _write_key(folder / "sa.key")
    rows = [f"{TOKEN},admin,1,system:masters", f"{MANAGER_TOKEN},system:kube-controller-manager,2"]
    (folder / "tokens.csv").write_text("\n".join(rows) + "\n")
    port, store = free_port(), f"http://127.0.0.1:{free_port()}"
    with (
        (folder / "etcd.log").open("wb") as etcd_log,
        (folder / "apiserver.log").open("wb") as log,
        _running(_etcd(folder, store), etcd_log),
        _running(_apiserver(folder, store, port), log) as program,
    ):
        url = f"https://127.0.0.1:{port}"
        until(lambda: _is_ready(url), "a server that is ready", within=60)
        certificate = folder / "certs" / "apiserver.crt"
        context = ssl.create_default_context(cafile=str(certificate))
        headers = {"authorization": f"Bearer {TOKEN}"}
        with httpx.Client(base_url=url, headers=headers, verify=context, timeout=30) as client:
            yield Server(
                folder,
                url,
                program,
                Api(client),
                _kubeconfig(folder / "admin.kubeconfig", url, TOKEN, certificate),
                _kubeconfig(folder / "manager.kubeconfig", url, MANAGER_TOKEN, certificate),
            )


def _etcd(folder: Path, url: str) -> list[str]:
    peer = f"http://127.0.0.1:{free_port()}"
    return [
        os.environ[ETCD],
        f"--data-dir={folder / 'etcd'}",
        f"--listen-client-urls={url}",
        f"--advertise-client-urls={url}",
        f"--listen-peer-urls={peer}",
        f"--initial-advertise-peer-urls={peer}",
        f"--initial-cluster=default={peer}",
    ]


def _apiserver(folder: Path, store: str, port: int) -> list[str]:
    key = folder / "sa.key"
    return [
        os.environ[APISERVER],
        f"--etcd-servers={store}",
        "--bind-address=127.0.0.1",
        f"--secure-port={port}",
        f"--cert-dir={folder / 'certs'}",
        f"--client-ca-file={folder / 'ca.crt'}",
        f"--token-auth-file={folder / 'tokens.csv'}",
        "--authorization-mode=RBAC",
        "--service-account-issuer=https://kubernetes.default.svc",
        f"--service-account-key-file={key}",
        f"--service-account-signing-key-file={key}",
        "--service-cluster-ip-range=10.0.0.0/16",
    ]


@contextmanager
def _running(command: Sequence[str], log: IO[bytes]) -> Iterator[Program]:
    program = Program(command, log)
    try:
        yield program
    finally:
        program.stop()


def _is_ready(url: str) -> bool:
    with suppress(httpx.TransportError):
        return httpx.get(f"{url}/readyz", verify=False).status_code == httpx.codes.OK
    return False


def _write_key(path: Path) -> None:
    key = rsa.generate_private_key(65537, 2048)
    form, encryption = serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    path.write_bytes(key.private_bytes(serialization.Encoding.PEM, form, encryption))


def _kubeconfig(path: Path, url: str, token: str, certificate: Path) -> Path:
    cluster = {"server": url, "certificate-authority": str(certificate)}
    config = {
        "clusters": [{"name": "c", "cluster": cluster}],
        "users": [{"name": "u", "user": {"token": token}}],
        "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}],
        "current-context": "x",
    }
    path.write_text(yaml.safe_dump(config))
    return path
