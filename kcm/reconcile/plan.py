"""Plans: what a controller wants done, as data (DESIGN D8).

A controller's `reconcile` is pure: it looks at a view and returns a `Plan`; the
runner carries it out. So controllers are tested as tables (objects in, plan
out), and writes that stand together reach Redis together.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from kcm.api.scheme import Resource
from kcm.apimachinery.meta_v1 import KubeObject
from kcm.reconcile.counters import Counts
from kcm.store import DeleteOptions, Guard
from kcm.store.sweeping import Swept

AS_USUAL = DeleteOptions()


@dataclass(frozen=True)
class Create:
    """Create an object."""

    obj: KubeObject
    guards: tuple[Guard, ...] = ()


@dataclass(frozen=True)
class Update:
    """Turn the cached `old` into `new`, its status excepted."""

    new: KubeObject
    old: KubeObject
    guards: tuple[Guard, ...] = ()


@dataclass(frozen=True)
class UpdateStatus:
    """Give the cached `old` the status of `new`."""

    new: KubeObject
    old: KubeObject
    guards: tuple[Guard, ...] = ()


@dataclass(frozen=True)
class Delete:
    """Delete the cached `old`. One that is gone already counts as done."""

    old: KubeObject
    options: DeleteOptions = AS_USUAL
    guards: tuple[Guard, ...] = ()


@dataclass(frozen=True)
class Patch:
    """Change the object that the cached `old` shows, as it is by then.

    `change` turns the object into what it shall be, or returns it as it is when
    there is nothing to do; it must be right for any later version, too, for it
    is applied to the present one when others were faster. An object that is
    gone already counts as done. The only way to change an object of which the
    cache holds no more than its metadata.
    """

    old: KubeObject
    change: Callable[[KubeObject], KubeObject]
    guards: tuple[Guard, ...] = ()
    status: bool = False  # whether `change` is to the status, and to nothing else


@dataclass(frozen=True)
class DeleteCollection:
    """Delete all objects of a kind in a namespace, as the store has them by then.

    For what no cache holds. What stays, and why, is in the outcome's `swept`.
    """

    resource: Resource
    namespace: str


@dataclass(frozen=True)
class Bind:
    """Give the cached pod `old` to the node that `new` names: spec and status in one write,
    past the rules of updates, which forbid it. Only for the version that was seen."""

    new: KubeObject
    old: KubeObject
    guards: tuple[Guard, ...] = ()


Write = Create | Update | UpdateStatus | Patch | Bind | Delete


@dataclass(frozen=True)
class Batch:
    """Writes that belong together.

    With `slow_start`, they go out in batches of 1, 2, 4 ... and the rest is left
    out after the first batch with a failure, so that a quota or a bad template
    costs a handful of refusals instead of thousands (upstream's slowStartBatch).
    With `essential`, a failure ends the plan: what comes behind the batch, the
    status included, was planned for the case that it succeeds.
    With `optional`, a failure is told to `Plan.report` and is no failure of the key.
    """

    writes: Sequence[Write]
    slow_start: bool = False
    essential: bool = False
    optional: bool = False


@dataclass(frozen=True)
class Failure:
    """A write that did not happen."""

    write: Write
    error: Exception
    optional: bool = False  # of a batch whose failures are none of the key


@dataclass(frozen=True)
class Outcome:
    """What became of a plan's writes."""

    done: Sequence[tuple[Write, KubeObject]] = ()
    failures: Sequence[Failure] = ()
    skipped: int = 0  # left out after a failure
    swept: Sequence[Swept] = ()  # of the collections, in their order

    @property
    def error(self) -> Exception | None:
        return next((f.error for f in self.failures if not f.optional), None)


@dataclass(frozen=True)
class Event:
    """A Kubernetes Event about `about`, recorded after the writes."""

    about: KubeObject
    type: Literal["Normal", "Warning"]
    reason: str
    message: str
    field_path: str = ""  # the part of the object it is about, such as one container


@dataclass(frozen=True)
class Limit:
    """The rate of a token bucket that `Guard.token` draws from; a rate of 0 gives nothing."""

    per_second: float
    burst: float = 1.0


@dataclass
class Plan:
    """What to do for one key.

    Order: `collections`, then `batches`, then `status` (computed from the outcome of
    both), then `events`, then those that `report` derives from the outcome, then the
    plan that `after` makes of the outcome, unless a write failed. A failed write, or
    `error`, makes the key retried with backoff after all of that; else
    `requeue_after` seconds, where given, add it again.

    Several writes on one object build on each other; the later ones are left out
    when one failed.
    """

    collections: Sequence[DeleteCollection] = ()
    batches: list[Batch] = field(default_factory=list)
    status: Callable[[Outcome], UpdateStatus | None] | None = None
    events: list[Event] = field(default_factory=list)
    report: Callable[[Outcome], Sequence[Event]] | None = None
    after: Callable[[Outcome], Plan] | None = None  # syncs only, not ticks
    requeue_after: float | None = None
    error: Exception | None = None
    # What to remember until the next pass of a tick, or sync of a key (`Controller.remembers`).
    state: Mapping[str, str] | None = None
    counts: Counts = field(default_factory=dict)  # see `kcm.reconcile.counters`
    counted: Callable[[Outcome], Counts] | None = None  # what depends on what was written
    # Ticks only: rates that token buckets have from before the writes on; None removes one.
    limits: Mapping[str, Limit | None] = field(default_factory=dict)
    wakes: tuple[str, ...] = ()  # ticks only: loops of this controller to run right afterwards

    def then(
        self,
        *writes: Write,
        slow_start: bool = False,
        essential: bool = False,
        optional: bool = False,
    ) -> Plan:
        """Add writes behind those planned so far."""
        if writes:
            self.batches.append(Batch(writes, slow_start, essential, optional))
        return self

    def tell(self, about: KubeObject, reason: str, message: str, *, warning: bool = False) -> Plan:
        """Add an Event."""
        self.events.append(Event(about, "Warning" if warning else "Normal", reason, message))
        return self

    @property
    def writes(self) -> list[Write]:
        """All planned writes, the status excepted."""
        return [write for batch in self.batches for write in batch.writes]
