"""Plans: what a controller wants done, as data (DESIGN D8).

A controller's `reconcile` is pure: it looks at a view and returns a `Plan`; the
runner carries it out. So controllers are tested as tables (objects in, plan
out), and writes that stand together reach Redis together.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from kcm.api.meta_v1 import KubeObject
from kcm.store import DeleteOptions, Guard

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


Write = Create | Update | UpdateStatus | Patch | Delete


@dataclass(frozen=True)
class Batch:
    """Writes that belong together.

    With `slow_start`, they go out in batches of 1, 2, 4 ... and the rest is left
    out after the first batch with a failure, so that a quota or a bad template
    costs a handful of refusals instead of thousands (upstream's slowStartBatch).
    With `essential`, a failure ends the plan: what comes behind the batch, the
    status included, was planned for the case that it succeeds.
    """

    writes: Sequence[Write]
    slow_start: bool = False
    essential: bool = False


@dataclass(frozen=True)
class Failure:
    """A write that did not happen."""

    write: Write
    error: Exception


@dataclass(frozen=True)
class Outcome:
    """What became of a plan's writes."""

    done: Sequence[tuple[Write, KubeObject]] = ()
    failures: Sequence[Failure] = ()
    skipped: int = 0  # left out after a failure

    @property
    def error(self) -> Exception | None:
        return self.failures[0].error if self.failures else None


@dataclass(frozen=True)
class Event:
    """A Kubernetes Event about `about`, recorded after the writes."""

    about: KubeObject
    type: Literal["Normal", "Warning"]
    reason: str
    message: str


@dataclass
class Plan:
    """What to do for one key.

    Order: `batches`, then `status` (computed from the outcome of the batches),
    then `events`, then those that `report` derives from the outcome. A failed
    write, or `error`, makes the key retried with backoff after all of that;
    else `requeue_after` seconds, where given, add it again.

    Several writes on one object build on each other; the later ones are left out
    when one failed.
    """

    batches: list[Batch] = field(default_factory=list)
    status: Callable[[Outcome], UpdateStatus | None] | None = None
    events: list[Event] = field(default_factory=list)
    report: Callable[[Outcome], Sequence[Event]] | None = None
    requeue_after: float | None = None
    error: Exception | None = None
    state: Mapping[str, str] | None = None  # ticks only: what to remember until the next pass

    def then(self, *writes: Write, slow_start: bool = False, essential: bool = False) -> Plan:
        """Add writes behind those planned so far."""
        if writes:
            self.batches.append(Batch(writes, slow_start, essential))
        return self

    def tell(self, about: KubeObject, reason: str, message: str, *, warning: bool = False) -> Plan:
        """Add an Event."""
        self.events.append(Event(about, "Warning" if warning else "Normal", reason, message))
        return self

    @property
    def writes(self) -> list[Write]:
        """All planned writes, the status excepted."""
        return [write for batch in self.batches for write in batch.writes]


DONE = Plan()
