"""The master fails over in each way, under clients that keep every acknowledgement."""

from __future__ import annotations

from pathlib import Path

import pytest

from kcm.settings import Settings
from tests.chaos.failovers import FAULTS, check, running_rig

pytestmark = pytest.mark.chaos


@pytest.mark.parametrize("durability", ["local", "replicated"])
@pytest.mark.parametrize("fault", FAULTS)
def test_nothing_is_lost_but_what_the_page_says(
    tmp_path: Path, fault: str, durability: str
) -> None:
    replicated = durability == "replicated"
    with running_rig(tmp_path, min_replicas=int(replicated)) as rig:
        settings = Settings(redis_url=rig.url, redis_durability=durability)
        outcome = check(rig, settings, FAULTS[fault], 2.0)
    assert (outcome.given_twice, outcome.ghosts) == (0, 0), outcome
    if replicated or fault == "paused":
        assert outcome.lost == 0, outcome
