"""Plans: the writes and Events that a controller wants, as data.

A controller's `reconcile` is pure: it reads a view and returns a `Plan`, and the runner carries the
plan out. So controllers are tested as tables of objects and plans, and writes that belong together
reach Redis together. See docs/designs/0008-controllers-return-plans.md.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, Literal, Self

from kcm.api.scheme import Resource
from kcm.apimachinery.meta_v1 import Kind, KubeObject
from kcm.reconcile.cloudprovider.calls import Answer, CloudCall
from kcm.reconcile.counters import Counts
from kcm.store import DeleteOptions, Guard
from kcm.store.writes.collections import CollectionDeletion, Rewriting

DEFAULT_DELETE_OPTIONS = DeleteOptions()


@dataclass(frozen=True)
class Create:
    """Creates an object, under its name or a generated one."""

    obj: KubeObject
    guards: tuple[Guard, ...] = ()


@dataclass(frozen=True)
class Update:
    """Replaces the cached object `old` by `new`, except its status.

    It fails if `old` is not the latest version.
    """

    new: KubeObject
    old: KubeObject
    guards: tuple[Guard, ...] = ()


@dataclass(frozen=True)
class UpdateStatus:
    """Replaces the status of the cached object `old` by that of `new`.

    If `old` is not the latest version, it is tried once more on the latest one.
    """

    new: KubeObject
    old: KubeObject
    guards: tuple[Guard, ...] = ()


@dataclass(frozen=True)
class Delete:
    """Deletes the cached object `old`. An object that is already gone counts as deleted."""

    old: KubeObject
    options: DeleteOptions = DEFAULT_DELETE_OPTIONS
    guards: tuple[Guard, ...] = ()


@dataclass(frozen=True)
class Patch(Generic[Kind]):
    """Applies the function `change` to the latest version of the cached object `old`.

    `change` returns the changed object, or its argument if there is nothing to change. It must be
    right for any later version as well, since it is applied again when another write came first. An
    object that is gone counts as patched. A patch is the only way to change an object of which only
    metadata is cached.
    """

    old: Kind
    change: Callable[[Kind], Kind]
    guards: tuple[Guard, ...] = ()
    status: bool = False  # whether `change` changes the status, and nothing else
    finalize: bool = False  # whether it changes a namespace's spec.finalizers, and nothing else
    scale: bool = False  # whether it changes the number of replicas, and nothing else


@dataclass(frozen=True)
class RequireDeleting:
    """Reads the cached object `old`, which is being deleted, from the store.

    If it is gone, the steps behind are left out. If another object has its name by now, the sync
    ends, and is repeated with newer caches.

    It comes before steps that name a namespace only, so that they do not meet its successor.
    """

    old: KubeObject


@dataclass(frozen=True)
class DeleteCollection:
    """Deletes all objects of a kind in a namespace that the store has at that time.

    It needs no cache. `Outcome.deletions` has the objects that are left, and the reason.
    """

    resource: Resource
    namespace: str


@dataclass(frozen=True)
class RewriteObjects:
    """Rewrites those of the next `count` objects of a kind that are not in its storage version.

    `resource` is the storage version, and `after` the key of the last object that was looked at
    before, "" at the start. It needs no cache. `Outcome.rewritings` has the results.
    """

    resource: Resource
    after: str
    count: int


@dataclass(frozen=True)
class Bind:
    """Binds the cached pod `old` to the node in the spec of `new`.

    Spec and status are written at once, without the rules of updates, which forbid it. It fails if
    `old` is not the latest version.
    """

    new: KubeObject
    old: KubeObject
    guards: tuple[Guard, ...] = ()


@dataclass(frozen=True)
class Approve:
    """Sets the conditions of the cached signing request `old` to those of `new`.

    It is written through the subresource for approvals, since a status update may not approve. It
    fails if `old` is not the latest version.
    """

    new: KubeObject
    old: KubeObject
    guards: tuple[Guard, ...] = ()


Write = Create | Update | UpdateStatus | Patch[Any] | Bind | Approve | Delete


@dataclass(frozen=True)
class Batch:
    """Writes that belong together.

    With `slow_start`, the writes are sent in batches of 1, 2, 4 and so on, and the rest is skipped
    after the first batch with a failure. A quota or a bad template then costs a handful of failed
    writes instead of thousands (upstream's slowStartBatch). With `essential`, a failure ends the
    plan, without its status: they assume that the batch succeeds. With `optional`, a failure is
    passed to `events_after` and `plan_after`, but does not fail the key.
    """

    writes: Sequence[Write]
    slow_start: bool = False
    essential: bool = False
    optional: bool = False


@dataclass(frozen=True)
class Failure:
    """A write that failed."""

    write: Write
    error: Exception
    optional: bool = False  # whether its batch is optional


@dataclass(frozen=True)
class Outcome:
    """The results of a plan's writes."""

    done: Sequence[tuple[Write, KubeObject]] = ()  # each write with the object as it was stored
    failures: Sequence[Failure] = ()
    skipped: int = 0  # writes that were not tried after a failure
    deletions: Sequence[CollectionDeletion] = ()  # of the steps that delete collections, in order
    rewritings: Sequence[Rewriting] = ()  # of the steps that rewrite objects, in order
    answers: Sequence[Answer] = ()  # the cloud's answers to `Plan.calls`, in order

    @property
    def error(self) -> Exception | None:
        """The first error that fails the key, or None."""
        return next((f.error for f in self.failures if not f.optional), None)

    @property
    def causes_sync(self) -> bool:
        """Reports whether all went well and some object was created or deleted.

        A controller that watches such objects is going to sync the key again.
        """
        if self.failures or self.skipped:
            return False
        return any(isinstance(write, Create | Delete) for write, _ in self.done)


@dataclass(frozen=True)
class Event:
    """A Kubernetes Event about the object `about`. It is recorded after the writes."""

    about: KubeObject
    type: Literal["Normal", "Warning"]
    reason: str
    message: str
    field_path: str = ""  # the field of the object that it is about, such as one container


@dataclass(frozen=True)
class Limit:
    """The rate of a token bucket from which a guard takes tokens. A rate of 0 gives no tokens."""

    per_second: float
    burst: float = 1.0


def _no_status(outcome: Outcome) -> UpdateStatus | None:
    return None


def _no_events(outcome: Outcome) -> Sequence[Event]:
    return ()


def _no_counts(outcome: Outcome) -> Counts:
    return {}


Step = Batch | RequireDeleting | DeleteCollection | RewriteObjects


@dataclass
class _Plan:
    """What the plan of a sync and that of a pass have.

    The steps are carried out in order. Then come `events`, and the Events and counts that
    `events_after` and `counts_after` compute from the outcome. The `*_after` functions are pure:
    they get the outcome and change nothing.

    Several writes to one object build on each other. After a failure the later ones are skipped.
    """

    steps: list[Step] = field(default_factory=list)
    events: list[Event] = field(default_factory=list)
    events_after: Callable[[Outcome], Sequence[Event]] = _no_events
    error: Exception | None = None
    # The memory for the next sync of the key (see `Controller.remembers`), or for the next pass of
    # the tick. None keeps the memory as it is.
    state: Mapping[str, str] | None = None
    counts: Counts = field(default_factory=dict)  # see `kcm.reconcile.counters`
    counts_after: Callable[[Outcome], Counts] = _no_counts

    def then(
        self,
        *writes: Write,
        slow_start: bool = False,
        essential: bool = False,
        optional: bool = False,
    ) -> Self:
        """Appends a batch of writes, and returns the plan."""
        if writes:
            self.steps.append(Batch(writes, slow_start, essential, optional))
        return self

    def record(
        self, about: KubeObject, reason: str, message: str, *, warning: bool = False
    ) -> Self:
        """Adds an Event, and returns the plan."""
        self.events.append(Event(about, "Warning" if warning else "Normal", reason, message))
        return self

    def status_update(self, outcome: Outcome) -> UpdateStatus | None:
        """Returns the status to write after the steps, or None if there is none to write."""
        return None

    @property
    def batches(self) -> list[Batch]:
        """The steps that are batches of writes."""
        return [step for step in self.steps if isinstance(step, Batch)]

    @property
    def writes(self) -> list[Write]:
        """All writes of the batches, without that of the status."""
        return [write for batch in self.batches for write in batch.writes]


@dataclass
class Plan(_Plan):
    """What to do for one key. `Plan()` means that there is nothing to do.

    After the steps come the status that `status_after` computes from their outcome, the Events,
    `calls`, and the plan that `plan_after` computes. After a failed write, there are no calls and
    no further plan. Only `plan_after` gets the answers to the calls. A call that failed does not
    fail the key (design 0037).

    A failed write, or `error`, makes the key retried with back-off. Otherwise the key is added
    again after `requeue_after` seconds, unless it is None.
    """

    status_after: Callable[[Outcome], UpdateStatus | None] = _no_status
    # Whether the status is left to the next sync when the writes cause one (design 0036). Only for
    # plans whose controller watches everything that they create and delete.
    status_can_wait: bool = False
    plan_after: Callable[[Outcome], Plan] | None = None
    # Calls to the cloud that do not depend on each other. The key keeps its lease and its place
    # among the concurrent syncs until they are answered.
    calls: Sequence[CloudCall] = ()
    requeue_after: float | None = None

    def status_update(self, outcome: Outcome) -> UpdateStatus | None:
        """Returns the status to write after the steps. Returns None if there is none to write, or
        if the next sync writes it.
        """
        if self.status_can_wait and outcome.causes_sync:
            return None
        return self.status_after(outcome)


@dataclass
class PassPlan(_Plan):
    """What a pass of a periodic loop does. A failed write is left to a later pass."""

    # The rates of token buckets, which are set before the writes; None removes one.
    limits: Mapping[str, Limit | None] = field(default_factory=dict)
    wakes: tuple[str, ...] = ()  # ticks of this controller to run right after it
    # What may be due at a later pass although no object changes, such as nodes that may miss a
    # heartbeat; () for nothing, None if it is not known. A control plane whose clock a test
    # advances leaves out the passes that wait for nothing.
    waits: tuple[str, ...] | None = None


AnyPlan = Plan | PassPlan
