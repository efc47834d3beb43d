"""Reads how to connect to an API server: a kubeconfig, or what every pod of a cluster has.

A kubeconfig has certificates and keys inline or in files, bearer tokens inline or in a file, and
credential plugins (`exec`). A user with `auth-provider` or a password is an error. Files and
plugins are read again, see `kcm.store.remote.credentials`.

Source: staging/src/k8s.io/client-go/tools/clientcmd/api/v1/types.go and rest/config.go
(InClusterConfig), Kubernetes 1.36.
"""

from __future__ import annotations

import base64
import binascii
import os
import re
import ssl
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import yaml

from kcm import errors
from kcm.http.faults import CallFailed
from kcm.http.trust import Trust, build_context, show_certificate
from kcm.store.remote.credentials import (
    ANONYMOUS,
    FILES_AGAIN,
    FOREVER,
    Credential,
    Identity,
    run_plugin,
)

IN_CLUSTER = "in-cluster"  # in place of a path: the account of the pod that kcm runs in
ACCOUNT_FOLDER = Path("/var/run/secrets/kubernetes.io/serviceaccount")
_TOKEN = re.compile(r"[\x21-\x7e]*")
_FILES = frozenset({"tokenFile", "client-certificate", "client-key"})


@dataclass(frozen=True)
class ClusterConnection:
    """How to connect to an API server. `authority` verifies it, and is None for plain HTTP."""

    server: str
    authority: Trust | None = None
    credential: Credential = field(default=ANONYMOUS, repr=False)
    trust: ssl.SSLContext | None = field(init=False, default=None)

    def __post_init__(self) -> None:
        """Raises CallFailed for certificates that are unusable, and what the credential raises."""
        if self.authority is not None:
            authority, shown = self.authority, self.credential.current().certificate
            context = build_context(Trust(authority.authority, shown, authority.insecure))
            object.__setattr__(self, "trust", context)

    def use_certificate(self, pem: bytes) -> None:
        """Presents another client certificate on new connections. `pem` has its key, too.

        Raises OSError, such as ssl.SSLError.
        """
        if self.trust is not None:
            show_certificate(self.trust, pem)

    def identify(self, credential: Credential) -> ClusterConnection:
        """Returns a connection to the same server with another identity, and nothing of this one's.

        Raises what the credential raises.
        """
        return ClusterConnection(self.server, self.authority, credential)


def connect(place: str) -> ClusterConnection:
    """Returns the connection of a kubeconfig, or of the pod that kcm runs in for `in-cluster`.

    Raises: ConfigurationError.
    """
    return load_in_cluster(os.environ) if place == IN_CLUSTER else load(Path(place))


def load_in_cluster(environ: Mapping[str, str], folder: Path = ACCOUNT_FOLDER) -> ClusterConnection:
    """Returns the connection with the service account of the pod. Raises: ConfigurationError."""
    host, port = environ.get("KUBERNETES_SERVICE_HOST"), environ.get("KUBERNETES_SERVICE_PORT")
    if not host or not port:
        raise errors.ConfigurationError(
            "unable to load in-cluster configuration, KUBERNETES_SERVICE_HOST and "
            "KUBERNETES_SERVICE_PORT must be defined"
        )
    cluster = {
        "server": f"https://[{host}]:{port}" if ":" in host else f"https://{host}:{port}",
        "certificate-authority": "ca.crt",
    }
    try:
        return EntryReader(folder).connection(cluster, {"tokenFile": "token"})
    except (errors.ConfigurationError, CallFailed, OSError) as error:
        raise errors.ConfigurationError(f"in-cluster configuration: {error}") from error


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
        for plugin in ("auth-provider", "username"):
            if plugin in user:
                raise errors.ConfigurationError(
                    f"the user has {plugin}, which kcm does not support: use a token, a client "
                    "certificate or a credential plugin (exec)"
                )
        authority = None
        if server.startswith("https:"):
            insecure = bool(cluster.get("insecure-skip-tls-verify"))
            data = self.data(cluster, "certificate-authority")
            authority = Trust(data, insecure=insecure)
        credential = Credential(partial(self.identify, user, cluster))
        credential.current()
        return ClusterConnection(server.rstrip("/"), authority, credential)

    def identify(self, user: Mapping[str, Any], cluster: Mapping[str, Any]) -> Identity:
        """Returns who a user is now. Raises ConfigurationError and OSError."""
        plugin = user.get("exec")
        if plugin:
            return run_plugin(plugin, self.folder, cluster)
        certificate, key = self.data(user, "client-certificate"), self.data(user, "client-key")
        pem = certificate + b"\n" + key if certificate and key else b""
        good_for = FILES_AGAIN if _FILES & user.keys() else FOREVER
        return Identity(self.token(user), pem, good_for)

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
