"""Who a client is to an API server: a token, a client certificate, and how long they are good.

Files are read again each minute, a credential plugin runs again when what it gave expires. After a
401, the next request reads anew. While reading fails, or gives a certificate that does not fit its
key, the last identity is used.

Source: staging/src/k8s.io/client-go/transport/token_source.go and
plugin/pkg/client/auth/exec/exec.go, Kubernetes 1.36.
"""

from __future__ import annotations

import json
import os
import subprocess
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import structlog

from kcm import errors
from kcm.apimachinery.meta_v1 import parse_time
from kcm.clock import Clock, RealClock
from kcm.http.trust import check_certificate

log = structlog.get_logger("kcm.remote")

FOREVER = float("inf")
FILES_AGAIN = 60.0  # seconds after which files are read again
FAILED_AGAIN = 5.0  # seconds, if they could not be read
PLUGIN_TIMEOUT = 60.0  # seconds for a credential plugin
_API = "client.authentication.k8s.io/"


@dataclass(frozen=True)
class Identity:
    """What a client presents. The certificate is PEM with its key, b"" for none."""

    token: str = field(default="", repr=False)
    certificate: bytes = field(default=b"", repr=False)
    good_for: float = FOREVER  # seconds


class Credential:
    """The identity of one client, which is read again in time. Thread-safe."""

    def __init__(self, read: Callable[[], Identity], clock: Clock | None = None) -> None:
        """`read` raises KcmError or OSError."""
        self._read = read
        self._clock = clock or RealClock()
        self._lock = threading.Lock()
        self._identity: Identity | None = None
        self._until = 0.0

    def current(self) -> Identity:
        """Returns the identity. Raises what reading raises, if there is none yet."""
        with self._lock:
            now = self._clock.monotonic()
            if self._identity is None or now >= self._until:
                self._read_again(now)
            assert self._identity is not None  # or reading has raised
            return self._identity

    def _read_again(self, now: float) -> None:
        try:
            identity = self._read()
            _require_usable(identity.certificate)
            self._identity, self._until = identity, now + identity.good_for
        except (errors.KcmError, OSError) as error:
            if self._identity is None:
                raise
            self._until = now + FAILED_AGAIN
            log.warning("Credentials could not be read again", error=str(error))

    def drop(self) -> None:
        """Makes the next request read anew, as the server did not accept the identity."""
        with self._lock:
            self._until = 0.0


ANONYMOUS = Credential(Identity)


def _require_usable(certificate: bytes) -> None:
    """Raises ssl.SSLError, such as for a certificate whose key has not been written yet."""
    if certificate:
        check_certificate(certificate)


# --- Plugins


def run_plugin(plugin: Mapping[str, Any], folder: Path, cluster: Mapping[str, Any]) -> Identity:
    """Runs the credential plugin of a kubeconfig, whose paths are relative to `folder`.

    Raises ConfigurationError, with the plugin's own words and its hint.
    """
    version = str(plugin.get("apiVersion", ""))
    if version not in (f"{_API}v1", f"{_API}v1beta1"):
        raise errors.ConfigurationError(f"exec: apiVersion {version!r} is not supported")
    command = str(plugin.get("command", ""))
    if "/" in command:
        command = str(folder / command)
    given = {each["name"]: each["value"] for each in plugin.get("env") or ()}
    about: dict[str, Any] = {"interactive": False}
    if plugin.get("provideClusterInfo"):
        about["cluster"] = cluster
    info = json.dumps({"apiVersion": version, "kind": "ExecCredential", "spec": about})
    try:
        ran = subprocess.run(
            [command, *(plugin.get("args") or ())],
            env={**os.environ, **given, "KUBERNETES_EXEC_INFO": info},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=PLUGIN_TIMEOUT,
            check=True,
        )
        return _read_answer(json.loads(ran.stdout))
    except (OSError, subprocess.SubprocessError, ValueError, KeyError, TypeError) as error:
        said = getattr(error, "stderr", None) or b""
        hint = plugin.get("installHint") or ""
        words = " ".join(filter(None, (str(error), said.decode(errors="replace").strip(), hint)))
        raise errors.ConfigurationError(f"exec: {words}") from error


def _read_answer(answer: Mapping[str, Any]) -> Identity:
    status = answer["status"]
    certificate, key = status.get("clientCertificateData"), status.get("clientKeyData")
    pem = f"{certificate}\n{key}".encode() if certificate and key else b""
    expires = status.get("expirationTimestamp")
    return Identity(status.get("token") or "", pem, seconds_until(expires) if expires else FOREVER)


def seconds_until(timestamp: str) -> float:
    """Returns how long it is until a time of the API, in seconds. Raises ValueError."""
    return (parse_time(timestamp) - RealClock().now()).total_seconds()
