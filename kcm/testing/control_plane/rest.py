"""What a control plane is left with when it has come to rest, and why one does not."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from kcm import errors

_SHOWN = 5


@dataclass(frozen=True)
class Pending:
    """Something that is going to happen by itself, and when."""

    what: str
    when: datetime

    def __str__(self) -> str:
        return f"{self.when:%Y-%m-%dT%H:%M:%SZ} {self.what}"


@dataclass(frozen=True)
class Rest:
    """A moment at which nothing was left to do: the time, and what is pending, the next first."""

    at: datetime
    pending: Sequence[Pending] = ()

    @property
    def next(self) -> Pending | None:
        """What happens next, None if nothing does unless an object changes."""
        return self.pending[0] if self.pending else None

    def __str__(self) -> str:
        if not self.pending:
            return f"at rest at {self.at:%Y-%m-%dT%H:%M:%SZ}, nothing is pending"
        return f"at rest at {self.at:%Y-%m-%dT%H:%M:%SZ}, next: {self.pending[0]}"


class UnsettledError(errors.KcmError, AssertionError):
    """The control plane did not come to rest. The message says what keeps it going."""


def build_rest(now: float, due: Mapping[str, float]) -> Rest:
    """Returns the rest at `now`, with what is pending by the time when it is due. Times are seconds
    since 1970.
    """
    pending = sorted((when, what) for what, when in due.items())
    return Rest(_at(now), tuple(Pending(what, _at(when)) for when, what in pending))


def explain_unrest(
    seconds: float, changes: Counter[str], syncs: Counter[str], also: str
) -> UnsettledError:
    """Returns the error for a control plane that has not come to rest within `seconds`.

    `changes` counts how often each object changed meanwhile, and `syncs` how often each key was
    synced.
    """
    changed = _name_most(changes) or "no object changed"
    synced = _name_most(syncs) or "no key was synced"
    return UnsettledError(
        f"the control plane did not come to rest within {seconds:g} s. Most often changed: "
        f"{changed}. Most often synced: {synced}.{also} If that much work is expected, give "
        "settle() a longer timeout; otherwise two parties probably overwrite each other"
    )


def _name_most(counts: Counter[str]) -> str:
    return ", ".join(f"{name} ({count}x)" for name, count in counts.most_common(_SHOWN))


def _at(moment: float) -> datetime:
    return datetime.fromtimestamp(moment, UTC)
