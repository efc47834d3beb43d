"""The contract between a controller and the parts of kcm that run it.

A controller is one class. It has a name, options, watches (which keys a change touches), the kinds
that it reads, and `reconcile`, which turns a key and a view into a plan, or ticks for periodic
work. It does no I/O and keeps no state between calls. Several processes may run it, but two workers
never sync one key at the same time.

Modelled after controller-runtime pkg/reconcile and client-go's controllers.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, ClassVar, Generic, Literal, Protocol, TypeVar

from pydantic import BaseModel, ConfigDict, Field
from pydantic.fields import FieldInfo

from kcm.api.core_v1 import Pod
from kcm.api.scheme import Kinds
from kcm.apimachinery.labels import Selector
from kcm.apimachinery.meta_v1 import Kind, Kind_co, KubeObject
from kcm.informers.store import Tally
from kcm.reconcile.counters import Counter, Histogram
from kcm.reconcile.plan import PassPlan, Plan
from kcm.store.resource_metrics.answers import Value
from kcm.store.resource_metrics.usage import Measured

T = TypeVar("T", bound=KubeObject)
Cached_co = TypeVar("Cached_co", bound=KubeObject, covariant=True)


class Options(BaseModel):
    """The base class of a controller's options.

    Each field is a flag (`--kebab-case`), an environment variable (`KCM_UPPER_CASE`) and a line of
    the reference. The description of the field names its unit.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")


class NoOptions(Options):
    """The options of a controller that has none."""


_SHARED = "shared_with"


def shared_option(default: Any, owner: str) -> Any:
    """Returns a field that has the value of another controller's option of the same name.

    `owner` is the name of that controller, whose options describe the flag.
    """
    return Field(default, json_schema_extra={_SHARED: owner})


def shared_with(info: FieldInfo) -> str:
    """Returns the name of the controller that has the flag of a `shared_option`, "" for others."""
    extra = info.json_schema_extra
    return str(extra.get(_SHARED, "")) if isinstance(extra, dict) else ""


class Lister(Protocol[Cached_co]):
    """The cached objects of one kind. They are shared: never change what a lister returns."""

    def get(self, key: str) -> Cached_co:
        """Returns the object. Raises NotFound."""
        ...

    def find(self, key: str) -> Cached_co | None:
        """Returns the object, or None if the cache does not have it."""
        ...

    def by_index(self, name: str, value: str) -> Sequence[Cached_co]:
        """Returns the objects under `value` in the index `name`. `INDEXES` lists the names."""
        ...

    def tally(self, tally: Tally[Any], value: str) -> Mapping[Hashable, int]:
        """Returns the number of objects in each state, of those under `value` in the tally's index.

        Raises KeyError for a tally that no controller of the process names in `tallies`.
        """
        ...

    def list(
        self, namespace: str | None = None, selector: Selector | None = None
    ) -> Sequence[Cached_co]:
        """Returns the objects of a namespace, or of all namespaces, that the selector selects."""
        ...


class Metrics(Protocol):
    """The metrics APIs. They are not cached: every call is a request.

    Every method raises StoreUnavailable.
    """

    def pods(self, pods: Iterable[Pod]) -> Mapping[str, Measured]:
        """Returns the resource usage by pod key, of those pods for which it is known."""
        ...

    def of_pods(self, metric: str, pods: Sequence[Pod], selector: Selector) -> Mapping[str, Value]:
        """Returns the values of a custom metric by pod key, of those pods that have it."""
        ...

    def of_objects(
        self, resource: str, metric: str, keys: Iterable[str], selector: Selector
    ) -> Mapping[str, Value]:
        """Returns the values of a custom metric by object key, of those objects that have it."""
        ...

    def external(
        self, namespace: str, metric: str, selector: Selector
    ) -> Sequence[tuple[Mapping[str, str], Value]]:
        """Returns all series of an external metric, each with its labels and its value."""
        ...


class View(Protocol):
    """All that a controller may read in a sync."""

    @property
    def now(self) -> datetime:
        """The time of this sync, aware and in UTC."""
        ...

    @property
    def scheme(self) -> Kinds:
        """The kinds of the store, for lookups of kinds that objects name."""
        ...

    @property
    def memory(self) -> Mapping[str, str]:
        """What the last sync of this key left in its plan's `state`, for a controller that
        `remembers`.
        """
        ...

    @property
    def metrics(self) -> Metrics:
        """The metrics APIs."""
        ...

    def lister(self, model: type[T]) -> Lister[T]:
        """Returns the cache of a kind. Raises LookupError for a kind that the controller does not
        declare.
        """
        ...

    def by_index(self, name: str, value: str) -> Sequence[KubeObject]:
        """Returns the objects of all kinds that the controller declares with this index value."""
        ...

    def position(self, model: type[T]) -> int:
        """Returns the resourceVersion up to which the kind's cache has every write.

        Call it before you use the lister, since the cache moves on. Raises LookupError as `lister`
        does.
        """
        ...


class PassView(View, Protocol):
    """What a pass of a periodic loop may read in addition to a view."""

    @property
    def moment(self) -> float:
        """The seconds on the clock of Redis, which all hosts share. Use it for times to
        remember.
        """
        ...

    @property
    def epoch(self) -> str:
        """A text that changes when the store was restarted or failed over (design 0003)."""
        ...


@dataclass(frozen=True)
class Change(Generic[Kind_co]):
    """A change of an object. `old` is None if it was added, `new` is None if it was deleted."""

    old: Kind_co | None
    new: Kind_co | None

    @property
    def object(self) -> Kind_co:
        """The new state of the object, or the last one if it was deleted."""
        obj = self.new if self.new is not None else self.old
        assert obj is not None
        return obj


KeyFunction = Callable[[Change[Kind], View], Iterable[str]]


def newest(obj: T, view: View) -> T:
    """Returns the newer one of a changed object and the cached object.

    It is for key functions that evaluate states: of several changes in a row, the last state
    counts.
    """
    cached = view.lister(type(obj)).find(obj.key)
    if cached is None:
        return obj  # Deleted, or not yet in the cache. A superfluous key does no harm.
    ours, theirs = obj.metadata.resource_version or "", cached.metadata.resource_version or ""
    newer = theirs.isdecimal() and ours.isdecimal() and int(theirs) > int(ours)
    return cached if newer else obj


@dataclass(frozen=True)
class Watch(Generic[Kind]):
    """A function that returns the keys that a change of a kind touches. `model` None means every
    kind.
    """

    model: type[Kind] | None
    keys: KeyFunction[Kind]


def own_key(change: Change, view: View) -> Iterable[str]:
    """Returns the changed object's own key."""
    return (change.object.key,)


@dataclass(frozen=True)
class Tick:
    """A periodic loop of a controller (design 0023).

    `run` gets the view and the memory of the last pass. It returns a plan whose `state`, unless it
    is None, replaces that memory. A loop that `sees` another loop of its controller gets the memory
    of that loop and has none of its own.
    """

    name: str
    every: float  # seconds
    run: Callable[[PassView, Mapping[str, str]], PassPlan]
    # Kinds, each with a namespace, that are read from the store at each pass instead of being
    # cached by every process: those that change often and that no other loop reads (design 0022).
    lists: tuple[tuple[type[KubeObject], str], ...] = ()
    sees: str = ""  # the name of another tick
    fields: tuple[str, ...] = ()  # the fields of the memory that `run` gets, empty for all


@dataclass(frozen=True)
class KeyPolicy:
    """How the work queue of a controller treats its keys. Times are in seconds."""

    timeout: float = 30.0  # after which a stuck sync loses its key
    first_retry: float = 0.005  # the delay of a failed key, which doubles with each failure
    longest_retry: float = 1000.0


@dataclass(frozen=True)
class CloudUse:
    """What a controller calls of the cloud provider, without which it does not run."""

    interface: Literal["load_balancers", "instances_v2", "routes"]
    # Whether its delayed keys only look again at the cloud. Where a test moves the time, they are
    # synced at its end instead of once an interval.
    polls: bool = False


class Controller:
    """The base class of all controllers."""

    name: ClassVar[str]  # upstream's name since 1.27, such as "replicaset-controller"
    # upstream's name before, used for tasks and queues, such as "replicaset"
    short_name: ClassVar[str]
    group: ClassVar[str] = "core"  # the Celery queue that its tasks share, for `celery worker -Q`
    options_type: ClassVar[type[Options]] = NoOptions
    # kinds whose caches it needs, apart from the watched ones
    reads: ClassVar[tuple[type[KubeObject], ...]] = ()
    # the counts that caches keep for it, with the kind that is counted
    tallies: ClassVar[tuple[tuple[type[KubeObject], Tally[Any]], ...]] = ()
    # whether it also needs the caches of every kind with a scale subresource
    reads_scales: ClassVar[bool] = False
    # Whether it needs only the metadata of the kinds that it watches as part of "every kind". They
    # are cached in full if another controller needs more.
    metadata_only: ClassVar[bool] = False
    # whether a sync must see every kind that is served when it begins
    needs_kinds: ClassVar[bool] = False
    disabled_by_default: ClassVar[bool] = False
    # whether it needs guards that only the local store can check
    local_only: ClassVar[bool] = False
    # whether the `state` of a plan is kept for the next sync of the key
    remembers: ClassVar[bool] = False
    # the counters and histograms that its plans add to, shown on /metrics
    metrics: ClassVar[tuple[Counter | Histogram, ...]] = ()
    keys: ClassVar[KeyPolicy] = KeyPolicy()
    cloud: ClassVar[CloudUse | None] = None  # None for a controller that calls no cloud

    def __init__(self, options: Any = None) -> None:
        self.options = options if options is not None else self.options_type()

    @property
    def polls(self) -> bool:
        """Whether its delayed keys only look again at a cloud; see `CloudUse`."""
        return self.cloud is not None and self.cloud.polls

    def draw_from(self, rng: random.Random) -> None:
        """Makes the controller draw everything random from `rng`. Most draw nothing."""

    def watches(self) -> tuple[Watch[Any], ...]:
        """Returns the watches, which say which changes enqueue which keys."""
        return ()

    def ticks(self) -> tuple[Tick, ...]:
        """Returns the periodic loops of the controller."""
        return ()

    def missing_option(self) -> str:
        """Returns why the controller cannot run with its options, "" if it can."""
        return ""

    def concurrent_syncs(self) -> int:
        """Returns the number of keys that may be synced at a time, over all workers."""
        return 5

    def reconcile(self, key: str, view: View) -> Plan:
        """Returns the plan for `key`."""
        raise NotImplementedError(f"{self.name} has watches but no reconcile")


# The cache indexes that every lister has (see kcm.reconcile.indexes).
BY_CONTROLLER = "controller"  # the controlling owner, in the form of `controller_key`
BY_OWNER = "owner"  # the uid of any owner
BY_NODE = "node"  # spec.nodeName of a pod or of a VolumeAttachment
BY_UID = "uid"  # the object's own uid
# a claim that a pod uses or that a PersistentVolume is for, as `namespace/name`; "" for a volume
# that is for none; of ResourceClaims and their templates the entries of
# `kcm.api.resource_v1.pod_claims`
BY_CLAIM = "claim"
# the PersistentVolume of a VolumeAttachment or a claim by its name, and the volume of a CSI driver
# by the name that `kcm.api.volumes.attachments` makes
BY_VOLUME = "volume"
# the class of a PersistentVolumeClaim without a volume, "" for none
BY_WANTED_CLASS = "wantedclass"
ORPHANS = "orphans"  # the namespace of an object without a controlling owner
INDEXES = (
    BY_CONTROLLER,
    BY_OWNER,
    BY_NODE,
    BY_UID,
    BY_CLAIM,
    BY_VOLUME,
    BY_WANTED_CLASS,
    ORPHANS,
)


def controller_key(namespace: str | None, uid: str) -> str:
    """Returns the value in the index BY_CONTROLLER for an owner of this uid in this namespace.

    It includes the namespace, since any client may name any uid: an object in another namespace
    does not belong to the owner.
    """
    return f"{namespace or ''}/{uid}"
