"""A run of a control plane that can be repeated.

As a program, it prints a digest of the run with the seed that is its argument.
"""

from __future__ import annotations

import hashlib
import json
import sys

from kcm.api import scheme
from kcm.testing import ControlPlane
from tests.integration.testing.objects import cron_job, deployment

Versions = dict[str, tuple[str, str]]  # resourceVersion and uid, by kind and key

CRON_TABS = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "crontabs.example.com"},
    "spec": {
        "group": "example.com",
        "scope": "Namespaced",
        "names": {"plural": "crontabs", "singular": "crontab", "kind": "CronTab"},
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "schema": {"openAPIV3Schema": {"type": "object"}},
            }
        ],
    },
}
CONTESTED = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "contested"}}
# Events have random uids, and a bundle is named after certificates, which are always new.
_DIFFERENT = ("events", "clustertrustbundles.certificates.k8s.io")


def run(seed: int) -> Versions:
    """Returns what all objects are at the end of an eventful hour."""
    with ControlPlane(seed=seed, nodes=3) as plane:
        plane.apply(deployment("web", replicas=5))
        plane.apply(cron_job("report", "*/10 * * * *"))
        plane.settle()
        plane.apply(CRON_TABS)
        plane.wait_for("deployment/web", condition="Available")
        plane.clock.advance("30m")
        plane.delete(f"pod/{plane.list('pods', selector='app=web')[0]['metadata']['name']}")
        plane.apply(deployment("web", replicas=3))
        plane.clock.advance("30m")
        return read_all(plane)


def read_all(plane: ControlPlane) -> Versions:
    versions: Versions = {}
    for resource in scheme.resources():
        if resource.name in _DIFFERENT:
            continue
        for one in plane.list(resource.name, None):
            meta = one["metadata"]
            key = f"{resource.name} {meta.get('namespace', '')}/{meta['name']}"
            versions[key] = meta["resourceVersion"], meta["uid"]
    return versions


def digest(versions: Versions) -> str:
    return hashlib.sha256(json.dumps(versions, sort_keys=True).encode()).hexdigest()


if __name__ == "__main__":
    sys.stdout.write(digest(run(int(sys.argv[1]))) + "\n")
