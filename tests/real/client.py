"""What cases do with an API server: short names for its requests, as an administrator."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import httpx

Json = dict[str, Any]
MERGE = "application/merge-patch+json"


@dataclass
class Api:
    """An API server. Paths are relative to a namespace, or absolute with a slash."""

    http: httpx.Client

    def get(self, path: str) -> Json | None:
        """Returns an object, None if it is missing."""
        response = self.http.get(path)
        if response.status_code == httpx.codes.NOT_FOUND:
            return None
        return self._read(response)

    def list(self, path: str, **params: str) -> list[Json]:
        """Returns the items of a list."""
        items: Sequence[Json] | None = self._read(self.http.get(path, params=params))["items"]
        return list(items or ())

    def create(self, path: str, body: Mapping[str, Any]) -> Json:
        return self._read(self.http.post(path, json=body))

    def patch(self, path: str, body: Mapping[str, Any]) -> Json:
        """Changes an object by a merge patch."""
        return self._read(self.http.patch(path, json=body, headers={"content-type": MERGE}))

    def delete(self, path: str, policy: str = "Background", grace: int | None = None) -> None:
        options: Json = {"propagationPolicy": policy}
        if grace is not None:
            options["gracePeriodSeconds"] = grace
        self._read(self.http.request("DELETE", path, json=options))

    def _read(self, response: httpx.Response) -> Json:
        if response.is_error:
            raise AssertionError(f"{response.request.method} {response.url}: {response.text[:500]}")
        body: Json = response.json()
        return body


@dataclass
class Space:
    """A namespace of one case, and the server that it is on."""

    api: Api
    name: str

    def path(self, kind: str, name: str = "", part: str = "") -> str:
        """Returns the path of a kind such as `v1/pods` or `apps/v1/replicasets` in the space."""
        group_version, _, plural = kind.rpartition("/")
        root = "/apis" if "/" in group_version else "/api"
        where = f"{root}/{group_version}/namespaces/{self.name}/{plural}"
        return "/".join(step for step in (where, name, part) if step)

    def create(self, kind: str, name: str, /, **fields: Any) -> Json:
        """Creates an object. `metadata` among the fields is added to its name."""
        meta = {**fields.pop("metadata", {}), "name": name}
        return self.api.create(self.path(kind), {"metadata": meta, **fields})

    def get(self, kind: str, name: str) -> Json | None:
        return self.api.get(self.path(kind, name))

    def at(self, kind: str, name: str, *steps: str) -> Any:
        """Returns the value at a path of an object, None if something on the way is missing."""
        value: Any = self.get(kind, name)
        for step in steps:
            value = value.get(step) if isinstance(value, dict) else None
        return value

    def patch(self, kind: str, name: str, body: Mapping[str, Any], part: str = "") -> Json:
        return self.api.patch(self.path(kind, name, part), body)

    def delete(self, kind: str, name: str, policy: str = "Background") -> None:
        self.api.delete(self.path(kind, name), policy)

    def pods(self, **labels: str) -> list[Json]:
        """Returns the pods with these labels that are not being deleted."""
        selector = ",".join(f"{name}={value}" for name, value in labels.items())
        pods = self.api.list(self.path("v1/pods"), labelSelector=selector)
        return [pod for pod in pods if "deletionTimestamp" not in pod["metadata"]]
