"""Guards: conditions that the write script checks in the moment of the write.

A write whose guard does not hold changes nothing and ends with the status `guard`. Each class below
is one kind of guard; its fields are passed to the script. Resources are named as in `kubectl`
(`pods`, `replicasets.apps`), since the kind of an owner may no longer be served; keys are
`namespace/name` or `name`.

The script's checks are in the table `guards` in kcm/redisio/lua/store_write.lua.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from kcm.api.custom.kinds import CustomResource
from kcm.api.scheme import Resource
from kcm.apimachinery.meta_v1 import KubeObject
from kcm.redisio import Fence
from kcm.store.indexes import index_entries

DEFINITIONS = "customresourcedefinitions.apiextensions.k8s.io"


class GuardKind(StrEnum):
    """The kinds of guard, by their names in the write script."""

    EXISTS = "exists"
    ABSENT = "absent"
    UNINDEXED = "unindexed"
    INDEXED = "indexed"
    TOKEN = "token"
    QUOTAS = "quotas"
    COUNTED = "counted"
    UNCHANGED = "unchanged"


class _Guard:
    """The base class of all kinds of guard."""

    __slots__ = ()

    def __str__(self) -> str:
        return " ".join(encode_guard(self))  # type: ignore[arg-type] # each subclass is a Guard


@dataclass(frozen=True, slots=True)
class Exists(_Guard):
    """The object exists and is not being deleted; with `uid`, it has that uid."""

    resource: str
    key: str
    uid: str = ""

    def holds_for(self, obj: KubeObject | None) -> bool:
        """Reports whether the guard holds if `obj` is the object under the key, None if there is
        none.
        """
        return obj is not None and self.uid in ("", obj.uid) and not obj.deleting


@dataclass(frozen=True, slots=True)
class Absent(_Guard):
    """The object does not exist; with `uid`, an object with another uid may exist."""

    resource: str
    key: str
    uid: str = ""

    def holds_for(self, obj: KubeObject | None) -> bool:
        """Reports whether the guard holds if `obj` is the object under the key, None if there is
        none.
        """
        return obj is None or self.uid not in ("", obj.uid)


@dataclass(frozen=True, slots=True)
class Unindexed(_Guard):
    """No object has the index entry, such as `owner:<uid>` (see `kcm.store.indexes`)."""

    entry: str


@dataclass(frozen=True, slots=True)
class Indexed(_Guard):
    """The object exists and has the index entry (see `kcm.store.indexes`)."""

    resource: str
    key: str
    entry: str

    def holds_for(self, obj: KubeObject | None) -> bool:
        """Reports whether the guard holds if `obj` is the object under the key, None if there is
        none.
        """
        return obj is not None and self.entry in index_entries(obj.resource, obj)


@dataclass(frozen=True, slots=True)
class TokenAvailable(_Guard):
    """The token bucket has a token, and the write takes it.

    It has to be the last guard of the write: a token is spent even when a later guard fails.
    """

    bucket: str


@dataclass(frozen=True, slots=True)
class QuotasUnchanged(_Guard):
    """The namespace has exactly these quotas, given as pairs of name and resourceVersion."""

    namespace: str
    versions: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class NothingCharged(_Guard):
    """No object was charged to the namespace's quotas after given resourceVersions.

    `since` are pairs of a resource and the resourceVersion after which its objects count.
    """

    namespace: str
    since: tuple[tuple[str, int], ...]


@dataclass(frozen=True, slots=True)
class EntryUnchanged(_Guard):
    """No object got or lost the index entry `node:<name>` after the resourceVersion `since`.

    Writes under a guard with the same `since` and `stamp` do not count: a scheduling pass draws one
    stamp, so that its own writes do not fail its later ones.
    """

    entry: str
    since: int
    stamp: str


Guard = (
    Exists
    | Absent
    | Unindexed
    | Indexed
    | TokenAvailable
    | QuotasUnchanged
    | NothingCharged
    | EntryUnchanged
)


def encode_guard(guard: Guard) -> tuple[str, ...]:
    """Returns the guard in the form that the write script reads: its kind, then its fields."""
    match guard:
        case Exists(resource, key, uid):
            return GuardKind.EXISTS, resource, key, uid
        case Absent(resource, key, uid):
            return GuardKind.ABSENT, resource, key, uid
        case Unindexed(entry):
            return GuardKind.UNINDEXED, entry
        case Indexed(resource, key, entry):
            return GuardKind.INDEXED, resource, key, entry
        case TokenAvailable(bucket):
            return GuardKind.TOKEN, bucket
        case QuotasUnchanged(namespace, versions):
            pairs = (part for pair in versions for part in pair)
            return GuardKind.QUOTAS, namespace, *pairs
        case NothingCharged(namespace, since):
            positions = (part for resource, rv in since for part in (resource, str(rv)))
            return GuardKind.COUNTED, namespace, *positions
        case EntryUnchanged(entry, since, stamp):
            return GuardKind.UNCHANGED, entry, str(since), stamp


def definition_guards(resource: Resource) -> tuple[Guard, ...]:
    """Returns the guards of every create of a kind: the definition of a custom kind must exist."""
    if not isinstance(resource, CustomResource):
        return ()
    return (Exists(DEFINITIONS, resource.name),)


@dataclass(frozen=True)
class Conditions:
    """Conditions of a write beyond its object: guards, and the fence that must be held."""

    guards: tuple[Guard, ...] = ()
    fence: Fence | None = None


NO_CONDITIONS = Conditions()
