"""meta/v1: the metadata of objects and lists, label selectors, the base class of objects, and
`Resource`, which describes a kind.

Source: staging/src/k8s.io/apimachinery/pkg/apis/meta/v1/types.go, Kubernetes 1.33.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Generic, Protocol, Self

from pydantic import Field, PlainSerializer, PlainValidator

from kcm.apimachinery.base import Bool, Int64, JsonObject, MergeKey, MergeSet, Model, StringMap

# --- RFC 3339 times in UTC: `Time` to the second, `MicroTime` to the microsecond.
#
# Source: staging/src/k8s.io/apimachinery/pkg/apis/meta/v1/{time,micro_time}.go, Kubernetes 1.33.


_RFC3339 = re.compile(
    r"(\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2})(?:\.(\d+))?(Z|[+-]\d{2}:\d{2})", re.ASCII
)


@lru_cache(maxsize=1024)
def parse_time(text: str) -> datetime:
    """Returns the time in an RFC 3339 text, in UTC, cut to microseconds.

    Raises ValueError.
    """
    match = _RFC3339.fullmatch(text)
    if match is None:
        raise ValueError("must be a time in RFC 3339, like 2006-01-02T15:04:05Z")
    seconds, fraction, zone = match.groups()
    try:
        moment = datetime.fromisoformat(seconds + zone).astimezone(UTC)
    except (ValueError, OverflowError) as error:
        raise ValueError(f"must be a time in RFC 3339: {error}") from None
    return moment.replace(microsecond=int((fraction or "0")[:6].ljust(6, "0")))


@lru_cache(maxsize=1024)
def format_time(moment: datetime) -> str:
    """Returns the time to the second, as metav1.Time formats it. Fractions are cut off."""
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ").rjust(20, "0")


@lru_cache(maxsize=1024)
def format_micro_time(moment: datetime) -> str:
    """Returns the time with six digits of fraction, as metav1.MicroTime formats it."""
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ").rjust(27, "0")


def shift_time(moment: datetime, seconds: float) -> datetime:
    """Returns the time `seconds` later, or earlier if negative, within the range of a datetime.

    Use it for seconds from users, since the API accepts more of them than a datetime can represent.
    """
    try:
        return moment + timedelta(seconds=seconds)
    except OverflowError:
        return (_LAST if seconds > 0 else _FIRST).astimezone(moment.tzinfo)


_FIRST = datetime.min.replace(tzinfo=UTC)
_LAST = datetime.max.replace(microsecond=0, tzinfo=UTC)


def _instant(value: Any) -> datetime:
    if isinstance(value, str):
        return parse_time(value)
    if isinstance(value, datetime):
        if value.tzinfo is None:
            raise ValueError("must have a time zone")
        return value
    raise ValueError("must be a time in RFC 3339, like 2006-01-02T15:04:05Z")


def _whole_seconds(value: Any) -> datetime:
    moment = _instant(value)
    return moment.replace(microsecond=0) if moment.microsecond else moment


Time = Annotated[
    datetime,
    PlainValidator(_whole_seconds),
    PlainSerializer(format_time, return_type=str, when_used="unless-none"),
]
MicroTime = Annotated[
    datetime,
    PlainValidator(_instant),
    PlainSerializer(format_micro_time, return_type=str, when_used="unless-none"),
]


if TYPE_CHECKING:
    from typing_extensions import TypeVar

    # The class of objects. A generic class without it is one of KubeObjects.
    Kind = TypeVar("Kind", bound="KubeObject", default="KubeObject")
    Kind_co = TypeVar("Kind_co", bound="KubeObject", covariant=True, default="KubeObject")
else:
    from typing import TypeVar

    Kind = TypeVar("Kind", bound="KubeObject")
    Kind_co = TypeVar("Kind_co", bound="KubeObject", covariant=True)

_EMPTY: Mapping[str, str] = {}


class OwnerReference(Model):
    """A reference from a dependent to an object that owns it, in the same namespace or none."""

    kubernetes_atomic: ClassVar[bool] = True

    api_version: str = ""
    kind: str = ""
    name: str = ""
    uid: str = ""
    controller: Bool | None = None
    block_owner_deletion: Bool | None = None

    def model_post_init(self, context: Any, /) -> None:
        """Does nothing, in Python: so other threads get their turn while very many are decoded."""


class ObjectMeta(Model):
    """The metadata that every object has: name, labels, owners and others."""

    name: str | None = None
    generate_name: str | None = None
    namespace: str | None = None
    self_link: str | None = None
    uid: str | None = None
    resource_version: str | None = None
    generation: Int64 | None = None
    creation_timestamp: Time | None = None
    deletion_timestamp: Time | None = None
    deletion_grace_period_seconds: Int64 | None = None
    labels: StringMap | None = None
    annotations: StringMap | None = None
    owner_references: Annotated[list[OwnerReference] | None, MergeKey("uid")] = None
    finalizers: Annotated[list[str] | None, MergeSet()] = None
    managed_fields: list[JsonObject] | None = None


class ListMeta(Model):
    """The metadata of a list."""

    resource_version: str | None = None
    continue_: str | None = Field(default=None, alias="continue")
    remaining_item_count: Int64 | None = None


class LabelSelectorRequirement(Model):
    """A condition on a label: key, operator (In, NotIn, Exists, DoesNotExist) and values."""

    key: str = ""
    operator: str = ""
    values: list[str] | None = None


class GroupResource(Model):
    """A kind, by its group and plural."""

    group: str = ""
    resource: str = ""


class FieldSelectorRequirement(LabelSelectorRequirement):
    """A condition on a field: key, operator (In, NotIn, Exists, DoesNotExist) and values."""


class LabelSelector(Model):
    """A selector for objects by their labels.

    All conditions must hold; empty matches everything.
    """

    kubernetes_atomic: ClassVar[bool] = True

    match_labels: StringMap | None = None
    match_expressions: list[LabelSelectorRequirement] | None = None


class Condition(Model):
    """One aspect of an object's state."""

    type: str = ""
    status: str = ""
    observed_generation: Int64 | None = None
    last_transition_time: Time | None = None
    reason: str = ""
    message: str = ""


class _ResourceOfClass(Protocol):
    """The type of `KubeObject.resource`: each class has the resource of its own objects."""

    def __get__(self, instance: object, owner: type[Kind]) -> Resource[Kind]: ...


class KubeObject(Model):
    """The base class of all kinds: apiVersion, kind and metadata."""

    # What the scheme registered the class for. A class that is not registered has none.
    resource: ClassVar[_ResourceOfClass]
    # Whether objects of the class have nothing of their kind but metadata.
    metadata_only: ClassVar[bool] = False

    # In this order, which is upstream's: see `kcm.api.codec.is_pruned`.
    kind: str = ""
    api_version: str = ""
    metadata: ObjectMeta = Field(default_factory=ObjectMeta)

    @property
    def name(self) -> str:
        return self.metadata.name or ""

    @property
    def namespace(self) -> str:
        """Returns the namespace, "" for a cluster-scoped object."""
        return self.metadata.namespace or ""

    @property
    def uid(self) -> str:
        return self.metadata.uid or ""

    @property
    def key(self) -> str:
        """Returns `namespace/name`, or `name` for a cluster-scoped object."""
        metadata = self.metadata
        return f"{metadata.namespace}/{metadata.name}" if metadata.namespace else self.name

    @property
    def labels(self) -> Mapping[str, str]:
        """Returns the labels, {} if there are none. Callers must not change them."""
        return self.metadata.labels or _EMPTY

    @property
    def annotations(self) -> Mapping[str, str]:
        """Returns the annotations, {} if there are none. Callers must not change them."""
        return self.metadata.annotations or _EMPTY

    @property
    def deleting(self) -> bool:
        """Reports whether deletion was requested (deletionTimestamp is set)."""
        return self.metadata.deletion_timestamp is not None

    def with_metadata(self, **changes: Any) -> Self:
        """Returns a copy with these attributes of its metadata changed.

        Everything else is shared.
        """
        return self.replace(metadata=self.metadata.replace(**changes))

    def with_spec(self, spec: Model) -> Self:
        """Returns a copy with another spec. Metadata and status are shared."""
        return self.replace(spec=spec)

    def with_status(self, status: Model) -> Self:
        """Returns a copy with another status. Metadata and spec are shared."""
        return self.replace(status=status)


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
class Resource(Generic[Kind_co]):
    """A kind in one served version. It compares by identity.

    `Pod.resource` is a `Resource[Pod]`, so that what is read with it is a Pod for the type checker.
    Plain `Resource` is any kind.

    Several resources may share a name: they are versions of one kind, whose objects are stored
    once, in the version that is registered first.
    """

    group: str
    version: str
    kind: str
    plural: str
    singular: str
    namespaced: bool
    model: type[Kind_co]
    short_names: tuple[str, ...] = ()
    has_status: bool = True
    categories: tuple[str, ...] = ()
    scale: ScalePaths | None = None  # None for a kind that cannot be scaled
    # such as "pods" or "replicasets.apps": the name in Redis keys, computed unless given
    name: str = ""
    api_version: str = ""  # such as "v1" or "apps/v1", computed
    list_kind: str = ""  # computed unless given
    conversion: Conversion | None = None  # None if objects are stored as they are
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
