"""Loops that rest: those that see another loop's memory, and found nothing to do in it.

Such a loop runs after each pass of the other one. When it finds nothing to do then, there is
nothing until the next pass either, and beat sends it no ticks meanwhile (design 0023).

Guarantees: a pass of the other loop that ends while this one runs is not missed, since the mark
names the pass whose memory was read. Does not guarantee that a resting loop is not run.
"""

from __future__ import annotations

from collections.abc import Iterable

from kcm.component.loop_names import loop_name
from kcm.reconcile.contract import Controller
from kcm.redisio import RedisIO

# Fields of a loop's state in Redis, besides what its passes remember.
ENDED = ".ended"  # when its last pass ended, in milliseconds since 1970
RESTS_AFTER = ".rests_after"  # that time of the loop that it sees, when there was nothing to do


def list_followed_loops(controllers: Iterable[Controller]) -> dict[str, str]:
    """Returns the loops that see another loop, each with the other's name."""
    return {
        loop_name(controller, tick): loop_name(controller, seen)
        for controller in controllers
        for tick in controller.ticks()
        for seen in controller.ticks()
        if seen.name == tick.sees
    }


def is_resting(io: RedisIO, loop: str, followed: str) -> bool:
    """Reports whether `loop` has done what the last pass of the loop `followed` left it.

    Raises StoreUnavailable.
    """
    rests_after, ended = io.pipeline(
        [
            ("HGET", io.keys.tick_state(loop), RESTS_AFTER),
            ("HGET", io.keys.tick_state(followed), ENDED),
        ]
    )
    return bool(rests_after) and rests_after == ended
