"""The contract between a controller and the machinery that runs it.

A controller is one class in one module: its name, its options, what it watches
(event to key), what it reads, and `reconcile` (key and view to plan), or ticks
for what happens periodically. It does no I/O, keeps nothing between calls, may
run in any process and twice; one key is never run by two workers at a time.

Modelled after controller-runtime pkg/reconcile and client-go's controllers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, ClassVar, Protocol, TypeVar

from pydantic import BaseModel, ConfigDict

from kcm.api.core_v1 import Pod
from kcm.apimachinery.labels import Selector
from kcm.apimachinery.meta_v1 import KubeObject
from kcm.reconcile.counters import Counter, Histogram
from kcm.reconcile.plan import Plan
from kcm.store.resource_metrics.answers import Value
from kcm.store.resource_metrics.usage import Measured

T = TypeVar("T", bound=KubeObject)
Cached_co = TypeVar("Cached_co", bound=KubeObject, covariant=True)


class Options(BaseModel):
    """Base of a controller's tunables: each field is a flag (`--kebab-case`), an environment
    variable (`KCM_UPPER_CASE`) and a line of the reference; its description says the unit."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class NoOptions(Options):
    """A controller without tunables."""


class Lister(Protocol[Cached_co]):
    """Cached objects of one kind. What it returns is shared: never change it."""

    def get(self, key: str) -> Cached_co:
        """The object. Raises: NotFound."""
        ...

    def find(self, key: str) -> Cached_co | None:
        """The object, or None."""
        ...

    def by_index(self, name: str, value: str) -> Sequence[Cached_co]:
        """The objects under `value` in the index `name`; `INDEXES` lists the names."""
        ...

    def list(
        self, namespace: str | None = None, selector: Selector | None = None
    ) -> Sequence[Cached_co]:
        """The objects of a namespace, or of all."""
        ...


class Metrics(Protocol):
    """What was measured. Unlike a lister it is not cached: it is asked for at each call.

    Raises, each: StoreUnavailable.
    """

    def pods(self, pods: Iterable[Pod]) -> Mapping[str, Measured]:
        """What those of the pods that have figures used, by key."""
        ...

    def of_pods(self, metric: str, pods: Sequence[Pod], selector: Selector) -> Mapping[str, Value]:
        """A metric of those of the pods that have it, by key."""
        ...

    def of_objects(
        self, resource: str, metric: str, keys: Iterable[str], selector: Selector
    ) -> Mapping[str, Value]:
        """A metric of those of the objects that have it, by key."""
        ...

    def external(
        self, namespace: str, metric: str, selector: Selector
    ) -> Sequence[tuple[Mapping[str, str], Value]]:
        """Every series of a metric of nothing in the cluster, with its labels."""
        ...


class View(Protocol):
    """All that a controller may look at."""

    @property
    def now(self) -> datetime:
        """The time of this sync, aware and in UTC."""
        ...

    @property
    def memory(self) -> Mapping[str, str]:
        """What the last sync of this key remembered, for a controller that `remembers`."""
        ...

    @property
    def metrics(self) -> Metrics:
        """What was measured."""
        ...

    def lister(self, model: type[T]) -> Lister[T]:
        """The cache of a kind. Raises LookupError for one that `reads` does not name."""
        ...

    def position(self, model: type[T]) -> int:
        """The resourceVersion up to which the kind's cache holds every write; read it before
        the lister, for the cache moves on. Raises: LookupError as `lister`."""
        ...


class PassView(View, Protocol):
    """What a pass of a periodic loop may look at besides."""

    @property
    def moment(self) -> float:
        """Seconds on the clock that all hosts share (Redis'): for times to be remembered."""
        ...

    @property
    def epoch(self) -> str:
        """Changes when the store was restarted or failed over (design 0003)."""
        ...


@dataclass(frozen=True)
class Change:
    """What happened to an object: `old` is None when it was added, `new` when deleted."""

    old: KubeObject | None
    new: KubeObject | None

    @property
    def object(self) -> KubeObject:
        """The object as it is now, or last was."""
        found = self.new if self.new is not None else self.old
        assert found is not None
        return found


KeyFunction = Callable[[Change, View], Iterable[str]]


def newest(obj: T, view: View) -> T:
    """The object as the cache has it, where that is newer than a change of it: what several
    changes in a row came to. For key functions that look at states."""
    found = view.lister(type(obj)).find(obj.key)
    if found is None:
        return obj  # gone, or not yet come; a key too many does no harm
    ours, theirs = obj.metadata.resource_version or "", found.metadata.resource_version or ""
    newer = theirs.isdecimal() and ours.isdecimal() and int(theirs) > int(ours)
    return found if newer else obj


@dataclass(frozen=True)
class Watch:
    """Which keys a change of a kind touches. `model` None: every kind there is."""

    model: type[KubeObject] | None
    keys: KeyFunction


def own_key(change: Change, view: View) -> Iterable[str]:
    """The changed object's own key."""
    return (change.object.key,)


@dataclass(frozen=True)
class Tick:
    """A periodic loop of a controller (design 0023).

    `run` gets the view and what the last pass remembered, and returns a plan
    whose `state`, where given, replaces that memory. A loop that `sees` another one of
    its controller gets that one's memory, and has none of its own.
    """

    name: str
    every: float  # seconds
    run: Callable[[PassView, Mapping[str, str]], Plan]
    # Read from the store at each pass, not cached by every process: kinds that change much
    # and that nobody else reads (design 0022). With each, the namespace.
    lists: tuple[tuple[type[KubeObject], str], ...] = ()
    sees: str = ""  # another tick's name
    fields: tuple[str, ...] = ()  # the part of the memory that is wanted; all when empty


class Controller:
    """Base of all controllers."""

    name: ClassVar[str]  # as upstream since 1.27, e.g. "replicaset-controller"
    short_name: ClassVar[str]  # as upstream before, in task and queue names, e.g. "replicaset"
    group: ClassVar[str] = "core"  # the Celery queue its tasks share, for `celery worker -Q`
    options_type: ClassVar[type[Options]] = NoOptions
    reads: ClassVar[tuple[type[KubeObject], ...]] = ()  # caches besides the watched kinds
    reads_scales: ClassVar[bool] = False  # caches of every kind that can be scaled, too
    # Of kinds that it does not name, but watches as one of all, metadata is enough, unless
    # another controller reads more.
    metadata_only: ClassVar[bool] = False
    disabled_by_default: ClassVar[bool] = False
    local_only: ClassVar[bool] = False  # needs guards that another API server cannot check
    remembers: ClassVar[bool] = False  # whether a plan's `state` is kept for the key's next sync
    metrics: ClassVar[tuple[Counter | Histogram, ...]] = ()  # what its plans count, for /metrics
    sync_timeout: ClassVar[float] = 30.0  # seconds until a key is taken away from a stuck sync

    def __init__(self, options: Any = None) -> None:
        self.options = options if options is not None else self.options_type()

    def watches(self) -> tuple[Watch, ...]:
        """What adds which key."""
        return ()

    def ticks(self) -> tuple[Tick, ...]:
        """What runs periodically."""
        return ()

    def concurrent_syncs(self) -> int:
        """Keys in flight at a time, over all workers."""
        return 5

    def reconcile(self, key: str, view: View) -> Plan:
        """What to do for `key` now."""
        raise NotImplementedError(f"{self.name} has watches but no reconcile")


# Names of the cache indexes that every lister has (see kcm.reconcile.indexes).
BY_CONTROLLER = "controller"  # the controlling owner, as `controller_key` writes it
BY_OWNER = "owner"  # uid of any owner
BY_NODE = "node"  # spec.nodeName of a pod
BY_UID = "uid"  # the object's own uid
ORPHANS = "orphans"  # namespace, of objects without a controlling owner
INDEXES = (BY_CONTROLLER, BY_OWNER, BY_NODE, BY_UID, ORPHANS)


def controller_key(namespace: str | None, uid: str) -> str:
    """What the index BY_CONTROLLER has for the owner of this uid, and for objects in this
    namespace: those elsewhere that name it, as anybody may, are none of its own."""
    return f"{namespace or ''}/{uid}"
