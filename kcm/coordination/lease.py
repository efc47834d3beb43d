"""Internal leases: who may do a thing that only one process does at a time.

Guarantees: at most one holder's writes pass the fence at any time, whatever freezes, dies or comes
back; every uninterrupted term has a token of its own. `held` turns false no later than the term
ends on the server, because it rests on this process's monotonic clock, read before the call was
sent.

Does not guarantee that `held` is still true a moment after it was looked at: what must not happen
twice carries the fence (designs 0001 and 0030).
"""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from dataclasses import dataclass

from kcm import errors
from kcm.clock import Clock, RealClock
from kcm.redisio import Fence, RedisIO

DURATION = 4.0  # seconds that a term lasts unless renewed
RENEW_EVERY = 1.0  # seconds between renewals


class FencedLease:
    """One holder's view of the lease `name`. One thread uses it; any may read `held` and `fence`.

    Raises: ConfigurationError unless `duration` exceeds twice `renew_every`, so that one lost
    renewal does not end the term.
    """

    def __init__(
        self,
        io: RedisIO,
        name: str,
        holder: str,
        *,
        duration: float = DURATION,
        renew_every: float = RENEW_EVERY,
        clock: Clock | None = None,
    ) -> None:
        check_periods(name, duration, renew_every)
        self.name = name
        self.holder = holder
        self.duration = duration
        self.renew_every = renew_every
        self._io = io
        self._clock = clock or RealClock()
        self._term = _Term()
        self.seen_holder = ""  # at the last acquire; '' when nobody held it

    def try_acquire(self) -> bool:
        """Takes the lease if it is free or over, or renews a running term of this holder.

        Returns whether it is held. Raises: StoreUnavailable; a term that was held then runs out by
        itself.
        """
        acquire_all(self._io, self.holder, [self], self._clock)
        return self.held

    def renew(self) -> bool:
        """Extends the running term; returns false if it is over or someone else's."""
        term = self._term
        if not term.token:
            return False
        before = self._clock.monotonic()
        answer = self._io.call("lease_renew", *self._args(term.token), call_id="")[1]
        self._term = _Term(term.token, before + self.duration) if answer == "OK" else _Term()
        return self.held

    def release(self) -> None:
        """Gives the lease up if this holder has it."""
        term, self._term = self._term, _Term()
        if term.token:
            self._io.call("lease_release", self.name, term.token)

    @property
    def held(self) -> bool:
        """Reports whether the term surely still runs."""
        term = self._term
        return bool(term.token) and self._clock.monotonic() < term.until

    @property
    def fence(self) -> Fence:
        """The fence that writes under this lease carry.

        Raises: Fenced if no term was acquired, or it was lost or released.
        """
        if not self._term.token:
            raise errors.Fenced(f"lease {self.name!r} is not held")
        return Fence(self._io.keys.lease(self.name), "token", self._term.token)

    def known_token(self) -> str:
        """Returns the running term's token; '' once it may be over, for then a new term is due."""
        return self._term.token if self.held else ""

    def note(self, status: str, token: str, holder: str, before: float) -> None:
        """Takes over an answer of lease_acquire to a call that was sent at `before` (monotonic)."""
        self.seen_holder = holder
        self._term = _Term(token, before + self.duration) if status == "HELD" else _Term()

    def _args(self, token: str) -> tuple[str, int, str]:
        return (self.name, round(self.duration * 1000), token)

    def acquire_args(self) -> tuple[str, int, str]:
        """Returns this lease's part of a lease_acquire call."""
        return self._args(self.known_token())


@dataclass(frozen=True)
class _Term:
    # One object, replaced as a whole: readers in other threads never see a
    # token of one term with the end of another.
    token: str = ""
    until: float = 0.0  # monotonic


def acquire_all(io: RedisIO, holder: str, leases: Sequence[FencedLease], clock: Clock) -> None:
    """Acquires or renews several leases of one holder in one call. Raises: StoreUnavailable."""
    before = clock.monotonic()
    args = [part for lease in leases for part in lease.acquire_args()]
    _, *reply = io.call("lease_acquire", holder, *args)
    answers = zip(reply[::3], reply[1::3], reply[2::3], strict=True)
    for lease, (status, token, current) in zip(leases, answers, strict=True):
        lease.note(status, token, current, before)


def check_periods(name: str, duration: float, renew_every: float) -> None:
    """Raises ConfigurationError for periods that cannot hold a lease."""
    if renew_every <= 0:
        raise errors.ConfigurationError(
            f"lease {name!r}: renew_every {renew_every} s must be greater than 0"
        )
    if duration <= 2 * renew_every:
        raise errors.ConfigurationError(
            f"lease {name!r}: duration {duration} s must exceed twice renew_every ({renew_every} s)"
        )


def new_holder(what: str) -> str:
    """Returns a holder name that no other process or restart shares."""
    return f"{what}_{uuid.uuid4()}"
