"""How the API server identifies itself to servers: from a kubeconfig whose users are servers.

A user's name is the host of a server with its port, such as `hook.default.svc:443`, perhaps with a
star for the first labels, such as `*.default.svc`; the port 443 may be left out. `*` is for all
others, and so is the user of the current context.

Source: staging/src/k8s.io/apiserver/pkg/util/webhook/authentication.go, Kubernetes 1.33.
"""

from __future__ import annotations

import binascii
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import yaml

from kcm.api.admissionregistration_v1 import WebhookClientConfig
from kcm.apiserver.egress.posting import (
    DEFAULT_PORT,
    NO_CREDENTIALS,
    Backend,
    Credentials,
    ServiceTarget,
    basic,
)
from kcm.errors import ConfigurationError
from kcm.http.transport import Fields, bearer
from kcm.http.trust import read_bundle
from kcm.store.remote.kubeconfig import EntryReader

_HTTPS = ":443"


class BackendCredentials:
    """The credentials for each server."""

    def __init__(self, users: Mapping[str, Credentials] | None = None, default: str = "") -> None:
        """`default` is the user for servers that no other is meant for, "" for none."""
        self._users = dict(users or {})
        self._default = default

    def build_backend(self, config: WebhookClientConfig) -> Backend:
        """Returns the server of a webhook, with the credentials that are meant for it."""
        authority, service = read_bundle(config.ca_bundle or ""), config.service
        if service is None:
            url = config.url or ""
            return Backend(url, authority, self.find_for_url(url))
        port = service.port or DEFAULT_PORT
        target = ServiceTarget(service.namespace, service.name, port, service.path or "")
        return Backend(target, authority, self.find_for_service(target))

    def find_for_service(self, target: ServiceTarget) -> Credentials:
        """Returns the credentials for a server behind a Service."""
        return self._find(f"{target.server_name}:{target.port}")

    def find_for_url(self, url: str) -> Credentials:
        """Returns the credentials for the server at a URL."""
        try:
            parts = urlsplit(url)
            return self._find(f"{parts.hostname or ''}:{parts.port or 443}")
        except ValueError:
            return NO_CREDENTIALS

    def _find(self, server: str) -> Credentials:
        for name in _names(server):
            if name in self._users:
                return self._users[name]
        return self._users.get(self._default, NO_CREDENTIALS)


def _names(server: str) -> Iterator[str]:
    """Yields the names of users that are meant for a server, the most exact first."""
    targets = [server, server.removesuffix(_HTTPS)] if server.endswith(_HTTPS) else [server]
    for target in targets:
        yield target
        labels = target.split(".")
        for count in range(1, len(labels)):
            yield f"*.{'.'.join(labels[count:])}"
    yield "*"


def load_credentials(path: Path) -> BackendCredentials:
    """Returns the credentials in a kubeconfig. Raises ConfigurationError."""
    try:
        document = yaml.safe_load(path.read_text("utf-8")) or {}
        reader = EntryReader(path.parent)
        users = {
            entry["name"]: _credentials(entry.get("user") or {}, reader)
            for entry in document.get("users") or ()
        }
        current = document.get("current-context")
        default = next(
            (
                str((entry.get("context") or {}).get("user") or "")
                for entry in document.get("contexts") or ()
                if entry["name"] == current
            ),
            "",
        )
    except ConfigurationError as error:
        raise ConfigurationError(f"kubeconfig {path}: {error.message}") from None
    except (OSError, UnicodeError, yaml.YAMLError, binascii.Error) as error:
        raise ConfigurationError(f"kubeconfig {path}: {error}") from None
    except (AttributeError, TypeError, KeyError) as error:
        raise ConfigurationError(f"kubeconfig {path} is not a kubeconfig") from error
    return BackendCredentials(users, default)


def _credentials(user: Mapping[str, Any], reader: EntryReader) -> Credentials:
    for plugin in ("exec", "auth-provider"):
        if user.get(plugin):
            raise ConfigurationError(f"a user has {plugin}, which is not supported")
    certificate = reader.data(user, "client-certificate")
    key = reader.data(user, "client-key")
    if bool(certificate) != bool(key):
        raise ConfigurationError("a client certificate and its key belong together")
    headers: Fields = ()
    if token := reader.token(user):
        headers = bearer(token)
    elif user.get("username") or user.get("password"):
        value = basic(str(user.get("username") or ""), str(user.get("password") or ""))
        headers = [(b"authorization", value)]
    return Credentials(tuple(headers), certificate + b"\n" + key if key else b"")
