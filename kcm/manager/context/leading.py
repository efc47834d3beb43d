"""Whether this kcm leads on another API server, which all of its processes read in Redis.

The manager that holds the Lease says so after each renewal, for the renew deadline from before the
request. So when the Lease is lost, whatever happened to that manager, no process writes after the
deadline, and nobody else may lead before the lease duration, which is longer (design 0007).
"""

from __future__ import annotations

from kcm.clock import Clock
from kcm.redisio import RedisIO


class Leadership:
    """The word of the leading manager. `deadline` is the renew deadline in seconds."""

    def __init__(self, io: RedisIO, clock: Clock, deadline: float) -> None:
        self._io = io
        self._clock = clock
        self._deadline = deadline

    def claim(self, since: float) -> None:
        """Says that this kcm leads. `since` is the monotonic time before the renewal.

        Raises StoreUnavailable.
        """
        left = round((since + self._deadline - self._clock.monotonic()) * 1000)
        if left > 0:
            self._io.execute("SET", self._io.keys.leading(), "1", "PX", left)

    def resign(self) -> None:
        """Says that this kcm leads no more. Raises StoreUnavailable."""
        # It expires at once: the user of workers may not delete it (deploy/redis/users.acl).
        self._io.execute("SET", self._io.keys.leading(), "0", "PX", 1)

    def leads(self) -> bool:
        """Reports whether this kcm leads. Raises StoreUnavailable."""
        return bool(self._io.execute("GET", self._io.keys.leading()) == b"1")

    def close(self) -> None:
        """Closes the connections."""
        self._io.close()
