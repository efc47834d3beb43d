"""`Kinds`: a table of kinds, and the lookups in it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType

from kcm import errors
from kcm.apimachinery.meta_v1 import Resource
from kcm.apimachinery.suggestions import suggest


class Kinds:
    """A table of kinds that does not change.

    No two resources share a group, version and kind. Resources of one name are the versions of one
    kind, the storage version first.
    """

    def __init__(self, resources: Iterable[Resource]) -> None:
        """Raises ValueError if two resources have the same group, version and kind."""
        # Why the kinds of groups and versions could not be read, of another API server.
        self.undiscovered: Mapping[str, str] = MappingProxyType({})
        self._fill(resources)

    def _fill(self, resources: Iterable[Resource]) -> None:
        self._versions: dict[str, tuple[Resource, ...]] = {}  # keyed by name
        self._by_gvk: dict[tuple[str, str], Resource] = {}
        self._by_alias: dict[str, list[Resource]] = {}
        for resource in resources:
            taken = self._by_gvk.get((resource.api_version, resource.kind))
            if taken is not None:
                raise ValueError(f"{resource.name} is registered already, as {taken.name}")
            self._add(resource)
        self._index()

    def _add(self, resource: Resource) -> None:
        self._versions[resource.name] = (*self._versions.get(resource.name, ()), resource)
        self._by_gvk[resource.api_version, resource.kind] = resource
        for alias in list_aliases(resource):
            self._by_alias[alias] = [*self._by_alias.get(alias, ()), resource]

    def _index(self) -> None:
        """Computes the lookups that follow from the versions."""
        self._stored = tuple(versions[0] for versions in self._versions.values() if versions)
        every = (version for versions in self._versions.values() for version in versions)
        self._served = tuple(version for version in every if version.served)
        self._by_place = {(r.group, r.version, r.plural): r for r in self._served}

    def generation(self) -> int:
        """Returns a number that increases whenever kinds are added or removed."""
        return 0

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

    def all_versions(self) -> Mapping[str, tuple[Resource, ...]]:
        """Returns the versions of each kind by its name."""
        return self._versions

    def by_gvk(self, api_version: str, kind: str) -> Resource:
        """Returns the resource of an apiVersion and kind. Raises UnknownKind."""
        match = self._by_gvk.get((api_version, kind))
        if match is None:
            present = [f"{other} in {version}" for version, other in tuple(self._by_gvk)]
            raise errors.UnknownKind(
                f'no matches for kind "{kind}" in version "{api_version}"'
                + suggest(f"{kind} in {api_version}", present)
            )
        return match

    def by_name(self, name: str) -> Resource:
        """Returns the storage version of the kind with a full name such as `replicasets.apps`.

        Raises UnknownKind.
        """
        versions = self._versions.get(name)
        if not versions:
            raise _unknown(name, self._versions)
        return versions[0]

    def lookup(self, text: str) -> Resource:
        """Returns the resource that a person typed: by plural, singular, short or full name.

        Raises UnknownKind.
        """
        resources = self._by_alias.get(text.lower())
        if not resources:
            raise _unknown(text, self._by_alias)
        return resources[0]  # the earlier registration wins, as upstream's group priority decides


def list_aliases(resource: Resource) -> set[str]:
    words = {resource.plural, resource.singular, *resource.short_names}
    suffix = f".{resource.group}" if resource.group else ""
    full = {f"{word}{suffix}" for word in (resource.plural, resource.singular)}
    versioned = f"{resource.plural}.{resource.version}.{resource.group}".rstrip(".")
    return words | full | {versioned}


def _unknown(name: str, present: Iterable[str]) -> errors.UnknownKind:
    return errors.UnknownKind(
        f'the server doesn\'t have a resource type "{name}"' + suggest(name.lower(), present)
    )
