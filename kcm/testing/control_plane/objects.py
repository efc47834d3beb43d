"""Objects of a control plane over its REST API, as an administrator reads and writes them."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Literal

import httpx

from kcm import errors
from kcm.api import codec
from kcm.api.apiextensions_v1 import CustomResourceDefinition
from kcm.api.scheme import Resource, Scheme
from kcm.apiextensions.registration import register
from kcm.clock import RealClock
from kcm.http.blocking import ClientOptions, open_client
from kcm.http.trust import Trust, build_context
from kcm.testing.control_plane.manifests import Json, read_manifests
from kcm.testing.faults.target import TESTER
from kcm.testing.history.snapshot import split_name

# An object, YAML text of any number, the path of a file or a folder, a model of a client library,
# or a sequence of these; see `read_manifests`.
Manifest = Any
PatchType = Literal["merge", "strategic", "json"]

_PATCHES: Mapping[PatchType, str] = {
    "merge": "application/merge-patch+json",
    "strategic": "application/strategic-merge-patch+json",
    "json": "application/json-patch+json",
}
_DEFINITION = "CustomResourceDefinition"
_FIRST = frozenset({"Namespace", _DEFINITION})  # kinds that others need
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

    def __init__(self, url: str, token: str, authority: Path, scheme: Scheme) -> None:
        """`scheme` has the kinds of the server's store, and gets those that it lacks."""
        self._scheme = scheme
        self.client: httpx.Client = open_client(
            ClientOptions(
                _TIMEOUT,
                build_context(Trust(authority.read_bytes())),
                [("authorization", f"Bearer {token}"), ("user-agent", TESTER)],
                base_url=url,
            )
        )

    def close(self) -> None:
        """Closes the connections."""
        self.client.close()

    def apply(self, manifest: Manifest, namespace: str | None = None) -> list[Json]:
        """Applies manifests on the server, and returns the objects in the same order.

        Namespaces and definitions come first, and what follows waits until the definitions are
        established. An object with `generateName` is created. Objects that name no namespace are in
        `namespace`, by default `default`. Raises ApiError, and ValueError for an object that names
        another one.
        """
        documents = list(read_manifests(manifest))
        first = [one for one in documents if one.get("kind") in _FIRST]
        applied = {id(one): self._apply_one(one, namespace) for one in first}
        for one in first:
            if one["kind"] == _DEFINITION:
                self._wait_established(one["metadata"]["name"])
        for one in documents:
            if id(one) not in applied:
                applied[id(one)] = self._apply_one(one, namespace)
        return [applied[id(one)] for one in documents]

    def _apply_one(self, document: Json, namespace: str | None) -> Json:
        kind = document.get("apiVersion", ""), document.get("kind", "")
        resource = self._find(partial(self._scheme.by_gvk, *kind))
        named = document.get("metadata") or {}
        own, name = named.get("namespace"), named.get("name", "")
        if namespace and own and own != namespace and resource.namespaced:
            raise ValueError(
                f"{resource.singular}/{name} names the namespace {own}, and is to be applied in "
                f"{namespace}: leave out one of them"
            )
        params = {"fieldManager": _MANAGER}
        path = path_of(resource, own or namespace or "default", name)
        if not name and named.get("generateName"):
            return self._request("POST", path, params=params, json=document)
        if not name:
            raise ValueError(f"an object of the kind {kind[1]} has no metadata.name")
        return self._request(
            "PATCH",
            path,
            params={**params, "force": "true"},
            headers={"content-type": "application/apply-patch+yaml"},
            json=document,
        )

    def _wait_established(self, name: str) -> None:
        """Waits until a definition is established. Raises ApiError with what keeps it from it."""
        clock, never = RealClock(), threading.Event()
        deadline = clock.monotonic() + _DEFINED_WITHIN
        while True:
            definition = self.get(f"crd/{name}")
            conditions = (definition.get("status") or {}).get("conditions") or []
            stated = {c["type"]: c for c in conditions}
            if stated.get("Established", {}).get("status") == "True":
                return
            names = stated.get("NamesAccepted", {})
            if names.get("status") == "False" or clock.monotonic() > deadline:
                why = names.get("message") or "the server has not looked at it"
                raise ApiError(409, "NotEstablished", f"{name} is not established: {why}")
            clock.wait(never, _BETWEEN_LOOKS)

    def patch(
        self,
        name: str,
        change: Mapping[str, Any] | Sequence[Mapping[str, Any]],
        namespace: str = "default",
        *,
        subresource: str = "",
        patch_type: PatchType | None = None,
    ) -> Json:
        """Patches the object `kind/name`, and returns it. Raises ApiError and ValueError.

        A mapping is a merge patch unless `patch_type` says otherwise, a sequence a JSON patch.
        """
        resource, own = self._split(name)
        chosen = patch_type or ("merge" if isinstance(change, Mapping) else "json")
        if chosen not in _PATCHES:
            raise ValueError(f'patch_type="{chosen}" is unknown: use {", ".join(_PATCHES)}')
        path = path_of(resource, namespace, own) + (f"/{subresource}" if subresource else "")
        return self._request(
            "PATCH",
            path,
            params={"fieldManager": _MANAGER},
            headers={"content-type": _PATCHES[chosen]},
            json=change,
        )

    def create_token(self, account: str, seconds: int) -> str:
        """Returns a token of the service account `namespace/name`. Raises ApiError."""
        namespace, _, name = account.rpartition("/")
        path = f"/api/v1/namespaces/{namespace or 'default'}/serviceaccounts/{name}/token"
        body = {"spec": {"expirationSeconds": seconds}}
        return str(self._request("POST", path, json=body)["status"]["token"])

    def get(self, name: str, namespace: str = "default") -> Json:
        """Returns the object `kind/name`, like `deployment/web`. Raises ApiError."""
        resource, own = self._split(name)
        return self._request("GET", path_of(resource, namespace, own))

    def list(self, kind: str, namespace: str | None = "default", selector: str = "") -> list[Json]:
        """Returns the objects of a kind; with `namespace` None those of all. Raises ApiError."""
        params = {"labelSelector": selector} if selector else {}
        path = path_of(self._find(partial(self._scheme.lookup, kind)), namespace)
        items: list[Json] = self._request("GET", path, params=params)["items"]
        return items

    def delete(self, name: str, namespace: str = "default") -> None:
        """Deletes the object `kind/name`. Raises ApiError."""
        resource, own = self._split(name)
        self._request("DELETE", path_of(resource, namespace, own))

    def _split(self, name: str) -> tuple[Resource, str]:
        """Returns the kind and the name of `kind/name`. Raises ValueError and UnknownKind."""
        kind, own = split_name(name)
        return self._find(partial(self._scheme.lookup, kind)), own

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
        resource = CustomResourceDefinition.resource
        served = True
        for item in self._request("GET", path_of(resource, None))["items"]:
            definition = codec.decode(item, resource)
            register(self._scheme, definition)
            served &= bool(definition.status.conditions)
        return served

    def _request(self, method: str, path: str, **options: Any) -> Json:
        response = self.client.request(method, path, **options)
        body: Json = response.json()
        if response.is_error:
            raise ApiError(response.status_code, body.get("reason", ""), body.get("message", ""))
        return body


def path_of(resource: Resource, namespace: str | None, name: str = "") -> str:
    """Returns the path of an object, or of all of a kind; `namespace` None means all namespaces."""
    root = f"/apis/{resource.api_version}" if resource.group else "/api/v1"
    inside = f"/namespaces/{namespace}" if resource.namespaced and namespace else ""
    return f"{root}{inside}/{resource.plural}" + (f"/{name}" if name else "")
