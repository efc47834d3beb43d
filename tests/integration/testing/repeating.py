"""A run of a control plane that can be repeated.

As a program, it prints a digest of the run with the seed that is its argument.
"""

from __future__ import annotations

import hashlib
import json
import sys

from kcm.testing import ControlPlane, History
from tests.integration.testing.objects import CRON_TABS, cron_job, deployment

CONTESTED = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "contested"}}


def run(seed: int) -> History:
    """Returns all writes of an eventful hour."""
    with ControlPlane(seed=seed, nodes=3) as plane:
        plane.apply(deployment("web", replicas=5))
        plane.apply(cron_job("report", "*/10 * * * *"))
        plane.settle()
        plane.apply(CRON_TABS)
        plane.wait_for("deployment/web", condition="Available")
        plane.clock.advance("30m")
        plane.delete(f"pod/{plane.list('pods', selector='app=web')[0]['metadata']['name']}")
        plane.apply(deployment("web", replicas=3))
        with plane.chaos(seed=seed):
            plane.clock.advance("10m")
        plane.clock.advance("20m")
        return plane.history()


def digest(history: History) -> str:
    written = [[write.resource_version, str(write.author), write.last] for write in history]
    return hashlib.sha256(json.dumps([written, str(history)]).encode()).hexdigest()


if __name__ == "__main__":
    sys.stdout.write(digest(run(int(sys.argv[1]))) + "\n")
