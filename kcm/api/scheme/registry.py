"""The registry of resources.

No two resources share a model, or group, version and kind. No two kinds share a name.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable

from kcm import errors
from kcm.apimachinery.meta_v1 import Resource
from kcm.apimachinery.suggestions import suggest


class Scheme:
    """The registry of resources.

    Thread-safe, so custom kinds may be added and removed at any time.
    """

    def __init__(self, resources: Iterable[Resource] = ()) -> None:
        self._lock = threading.Lock()
        self._generation = 0
        # Keyed by name; the first of each is the storage version.
        self._versions: dict[str, tuple[Resource, ...]] = {}
        self._builtin: set[str] = set()  # the names of built-in kinds
        self._by_gvk: dict[tuple[str, str], Resource] = {}
        self._by_alias: dict[str, list[Resource]] = {}
        self._stored: tuple[Resource, ...] = ()
        self._served: tuple[Resource, ...] = ()
        self._by_place: dict[tuple[str, str, str], Resource] = {}
        for resource in resources:
            self.register(resource)

    def register(self, resource: Resource) -> Resource:
        """Adds a built-in resource. Raises ValueError if its name, kind or model is taken."""
        with self._lock:
            self._require_free(resource, self._versions.get(resource.name, ()))
            self._builtin.add(resource.name)
            self._add(resource)
            self._finish_change()
        return resource

    def add_version(self, resource: Resource) -> Resource:
        """Adds a served version of the kind that is stored under the resource's name.

        Raises ValueError if the name is unknown, or kind or model is taken.
        """
        with self._lock:
            if resource.name not in self._versions:
                raise ValueError(f"no kind is stored as {resource.name}")
            self._require_free(resource)
            self._add(resource)
            self._finish_change()
        return resource

    def replace_versions(self, name: str, versions: Iterable[Resource] = ()) -> None:
        """Replaces all versions of a custom kind. The first new one is the storage version.

        Without versions, the name is removed. Raises ValueError, and changes nothing, if the name
        is that of a built-in kind, or if an apiVersion and kind belongs to another name.
        """
        with self._lock:
            old, new = self._versions.get(name, ()), tuple(versions)
            if name in self._builtin:
                raise ValueError(f"{name} is a built-in kind")
            for resource in new:
                taken = self._by_gvk.get((resource.api_version, resource.kind))
                if taken is not None and taken.name != name:
                    raise ValueError(f"{resource.kind} is registered already, as {taken.name}")
            if new:
                self._versions[name] = ()  # keeps its place
            for resource in new:
                self._add(resource)
            for resource in old:
                self._remove(resource)
            if not new:
                self._versions.pop(name, None)
            self._finish_change()

    def _remove(self, resource: Resource) -> None:
        gvk = (resource.api_version, resource.kind)
        if self._by_gvk.get(gvk) is resource:
            del self._by_gvk[gvk]
        for alias in self._aliases(resource):
            rest = [other for other in self._by_alias[alias] if other is not resource]
            if rest:
                self._by_alias[alias] = rest
            else:
                del self._by_alias[alias]

    def _require_free(self, resource: Resource, same_name: Iterable[Resource] = ()) -> None:
        gvk = (resource.api_version, resource.kind)
        same_model: Resource = resource.model.__dict__.get("resource", resource)
        taken = next(iter(same_name), None) or self._by_gvk.get(gvk)
        if taken is None and same_model is not resource:
            taken = same_model
        if taken is not None:
            raise ValueError(f"{resource.name} is registered already, as {taken.name}")

    def _add(self, resource: Resource) -> None:
        self._versions[resource.name] = (*self._versions.get(resource.name, ()), resource)
        self._by_gvk[resource.api_version, resource.kind] = resource
        resource.model.resource = resource
        for alias in self._aliases(resource):
            self._by_alias[alias] = [*self._by_alias.get(alias, ()), resource]

    def _finish_change(self) -> None:
        """Recomputes the lookups that follow from the versions, and increments the generation."""
        self._generation += 1
        self._stored = tuple(versions[0] for versions in self._versions.values() if versions)
        every = (version for versions in self._versions.values() for version in versions)
        self._served = tuple(version for version in every if version.served)
        self._by_place = {(r.group, r.version, r.plural): r for r in self._served}

    def generation(self) -> int:
        """Returns a number that increases whenever resources are added or removed."""
        return self._generation

    @staticmethod
    def _aliases(resource: Resource) -> set[str]:
        words = {resource.plural, resource.singular, *resource.short_names}
        suffix = f".{resource.group}" if resource.group else ""
        full = {f"{word}{suffix}" for word in (resource.plural, resource.singular)}
        versioned = f"{resource.plural}.{resource.version}.{resource.group}".rstrip(".")
        return words | full | {versioned}

    def resources(self) -> tuple[Resource, ...]:
        """Returns all resources in their storage versions, in the order of registration."""
        return self._stored

    def served(self) -> tuple[Resource, ...]:
        """Returns every served resource: all served versions of all kinds."""
        return self._served

    def at(self, group: str, version: str, plural: str) -> Resource | None:
        """Returns the resource that is served at a group, version and plural, or None."""
        return self._by_place.get((group, version, plural))

    def versions(self, name: str) -> tuple[Resource, ...]:
        """Returns all versions of the kind that is stored under a name, storage version first."""
        return self._versions.get(name, ())

    def by_gvk(self, api_version: str, kind: str) -> Resource:
        """Returns the resource of an apiVersion and kind. Raises UnknownKind."""
        match = self._by_gvk.get((api_version, kind))
        if match is None:
            known = [f"{other} in {version}" for version, other in tuple(self._by_gvk)]
            raise errors.UnknownKind(
                f'no matches for kind "{kind}" in version "{api_version}"'
                + suggest(f"{kind} in {api_version}", known)
            )
        return match

    def by_name(self, name: str) -> Resource:
        """Returns the storage version of the kind with a full name such as `replicasets.apps`.

        Raises UnknownKind.
        """
        versions = self._versions.get(name)
        if not versions:
            raise self._unknown(name, self._versions)
        return versions[0]

    def lookup(self, text: str) -> Resource:
        """Returns the resource that a person typed: by plural, singular, short or full name.

        Raises UnknownKind.
        """
        resources = self._by_alias.get(text.lower())
        if not resources:
            raise self._unknown(text, self._by_alias)
        return resources[0]  # the earlier registration wins, as upstream's group priority decides

    def _unknown(self, text: str, known: Iterable[str]) -> errors.UnknownKind:
        return errors.UnknownKind(
            f'the server doesn\'t have a resource type "{text}"' + suggest(text.lower(), known)
        )
