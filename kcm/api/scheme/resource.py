"""`Resource`: what the scheme knows of one version of a kind."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from kcm.api.custom.kinds import CustomVersion
from kcm.apimachinery.meta_v1 import KubeObject


class Conversion(Protocol):
    """Converts between a served version and the storage version."""

    def from_stored(self, raw: bytes, resource: Resource) -> KubeObject:
        """Returns the object in the version of `resource` from JSON in the storage version."""
        ...

    def to_stored(self, obj: KubeObject) -> bytes:
        """Returns the JSON of the object in the storage version."""
        ...


@dataclass(frozen=True)
class ScalePaths:
    """The paths, such as `.spec.replicas`, of the values that the `scale` subresource shows."""

    replicas: str = ".spec.replicas"
    status_replicas: str = ".status.replicas"
    selector: str = ".spec.selector"  # a label selector or the text of one, or ""


@dataclass(frozen=True, eq=False)
class Resource:
    """A kind in one served version. It compares by identity.

    Several resources may share a name: they are versions of one kind, whose objects are stored
    once, in the version that is registered first.
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
    conversion: Conversion | None = None  # None for the storage version
    custom: CustomVersion | None = None  # the version of its CustomResourceDefinition
    served: bool = True

    def __post_init__(self) -> None:
        name = f"{self.plural}.{self.group}" if self.group else self.plural
        object.__setattr__(self, "name", self.name or name)
        object.__setattr__(self, "list_kind", self.list_kind or f"{self.kind}List")
        api_version = f"{self.group}/{self.version}" if self.group else self.version
        object.__setattr__(self, "api_version", api_version)

    @property
    def qualified_kind(self) -> str:
        """Returns the kind with its group, such as `Pod` or `ReplicaSet.apps`."""
        return f"{self.kind}.{self.group}" if self.group else self.kind

    def __str__(self) -> str:
        return self.name

    def __repr__(self) -> str:
        return f"Resource({self.name!r})"


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
    """Returns a resource whose group, version and kind are the defaults of the model's fields.

    `short` and `categories` are names separated by spaces; `cluster` says that objects have no
    namespace.
    """
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
