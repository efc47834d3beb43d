"""What a store over REST asks of the Redis that has the work queues."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from kcm.api.scheme import Resource
from kcm.redisio import Fence


@dataclass(frozen=True, slots=True)
class WorkState:
    """What the Redis with the work queues tells a remote store. The defaults are for none."""

    holds: Callable[[Fence], bool] = lambda fence: True  # whether a fence is held
    leads: Callable[[], bool] = lambda: True  # whether writes are allowed at all
    take_token: Callable[[str], bool] = lambda bucket: False  # takes a token of a bucket
    # the resourceVersions up to which the changes of kinds were dispatched
    read_positions: Callable[[Sequence[Resource]], Mapping[Resource, int]] = lambda kinds: {}
