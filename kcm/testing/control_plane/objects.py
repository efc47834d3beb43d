"""Objects of a control plane over its REST API, as an administrator reads and writes them."""

from __future__ import annotations

import ssl
import threading
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import httpx
import yaml

from kcm import errors
from kcm.api import codec, scheme
from kcm.api.apiextensions_v1 import CustomResourceDefinition
from kcm.api.scheme import Resource
from kcm.apiextensions import known
from kcm.clock import RealClock
from kcm.testing.faults.target import TESTER

Json = dict[str, Any]
Manifest = Mapping[str, Any] | str | Path  # an object, YAML text of any number, or a file of it

_MANAGER = "kcm-testing"  # the field manager of what a test applies
_TIMEOUT = 60.0  # seconds
_DEFINED_WITHIN = 5.0  # seconds until a new definition is served
_BETWEEN_LOOKS = 0.01  # seconds


class ApiError(errors.KcmError):
    """The API server refused a request. The message is the server's own."""

    def __init__(self, code: int, reason: str, message: str) -> None:
        super().__init__(message)
        self.code = code
        self.reason = reason


class Objects:
    """Reads and writes objects. Kinds are named as kubectl names them: deploy, pods, crontabs."""

    def __init__(self, url: str, token: str, authority: Path) -> None:
        self.client = httpx.Client(
            base_url=url,
            headers={"authorization": f"Bearer {token}", "user-agent": TESTER},
            verify=ssl.create_default_context(cafile=str(authority)),
            timeout=_TIMEOUT,
        )

    def close(self) -> None:
        """Closes the connections."""
        self.client.close()

    def apply(self, manifest: Manifest, namespace: str = "default") -> list[Json]:
        """Applies manifests on the server, and returns the objects. Raises ApiError.

        `namespace` is for objects that name none.
        """
        applied = []
        for document in _documents(manifest):
            kind = document.get("apiVersion", ""), document.get("kind", "")
            resource = self._find(partial(scheme.by_gvk, *kind))
            named = document.get("metadata") or {}
            path = path_of(resource, named.get("namespace") or namespace, named.get("name", ""))
            applied.append(
                self._request(
                    "PATCH",
                    path,
                    params={"fieldManager": _MANAGER, "force": "true"},
                    headers={"content-type": "application/apply-patch+yaml"},
                    json=document,
                )
            )
        return applied

    def get(self, name: str, namespace: str = "default") -> Json:
        """Returns the object `kind/name`, like `deployment/web`. Raises ApiError."""
        resource, own = self._split(name)
        return self._request("GET", path_of(resource, namespace, own))

    def list(self, kind: str, namespace: str | None = "default", selector: str = "") -> list[Json]:
        """Returns the objects of a kind; with `namespace` None those of all. Raises ApiError."""
        params = {"labelSelector": selector} if selector else {}
        path = path_of(self._find(partial(scheme.lookup, kind)), namespace)
        items: list[Json] = self._request("GET", path, params=params)["items"]
        return items

    def delete(self, name: str, namespace: str = "default") -> None:
        """Deletes the object `kind/name`. Raises ApiError."""
        resource, own = self._split(name)
        self._request("DELETE", path_of(resource, namespace, own))

    def _split(self, name: str) -> tuple[Resource, str]:
        """Returns the kind and the name of `kind/name`. Raises ValueError and UnknownKind."""
        kind, own = split_name(name)
        return self._find(partial(scheme.lookup, kind)), own

    def _find(self, look: Callable[[], Resource]) -> Resource:
        """Returns a kind. One that was defined a moment ago is waited for. Raises UnknownKind."""
        clock, never = RealClock(), threading.Event()
        deadline = clock.monotonic() + _DEFINED_WITHIN
        while True:
            try:
                return look()
            except errors.UnknownKind:
                if self._learn() or clock.monotonic() > deadline:
                    return look()
            clock.wait(never, _BETWEEN_LOOKS)

    def _learn(self) -> bool:
        """Learns the kinds of all definitions. Reports whether all of them are served."""
        resource = scheme.resource_of(CustomResourceDefinition)
        served = True
        for item in self._request("GET", path_of(resource, None))["items"]:
            definition = codec.decode(item, resource)
            assert isinstance(definition, CustomResourceDefinition)
            known.learn(definition)
            served &= bool(definition.status.conditions)
        return served

    def _request(self, method: str, path: str, **options: Any) -> Json:
        response = self.client.request(method, path, **options)
        body: Json = response.json()
        if response.is_error:
            raise ApiError(response.status_code, body.get("reason", ""), body.get("message", ""))
        return body


def _documents(manifest: Manifest) -> Iterator[Json]:
    if isinstance(manifest, Mapping):
        yield dict(manifest)
        return
    text = manifest.read_text() if isinstance(manifest, Path) else manifest
    for document in yaml.safe_load_all(text):
        if document:
            yield document


def split_name(name: str) -> tuple[str, str]:
    """Returns the kind and the name of `kind/name`. Raises ValueError."""
    kind, slash, own = name.partition("/")
    if not slash or not own:
        raise ValueError(f"{name!r} is not of the form kind/name, like deployment/web")
    return kind, own


def path_of(resource: Resource, namespace: str | None, name: str = "") -> str:
    """Returns the path of an object, or of all of a kind; `namespace` None means all namespaces."""
    root = f"/apis/{resource.api_version}" if resource.group else "/api/v1"
    inside = f"/namespaces/{namespace}" if resource.namespaced and namespace else ""
    return f"{root}{inside}/{resource.plural}" + (f"/{name}" if name else "")
