"""Internal leases, for work that only one process may do at a time.

Guarantees: at most one holder's writes pass the fence at any time, even if processes freeze, die or
return. A lease that was lost and acquired again has a new token. `held` becomes false no later than
the lease ends on the server, because it compares this process's monotonic clock with its value
before the call was sent.

Does not guarantee that `held` is still true a moment after it was read: writes that must not be
made twice need the fence (designs 0001 and 0030).
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from dataclasses import dataclass

from kcm import errors
from kcm.clock import Clock, RealClock
from kcm.redisio import Fence, RedisIO

DURATION = 4.0  # seconds after which a lease ends unless it is renewed
RENEW_EVERY = 1.0  # seconds between renewals


class FencedLease:
    """The lease `name` as one holder uses it, in one thread. All threads may read `held` and
    `fence`.

    Raises: ConfigurationError unless `duration` exceeds twice `renew_every`, so that the lease
    survives one lost renewal.
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
        self._holding = _Holding()
        self.seen_holder = ""  # the holder at the last acquire, "" if there was none
        self.seen_status = ""  # the answer to the last acquire: HELD, TAKEN, ASKED or GIVEN

    def try_acquire(self) -> bool:
        """Acquires the lease if it is free or has expired, or renews it if this holder has it.

        Reports whether it is held. Raises: StoreUnavailable; unless a later call succeeds, a held
        lease then expires.
        """
        acquire_all(self._io, self.holder, {self: False}, self._clock)
        return self.held

    def renew(self) -> bool:
        """Renews the lease. Returns False if it has expired or another process has it."""
        holding = self._holding
        if not holding.token:
            return False
        before = self._clock.monotonic()
        answer = self._io.call("lease_renew", *self._args(holding.token), call_id="")[1]
        self._holding = (
            _Holding(holding.token, before + self.duration) if answer == "OK" else _Holding()
        )
        return self.held

    def release(self) -> None:
        """Releases the lease if this holder has it."""
        holding, self._holding = self._holding, _Holding()
        if holding.token:
            self._io.call("lease_release", self.name, holding.token)

    @property
    def held(self) -> bool:
        """Whether the lease is certainly still held."""
        holding = self._holding
        return bool(holding.token) and self._clock.monotonic() < holding.until

    @property
    def fence(self) -> Fence:
        """The fence for writes under this lease.

        Raises: Fenced if the lease was never acquired, or was lost or released.
        """
        if not self._holding.token:
            raise errors.Fenced(f"lease {self.name!r} is not held")
        return Fence(self._io.keys.lease(self.name), "token", self._holding.token)

    def known_token(self) -> str:
        """Returns the token of the lease, "" if it may have expired, as it must then be acquired
        anew.
        """
        return self._holding.token if self.held else ""

    def apply_reply(self, status: str, token: str, holder: str, before: float) -> None:
        """Applies the reply of lease_acquire to a call that was sent at `before` (monotonic)."""
        self.seen_holder, self.seen_status = holder, status
        self._holding = _Holding(token, before + self.duration) if status == "HELD" else _Holding()

    def _args(self, token: str) -> tuple[str, int, str]:
        return (self.name, round(self.duration * 1000), token)

    def acquire_args(self, *, shared: bool = False) -> tuple[str, int, str, str]:
        """Returns the arguments for this lease in a call of lease_acquire."""
        return (*self._args(self.known_token()), "1" if shared else "")


@dataclass(frozen=True)
class _Holding:
    # One object, replaced as a whole, so that readers in other threads never see an old token with
    # a new end.
    token: str = ""
    until: float = 0.0  # the end of the lease, on the monotonic clock


def acquire_all(io: RedisIO, holder: str, leases: Mapping[FencedLease, bool], clock: Clock) -> None:
    """Acquires or renews several leases of one holder in one call. Raises: StoreUnavailable.

    Those that map to true are shared: the holder asks for them if its weight is the greatest, and
    gives them to another with a greater one that asks (design 0067).
    """
    before = clock.monotonic()
    args = [part for lease, shared in leases.items() for part in lease.acquire_args(shared=shared)]
    _, *reply = io.call("lease_acquire", holder, *args)
    answers = zip(reply[::3], reply[1::3], reply[2::3], strict=True)
    for lease, (status, token, current) in zip(leases, answers, strict=True):
        lease.apply_reply(status, token, current, before)


def check_periods(name: str, duration: float, renew_every: float) -> None:
    """Raises ConfigurationError for periods with which a lease cannot be held."""
    if renew_every <= 0:
        raise errors.ConfigurationError(
            f"lease {name!r}: renew_every {renew_every} s must be greater than 0"
        )
    if duration <= 2 * renew_every:
        raise errors.ConfigurationError(
            f"lease {name!r}: duration {duration} s must exceed twice renew_every ({renew_every} s)"
        )


def new_holder(what: str) -> str:
    """Returns a holder name that is unique to this process: `<what>_<uuid>`."""
    return f"{what}_{uuid.uuid4()}"
