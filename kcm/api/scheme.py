"""The scheme: which kinds there are. Adding one is its model and one line in `_KINDS`.

Guarantees: no two resources share a name, a group/version/kind or a model.
"""

from __future__ import annotations

import difflib
import threading
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Protocol

from kcm import errors
from kcm.api import (
    apiextensions_v1,
    apps_v1,
    autoscaling_v1,
    autoscaling_v2,
    batch_v1,
    coordination_v1,
    core_v1,
    discovery_v1,
    events_v1,
    networking_v1,
    policy_v1,
    rbac_v1,
    scheduling_v1,
    storage_v1,
)
from kcm.api.custom_kinds import CustomVersion
from kcm.apimachinery.meta_v1 import KubeObject


class Conversion(Protocol):
    """Converts between a face and the stored form."""

    def from_stored(self, raw: bytes, resource: Resource) -> KubeObject:
        """Returns the object as the face has it."""
        ...

    def to_stored(self, obj: KubeObject) -> bytes:
        """Returns the JSON to store."""
        ...


@dataclass(frozen=True)
class ScalePaths:
    """Where a kind keeps what its `scale` subresource shows, as paths such as `.spec.replicas`."""

    replicas: str = ".spec.replicas"
    status_replicas: str = ".status.replicas"
    selector: str = ".spec.selector"  # a label selector or the text of one, or ""


@dataclass(frozen=True, eq=False)
class Resource:
    """A kind as the API serves it in one version. It is equal only to itself.

    Several resources may share a name: they are faces of one kind, whose objects are stored once,
    in the form of the face that is registered first.
    """

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
    scale: ScalePaths | None = None  # None for a kind that cannot be scaled
    # such as "pods" or "replicasets.apps": the name in Redis keys, computed unless given
    name: str = ""
    api_version: str = ""  # such as "v1" or "apps/v1", computed
    list_kind: str = ""  # computed unless given
    conversion: Conversion | None = None  # None for the stored form
    custom: CustomVersion | None = None  # what a CustomResourceDefinition says of it
    served: bool = True

    def __post_init__(self) -> None:
        name = f"{self.plural}.{self.group}" if self.group else self.plural
        object.__setattr__(self, "name", self.name or name)
        object.__setattr__(self, "list_kind", self.list_kind or f"{self.kind}List")
        api_version = f"{self.group}/{self.version}" if self.group else self.version
        object.__setattr__(self, "api_version", api_version)

    def __str__(self) -> str:
        return self.name

    def __repr__(self) -> str:
        return f"Resource({self.name!r})"

    def __reduce__(self) -> tuple[object, ...]:
        # Pickled by kind, so that identity holds in the process that unpickles.
        return _unpickle, (self.api_version, self.kind)


def kind(
    model: type[KubeObject],
    plural: str,
    *,
    cluster: bool = False,
    short: str = "",
    has_status: bool = True,
    categories: str = "",
    scale: ScalePaths | None = None,
) -> Resource:
    """Returns a resource whose group, version and kind are the model's defaults."""
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
        scale=scale,
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
    kind(core_v1.PersistentVolumeClaim, "persistentvolumeclaims", short="pvc"),
    kind(core_v1.PersistentVolume, "persistentvolumes", cluster=True, short="pv"),
    kind(core_v1.PodTemplate, "podtemplates", has_status=False),
    kind(core_v1.ResourceQuota, "resourcequotas", short="quota"),
    kind(core_v1.LimitRange, "limitranges", short="limits", has_status=False),
    kind(
        core_v1.ReplicationController,
        "replicationcontrollers",
        short="rc",
        categories="all",
        scale=ScalePaths(),
    ),
    kind(discovery_v1.EndpointSlice, "endpointslices", has_status=False),
    kind(apps_v1.Deployment, "deployments", short="deploy", categories="all", scale=ScalePaths()),
    kind(apps_v1.ControllerRevision, "controllerrevisions", has_status=False),
    kind(apps_v1.DaemonSet, "daemonsets", short="ds", categories="all"),
    kind(apps_v1.ReplicaSet, "replicasets", short="rs", categories="all", scale=ScalePaths()),
    kind(apps_v1.StatefulSet, "statefulsets", short="sts", categories="all", scale=ScalePaths()),
    kind(
        autoscaling_v2.HorizontalPodAutoscaler,
        "horizontalpodautoscalers",
        short="hpa",
        categories="all",
    ),
    kind(batch_v1.CronJob, "cronjobs", short="cj", categories="all"),
    kind(batch_v1.Job, "jobs", categories="all"),
    kind(coordination_v1.Lease, "leases", has_status=False),
    kind(policy_v1.PodDisruptionBudget, "poddisruptionbudgets", short="pdb"),
    kind(
        scheduling_v1.PriorityClass, "priorityclasses", cluster=True, short="pc", has_status=False
    ),
    kind(storage_v1.StorageClass, "storageclasses", cluster=True, short="sc", has_status=False),
    kind(networking_v1.NetworkPolicy, "networkpolicies", short="netpol", has_status=False),
    kind(networking_v1.Ingress, "ingresses", short="ing"),
    kind(networking_v1.IngressClass, "ingressclasses", cluster=True, has_status=False),
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
    """The register of resources. Any thread may use it, while custom kinds come and go."""

    def __init__(self, resources: Iterable[Resource] = ()) -> None:
        self._lock = threading.Lock()
        self._generation = 0
        # Keyed by name; the first of each is the stored form.
        self._faces: dict[str, tuple[Resource, ...]] = {}
        self._unpickle: set[str] = set()  # the names of built-in kinds
        self._by_gvk: dict[tuple[str, str], Resource] = {}
        self._by_model: dict[type[KubeObject], Resource] = {}
        self._by_alias: dict[str, list[Resource]] = {}
        self._stored: tuple[Resource, ...] = ()
        self._served: tuple[Resource, ...] = ()
        self._by_place: dict[tuple[str, str, str], Resource] = {}
        for resource in resources:
            self.register(resource)

    def register(self, resource: Resource) -> Resource:
        """Adds a resource. Raises ValueError if its name, kind or model is taken."""
        with self._lock:
            self._refuse_taken(resource, self._faces.get(resource.name, ()))
            self._unpickle.add(resource.name)
            self._add(resource)
        return resource

    def add_face(self, resource: Resource) -> Resource:
        """Serves what is stored under a known name as this resource too.

        Raises ValueError if the name is unknown, or kind or model is taken.
        """
        with self._lock:
            if resource.name not in self._faces:
                raise ValueError(f"nothing is stored as {resource.name}")
            self._refuse_taken(resource)
            self._add(resource)
        return resource

    def replace_faces(self, name: str, faces: Iterable[Resource] = ()) -> None:
        """Replaces what is known under a name by these faces, the stored form first.

        Without faces, the name is forgotten. Raises ValueError, and changes nothing, for the name
        of a built-in kind, or if a kind is taken by another name.
        """
        with self._lock:
            old, new = self._faces.get(name, ()), tuple(faces)
            if name in self._unpickle:
                raise ValueError(f"{name} is a kind of the system")
            for resource in new:
                taken = self._by_gvk.get((resource.api_version, resource.kind))
                if taken is not None and taken.name != name:
                    raise ValueError(f"{resource.kind} is registered already, as {taken.name}")
            if new:
                self._faces[name] = ()  # keeps its place
            for resource in new:
                self._add(resource)
            for resource in old:
                self._remove(resource)
            if not new:
                self._faces.pop(name, None)
            self._count_change()

    def _remove(self, resource: Resource) -> None:
        gvk = (resource.api_version, resource.kind)
        if self._by_gvk.get(gvk) is resource:
            del self._by_gvk[gvk]
        self._by_model.pop(resource.model, None)
        for alias in self._aliases(resource):
            kept = [remaining for remaining in self._by_alias[alias] if remaining is not resource]
            self._by_alias[alias] = kept

    def _refuse_taken(self, resource: Resource, same_name: Iterable[Resource] = ()) -> None:
        gvk = (resource.api_version, resource.kind)
        taken = (
            next(iter(same_name), None)
            or self._by_gvk.get(gvk)
            or self._by_model.get(resource.model)
        )
        if taken is not None:
            raise ValueError(f"{resource.name} is registered already, as {taken.name}")

    def _add(self, resource: Resource) -> None:
        self._faces[resource.name] = (*self._faces.get(resource.name, ()), resource)
        self._by_gvk[resource.api_version, resource.kind] = resource
        self._by_model[resource.model] = resource
        for alias in self._aliases(resource):
            self._by_alias[alias] = [*self._by_alias.get(alias, ()), resource]
        self._count_change()

    def _count_change(self) -> None:
        self._generation += 1
        self._stored = tuple(faces[0] for faces in self._faces.values() if faces)
        every = (face for faces in self._faces.values() for face in faces)
        self._served = tuple(face for face in every if face.served)
        self._by_place = {(r.group, r.version, r.plural): r for r in self._served}

    def generation(self) -> int:
        """A number that changes when resources come or go."""
        return self._generation

    @staticmethod
    def _aliases(resource: Resource) -> set[str]:
        words = {resource.plural, resource.singular, *resource.short_names}
        suffix = f".{resource.group}" if resource.group else ""
        full = {f"{word}{suffix}" for word in (resource.plural, resource.singular)}
        versioned = f"{resource.plural}.{resource.version}.{resource.group}".rstrip(".")
        return words | full | {versioned}

    def resources(self) -> tuple[Resource, ...]:
        """Returns all resources in their stored form, in the order of registration."""
        return self._stored

    def served(self) -> tuple[Resource, ...]:
        """Returns everything that the API serves, several faces of some kinds."""
        return self._served

    def at(self, group: str, version: str, plural: str) -> Resource | None:
        """Returns what the API serves there, or None."""
        return self._by_place.get((group, version, plural))

    def faces(self, name: str) -> tuple[Resource, ...]:
        """Returns all faces of what is stored under a name, the stored form first."""
        return self._faces.get(name, ())

    def resource_of(self, what: KubeObject | type[KubeObject]) -> Resource:
        """Returns the resource of an object or a model. Raises UnknownKind."""
        model = what if isinstance(what, type) else type(what)
        resource = self._by_model.get(model)
        if resource is not None:
            return resource
        if isinstance(what, KubeObject):
            return self.by_gvk(what.api_version, what.kind)
        raise errors.UnknownKind(f"{model.__name__} is not registered in the scheme")

    def by_gvk(self, api_version: str, kind: str) -> Resource:
        """Returns the resource of an apiVersion and kind. Raises UnknownKind."""
        match = self._by_gvk.get((api_version, kind))
        if match is None:
            known = [
                f"{resource.kind} in {version}" for (version, _), resource in self._by_gvk.items()
            ]
            raise errors.UnknownKind(
                f'no matches for kind "{kind}" in version "{api_version}"'
                + _suggest(f"{kind} in {api_version}", known)
            )
        return match

    def by_name(self, name: str) -> Resource:
        """Returns what is stored under a full name such as replicasets.apps. Raises
        UnknownKind.
        """
        faces = self._faces.get(name)
        if not faces:
            raise self._unknown(name, self._faces)
        return faces[0]

    def lookup(self, text: str) -> Resource:
        """Returns what a person typed: plural, singular, kind, short or full name. Raises
        UnknownKind.
        """
        resource = self._by_alias.get(text.lower())
        if not resource:
            raise self._unknown(text, self._by_alias)
        return resource[0]  # the earlier registration wins, as upstream's group priority decides

    def _unknown(self, text: str, known: Iterable[str]) -> errors.UnknownKind:
        return errors.UnknownKind(
            f'the server doesn\'t have a resource type "{text}"' + _suggest(text.lower(), known)
        )


def _suggest(text: str, known: Iterable[str]) -> str:
    close = difflib.get_close_matches(text, list(known), n=3, cutoff=0.6)
    return f" (did you mean {' or '.join(close)}?)" if close else ""


_SCHEME = Scheme(_KINDS)
_SCHEME.add_face(
    replace(
        kind(events_v1.Event, "events", short="ev", has_status=False),
        name="events",
        api_version="",
        conversion=events_v1.EventConversion(),
    )
)
_SCHEME.add_face(
    replace(
        kind(
            autoscaling_v1.HorizontalPodAutoscaler,
            "horizontalpodautoscalers",
            short="hpa",
            categories="all",
        ),
        conversion=autoscaling_v1.AutoscalerConversion(),
    )
)


def _unpickle(api_version: str, kind: str) -> Resource:
    return _SCHEME.by_gvk(api_version, kind)


generation = _SCHEME.generation
register = _SCHEME.register
add_face = _SCHEME.add_face
replace_faces = _SCHEME.replace_faces
resources = _SCHEME.resources
served = _SCHEME.served
at = _SCHEME.at
faces = _SCHEME.faces
resource_of = _SCHEME.resource_of
by_gvk = _SCHEME.by_gvk
by_name = _SCHEME.by_name
lookup = _SCHEME.lookup
