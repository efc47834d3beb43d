"""Tests the gauges of attached volumes and of ResourceClaims."""

from __future__ import annotations

from typing import Any

from kcm.api.resource_v1.pod_claims import EXTENDED
from kcm.manager.device_metrics import claim_families, volume_families
from kcm.redisio.keys import Keys
from tests.unit.controllers.resourceclaim.objects import claim, pod, template

PLUGIN = "kubernetes.io/csi:disks.example.com"


class Stored:
    """A server that holds what the last pass has counted."""

    keys = Keys()

    def __init__(self, *texts: bytes | None) -> None:
        self._texts = texts

    def execute(self, *_: Any) -> Any:
        return self._texts


def values(*texts: bytes | None) -> dict[tuple[str, ...], float]:
    stored: Any = Stored(*texts)
    families = volume_families(stored)
    return {(s.name, *s.labels.values()): s.value for f in families for s in f.samples}


def test_volumes_are_shown_as_the_last_pass_counted_them() -> None:
    totals = f'[["{PLUGIN}", "actual_state_of_world", 2]]'.encode()
    in_use = f'[["n1", "{PLUGIN}", 3]]'.encode()
    assert values(totals, in_use) == {
        ("attachdetach_controller_total_volumes", PLUGIN, "actual_state_of_world"): 2,
        ("storage_count_attachable_volumes_in_use", "n1", PLUGIN): 3,
    }


def test_without_a_pass_there_are_no_volumes() -> None:
    assert values(None, None) == {}


# After TestResourceClaimEventHandler in pkg/controller/resourceclaim/controller_test.go.
def test_claims_are_counted_by_allocation_access_and_source() -> None:
    extended = claim("e").with_metadata(annotations={EXTENDED: "true"})
    privileged = claim("p").with_spec(template(admin=True).spec.spec)
    given = [claim("a"), claim("b"), claim("c", allocated=True), extended, privileged]
    given.append(claim("t", owner=pod()))
    (family,) = claim_families(given)
    assert {tuple(s.labels.values()): s.value for s in family.samples} == {
        ("false", "false", ""): 2,
        ("true", "false", ""): 1,
        ("false", "false", "extended_resource"): 1,
        ("false", "true", ""): 1,
        ("false", "false", "resource_claim_template"): 1,
    }
