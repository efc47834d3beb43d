"""The numbers of attached volumes and of ResourceClaims on `/metrics`, under upstream's names.

Volumes are those of the last reconcile sync of the attach-detach controller, claims those in this
process's cache. Source: pkg/controller/volume/attachdetach/metrics/metrics.go and customCollector
in pkg/controller/resourceclaim/controller.go, Kubernetes 1.36.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable

from prometheus_client.core import GaugeMetricFamily, Metric

from kcm.api.resource_v1 import ResourceClaim
from kcm.api.resource_v1.pod_claims import EXTENDED, POD_CLAIM
from kcm.controllers.volumes.attachdetach import AttachDetachController
from kcm.controllers.volumes.attachdetach.sync import IN_USE, TOTALS, VERIFYING
from kcm.redisio import RedisIO

LOOP = f"{AttachDetachController.short_name}.{VERIFYING}"
_GAUGES = (
    (
        "attachdetach_controller_total_volumes",
        "Number of volumes in A/D Controller",
        ("plugin_name", "state"),
        TOTALS,
    ),
    (
        "storage_count_attachable_volumes_in_use",
        "Measure number of volumes in use",
        ("node", "volume_plugin"),
        IN_USE,
    ),
)


def volume_families(io: RedisIO) -> Iterable[Metric]:
    """Returns the gauges. Raises Temporary."""
    texts = io.execute("HMGET", io.keys.tick_state(LOOP), *(field for *_, field in _GAUGES))
    for (name, text, labels, _), raw in zip(_GAUGES, texts, strict=True):
        family = GaugeMetricFamily(name, text, labels=labels)
        for *values, number in json.loads(raw or b"[]"):
            family.add_metric([str(value) for value in values], float(number))
        yield family


def claim_families(claims: Iterable[ResourceClaim]) -> Iterable[Metric]:
    """Returns the gauge of ResourceClaims, without samples for states that no claim has."""
    family = GaugeMetricFamily(
        "resourceclaim_controller_resource_claims",
        "Number of ResourceClaims, categorized by allocation status, admin access, and source",
        labels=["allocated", "admin_access", "source"],
    )
    for labels, number in sorted(Counter(map(_labels_of, claims)).items()):
        family.add_metric(labels, number)
    yield family


def _labels_of(claim: ResourceClaim) -> tuple[str, str, str]:
    allocated = claim.status.allocation is not None
    source = "resource_claim_template" if claim.annotations.get(POD_CLAIM) else ""
    if claim.annotations.get(EXTENDED) == "true":
        source = "extended_resource"
    return str(allocated).lower(), str(claim.spec.has_admin_access).lower(), source
