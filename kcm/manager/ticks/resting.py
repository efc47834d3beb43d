"""Resting loops: those that see another loop's memory, and found nothing to do in it.

Such a loop runs after each pass of the other one. If it finds nothing to do then, there is nothing
to do until the next pass either, and beat sends it no ticks meanwhile (design 0023).

Guarantees: a pass of the other loop that ends while this one runs is not missed, since RESTS_AFTER
identifies the pass whose memory was read. A resting loop may still be run by a tick.
"""

from __future__ import annotations

from collections.abc import Iterable

from kcm.manager.ticks.names import loop_name
from kcm.reconcile.contract import Controller
from kcm.redisio import RedisIO

# Fields of a loop's state in Redis, in addition to the memory of its passes.
ENDED = ".ended"  # the time when its last pass ended, in milliseconds since 1970
RESTS_AFTER = ".rests_after"  # ENDED of the loop that it sees, if it found nothing to do


def list_followed_loops(controllers: Iterable[Controller]) -> dict[str, str]:
    """Returns the names of the loops that are seen by other loops, by the names of the latter."""
    return {
        loop_name(controller, tick): loop_name(controller, seen)
        for controller in controllers
        for tick in controller.ticks()
        for seen in controller.ticks()
        if seen.name == tick.sees
    }


def is_resting(io: RedisIO, loop: str, followed: str) -> bool:
    """Reports whether `loop` found nothing to do after the last pass of the loop `followed`.

    Raises StoreUnavailable.
    """
    rests_after, ended = io.pipeline(
        [
            ("HGET", io.keys.tick_state(loop), RESTS_AFTER),
            ("HGET", io.keys.tick_state(followed), ENDED),
        ]
    )
    return bool(rests_after) and rests_after == ended
