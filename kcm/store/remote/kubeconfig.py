"""Reads a kubeconfig: the address of an API server, how to verify it, and the credentials.

It supports what `kcm up`, kubeadm, kind and k3s write: certificates and keys inline or in files,
bearer tokens inline or in a file. A user with a credential plugin (`exec`, `auth-provider`) or a
password is an error.

Source: staging/src/k8s.io/client-go/tools/clientcmd/api/v1/types.go, Kubernetes 1.33.
"""

from __future__ import annotations

import base64
import binascii
import re
import ssl
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from kcm import errors
from kcm.http.faults import CallFailed
from kcm.http.trust import Trust, build_context

_TOKEN = re.compile(r"[\x21-\x7e]*")


@dataclass(frozen=True)
class ClusterConnection:
    """How to connect to an API server. `trust` is None for plain HTTP."""

    server: str
    trust: ssl.SSLContext | None
    token: str = field(default="", repr=False)

    def use_certificate(self, pem: Path) -> None:
        """Presents another client certificate on new connections. The file has its key, too.

        Raises OSError and ssl.SSLError.
        """
        if self.trust is not None:
            self.trust.load_cert_chain(pem)


def load(path: Path, context: str = "") -> ClusterConnection:
    """Returns the connection of a context in a kubeconfig, by default of its current context.

    Raises: ConfigurationError, with the file and the entry.
    """
    try:
        config = yaml.safe_load(path.read_text("utf-8")) or {}
        name = context or config.get("current-context", "")
        chosen = _entry(config, "context", name)
        cluster = _entry(config, "cluster", chosen.get("cluster", ""))
        user = _entry(config, "user", chosen["user"]) if chosen.get("user") else {}
        return EntryReader(path.parent).connection(cluster, user)
    except (errors.ConfigurationError, CallFailed) as error:
        raise errors.ConfigurationError(f"kubeconfig {path}: {error.message}") from error
    except (OSError, UnicodeError, yaml.YAMLError, binascii.Error) as error:
        raise errors.ConfigurationError(f"kubeconfig {path}: {error}") from error
    except (AttributeError, TypeError) as error:
        raise errors.ConfigurationError(f"kubeconfig {path} is not a kubeconfig") from error


def _entry(config: Mapping[str, Any], kind: str, name: str) -> dict[str, Any]:
    for entry in config.get(f"{kind}s") or ():
        if entry.get("name") == name:
            body: dict[str, Any] = entry.get(kind) or {}
            return body
    raise errors.ConfigurationError(f"there is no {kind} {name!r}")


@dataclass(frozen=True)
class EntryReader:
    """Reads the entries of a kubeconfig, whose paths are relative to `folder`."""

    folder: Path

    def connection(self, cluster: Mapping[str, Any], user: Mapping[str, Any]) -> ClusterConnection:
        server = cluster.get("server", "")
        if not server:
            raise errors.ConfigurationError("the cluster has no server")
        for plugin in ("exec", "auth-provider", "username"):
            if plugin in user:
                raise errors.ConfigurationError(
                    f"the user has {plugin}, which kcm does not support: use a token or a "
                    "client certificate"
                )
        trust = self._trust(cluster, user) if server.startswith("https:") else None
        return ClusterConnection(server.rstrip("/"), trust, self.token(user))

    def _trust(self, cluster: Mapping[str, Any], user: Mapping[str, Any]) -> ssl.SSLContext:
        certificate, key = self.data(user, "client-certificate"), self.data(user, "client-key")
        trust = Trust(
            self.data(cluster, "certificate-authority"),
            certificate + b"\n" + key if certificate and key else b"",
            bool(cluster.get("insecure-skip-tls-verify")),
        )
        return build_context(trust)

    def data(self, entry: Mapping[str, Any], name: str) -> bytes:
        """Returns bytes that are in the entry in base64, or in a file that it names."""
        if f"{name}-data" in entry:
            return base64.b64decode(entry[f"{name}-data"], validate=True)
        return (self.folder / entry[name]).read_bytes() if name in entry else b""

    def token(self, user: Mapping[str, Any]) -> str:
        """Returns a user's token, which is in the entry or in a file that it names, "" for none.

        Raises ConfigurationError for one that no header can have.
        """
        token, where = str(user.get("token") or ""), "token"
        if not token and "tokenFile" in user:
            token = (self.folder / user["tokenFile"]).read_text("utf-8").strip()
            where = "tokenFile"
        if not _TOKEN.fullmatch(token):
            raise errors.ConfigurationError(
                f"the user's {where} has characters that a header cannot have: a token is visible "
                "ASCII"
            )
        return token
