"""Tests which values each index of the caches computes for an object."""

from __future__ import annotations

import pytest

from kcm.apimachinery.meta_v1 import KubeObject, OwnerReference
from kcm.reconcile.contract import (
    BY_CONTROLLER,
    BY_NODE,
    BY_OWNER,
    BY_UID,
    BY_VOLUME,
    INDEXES,
    ORPHANS,
)
from kcm.reconcile.indexes import INDEXERS
from kcm.testing.builders import node, owner_reference, pod, replica_set
from kcm.testing.storage_builders import csi_volume, volume, volume_attachment

RS = replica_set()
CLUSTER = OwnerReference(api_version="v1", kind="Node", name="n", uid="u", controller=True)
MANY = pod(metadata={"owner_references": [owner_reference(RS), owner_reference(node())]})


@pytest.mark.parametrize(
    ("index", "obj", "expected"),
    [
        (BY_CONTROLLER, pod(owner=RS), [f"default/{RS.uid}"]),
        (BY_CONTROLLER, pod(owner=RS, namespace="far"), [f"far/{RS.uid}"]),
        (BY_CONTROLLER, node("n1", metadata={"owner_references": [CLUSTER]}), ["/u"]),
        (BY_CONTROLLER, MANY, []),
        (BY_OWNER, pod(owner=RS), [RS.uid]),
        (BY_OWNER, MANY, [RS.uid, node().uid]),
        (BY_OWNER, pod(), []),
        (BY_NODE, pod(node="n1"), ["n1"]),
        (BY_NODE, pod(), []),
        (BY_NODE, RS, []),
        (BY_NODE, volume_attachment(csi_volume(), "n1"), ["n1"]),
        (BY_VOLUME, volume_attachment(csi_volume("disk")), ["disk"]),
        (BY_VOLUME, csi_volume(handle="h"), ["kubernetes.io/csi/disks.example.com^h"]),
        (BY_VOLUME, volume(), []),
        (BY_VOLUME, pod(), []),
        (BY_UID, RS, [RS.uid]),
        (ORPHANS, pod(), ["default"]),
        (ORPHANS, MANY, ["default"]),
        (ORPHANS, pod(owner=RS), []),
        (ORPHANS, node(), [""]),
    ],
)
def test_an_index_says_under_which_values_an_object_is_found(
    index: str, obj: KubeObject, expected: list[str]
) -> None:
    assert list(INDEXERS[index](obj)) == expected


def test_the_contract_names_every_index() -> None:
    assert set(INDEXES) == set(INDEXERS)
