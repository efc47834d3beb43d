"""Which kinds there are. Adding one is its model and one line in `_KINDS`.

Guarantees: no two resources share a name, a group/version/kind or a model.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from dataclasses import dataclass

from kcm import errors
from kcm.api import (
    apiextensions_v1,
    apps_v1,
    coordination_v1,
    core_v1,
    discovery_v1,
    policy_v1,
    rbac_v1,
    scheduling_v1,
)
from kcm.api.meta_v1 import KubeObject


@dataclass(frozen=True, eq=False)
class Resource:
    """A kind as the API serves it. Equal only to itself: there is one per kind."""

    group: str
    version: str
    kind: str
    plural: str
    singular: str
    namespaced: bool
    model: type[KubeObject]
    short_names: tuple[str, ...] = ()
    has_status: bool = True
    categories: tuple[str, ...] = ()
    name: str = ""  # "pods", "replicasets.apps": the name in Redis keys; computed
    api_version: str = ""  # "v1", "apps/v1"; computed

    def __post_init__(self) -> None:
        name = f"{self.plural}.{self.group}" if self.group else self.plural
        object.__setattr__(self, "name", name)
        api_version = f"{self.group}/{self.version}" if self.group else self.version
        object.__setattr__(self, "api_version", api_version)

    def __str__(self) -> str:
        return self.name

    def __repr__(self) -> str:
        return f"Resource({self.name!r})"

    def __reduce__(self) -> tuple[object, ...]:
        # Pickled by name, so that identity holds in the process that unpickles.
        return _registered, (self.name,)


def kind(
    model: type[KubeObject],
    plural: str,
    *,
    cluster: bool = False,
    short: str = "",
    has_status: bool = True,
    categories: str = "",
) -> Resource:
    """Describe a resource; group, version and kind are the model's defaults."""
    fields = model.model_fields
    group, _, version = str(fields["api_version"].default).rpartition("/")
    kind_name = str(fields["kind"].default)
    return Resource(
        group=group,
        version=version,
        kind=kind_name,
        plural=plural,
        singular=kind_name.lower(),
        namespaced=not cluster,
        model=model,
        short_names=tuple(short.split()),
        has_status=has_status,
        categories=tuple(categories.split()),
    )


_KINDS = (
    kind(core_v1.Pod, "pods", short="po", categories="all"),
    kind(core_v1.Node, "nodes", cluster=True, short="no"),
    kind(core_v1.Namespace, "namespaces", cluster=True, short="ns"),
    kind(core_v1.Event, "events", short="ev", has_status=False),
    kind(core_v1.ConfigMap, "configmaps", short="cm", has_status=False),
    kind(core_v1.Secret, "secrets", has_status=False),
    kind(core_v1.Service, "services", short="svc", categories="all"),
    kind(core_v1.ServiceAccount, "serviceaccounts", short="sa", has_status=False),
    kind(core_v1.Endpoints, "endpoints", short="ep", has_status=False),
    kind(discovery_v1.EndpointSlice, "endpointslices", has_status=False),
    kind(apps_v1.Deployment, "deployments", short="deploy", categories="all"),
    kind(apps_v1.ControllerRevision, "controllerrevisions", has_status=False),
    kind(apps_v1.ReplicaSet, "replicasets", short="rs", categories="all"),
    kind(coordination_v1.Lease, "leases", has_status=False),
    kind(policy_v1.PodDisruptionBudget, "poddisruptionbudgets", short="pdb"),
    kind(
        scheduling_v1.PriorityClass, "priorityclasses", cluster=True, short="pc", has_status=False
    ),
    kind(rbac_v1.Role, "roles", has_status=False),
    kind(rbac_v1.RoleBinding, "rolebindings", has_status=False),
    kind(rbac_v1.ClusterRole, "clusterroles", cluster=True, has_status=False),
    kind(rbac_v1.ClusterRoleBinding, "clusterrolebindings", cluster=True, has_status=False),
    kind(
        apiextensions_v1.CustomResourceDefinition,
        "customresourcedefinitions",
        cluster=True,
        short="crd crds",
        categories="api-extensions",
    ),
)


class Scheme:
    """A register of resources."""

    def __init__(self, resources: Iterable[Resource] = ()) -> None:
        self._by_name: dict[str, Resource] = {}
        self._by_gvk: dict[tuple[str, str], Resource] = {}
        self._by_model: dict[type[KubeObject], Resource] = {}
        self._by_alias: dict[str, list[Resource]] = {}
        for resource in resources:
            self.register(resource)

    def register(self, resource: Resource) -> Resource:
        """Add a resource. Raises ValueError if its name, kind or model is taken."""
        gvk = (resource.api_version, resource.kind)
        taken = (
            self._by_name.get(resource.name)
            or self._by_gvk.get(gvk)
            or self._by_model.get(resource.model)
        )
        if taken is not None:
            raise ValueError(f"{resource.name} is registered already, as {taken.name}")
        self._by_name[resource.name] = resource
        self._by_gvk[gvk] = resource
        self._by_model[resource.model] = resource
        for alias in self._aliases(resource):
            self._by_alias.setdefault(alias, []).append(resource)
        return resource

    @staticmethod
    def _aliases(resource: Resource) -> set[str]:
        words = {resource.plural, resource.singular, *resource.short_names}
        suffix = f".{resource.group}" if resource.group else ""
        full = {f"{word}{suffix}" for word in (resource.plural, resource.singular)}
        versioned = f"{resource.plural}.{resource.version}.{resource.group}".rstrip(".")
        return words | full | {versioned}

    def resources(self) -> tuple[Resource, ...]:
        """All resources, in the order of registration."""
        return tuple(self._by_name.values())

    def resource_of(self, what: KubeObject | type[KubeObject]) -> Resource:
        """The resource of an object or a model. Raises UnknownKind."""
        model = what if isinstance(what, type) else type(what)
        found = self._by_model.get(model)
        if found is not None:
            return found
        if isinstance(what, KubeObject):
            return self.by_gvk(what.api_version, what.kind)
        raise errors.UnknownKind(f"{model.__name__} is not registered in the scheme")

    def by_gvk(self, api_version: str, kind: str) -> Resource:
        """The resource of an apiVersion and kind. Raises UnknownKind."""
        found = self._by_gvk.get((api_version, kind))
        if found is None:
            known = [
                f"{resource.kind} in {version}" for (version, _), resource in self._by_gvk.items()
            ]
            raise errors.UnknownKind(
                f'no matches for kind "{kind}" in version "{api_version}"'
                + _suggest(f"{kind} in {api_version}", known)
            )
        return found

    def by_name(self, name: str) -> Resource:
        """The resource of a full name such as replicasets.apps. Raises UnknownKind."""
        found = self._by_name.get(name)
        if found is None:
            raise self._unknown(name, self._by_name)
        return found

    def lookup(self, text: str) -> Resource:
        """What a person typed: plural, singular, kind, short or full name. Raises UnknownKind."""
        found = self._by_alias.get(text.lower())
        if not found:
            raise self._unknown(text, self._by_alias)
        return found[0]  # earlier registration wins, as upstream's group priority does

    def _unknown(self, text: str, known: Iterable[str]) -> errors.UnknownKind:
        return errors.UnknownKind(
            f'the server doesn\'t have a resource type "{text}"' + _suggest(text.lower(), known)
        )


def _suggest(text: str, known: Iterable[str]) -> str:
    close = difflib.get_close_matches(text, list(known), n=3, cutoff=0.6)
    return f" (did you mean {' or '.join(close)}?)" if close else ""


_SCHEME = Scheme(_KINDS)


def _registered(name: str) -> Resource:
    return _SCHEME.by_name(name)


register = _SCHEME.register
resources = _SCHEME.resources
resource_of = _SCHEME.resource_of
by_gvk = _SCHEME.by_gvk
by_name = _SCHEME.by_name
lookup = _SCHEME.lookup
