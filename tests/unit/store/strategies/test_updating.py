"""What updates of a kind may do."""

from __future__ import annotations

import pytest

from kcm.api.scheme import BUILT_IN
from kcm.apimachinery.meta_v1 import KubeObject, OwnerReference
from kcm.store.options import Subresource
from kcm.store.rules import merge_modification
from kcm.store.strategies.updating import creates_on_update
from tests.samples import sample

OWNER = OwnerReference(api_version="v1", kind="ConfigMap", name="a", uid="u")
SENT = {
    "labels": {"a": "b"},
    "annotations": {"c": "d"},
    "finalizers": ["example.com/e"],
    "owner_references": [OWNER],
}


@pytest.mark.parametrize(
    ("kind", "expected"),
    [("leases", True), ("services", True), ("endpoints", True), ("roles", True),
     ("endpointslices", False), ("priorityclasses", False), ("pods", False)],
)  # fmt: skip
def test_updates_create_only_where_upstream_lets_them(kind: str, expected: bool) -> None:
    assert creates_on_update(BUILT_IN.lookup(kind)) == expected


@pytest.mark.parametrize(
    ("kind", "taken"),
    [
        ("jobs", {*SENT}),
        ("namespaces", {*SENT}),
        ("persistentvolumeclaims", {*SENT}),
        ("deployments", {*SENT} - {"labels"}),
        ("pods", {*SENT} - {"owner_references"}),
        ("flowschemas", set()),
        ("servicecidrs", set()),
    ],
)
def test_a_request_for_the_status_changes_the_metadata_that_upstream_takes(
    kind: str, taken: set[str]
) -> None:
    resource = BUILT_IN.lookup(kind)
    old: KubeObject = sample(resource.name)
    new = old.with_metadata(**SENT, name="other", resource_version="7")
    merged = merge_modification(new, old, resource, Subresource.STATUS, of_request=True)
    changed = {name for name, value in SENT.items() if getattr(merged.metadata, name) == value}
    assert changed == taken
    assert merged.name == old.name
    assert merged.metadata.resource_version == old.metadata.resource_version
    assert (
        merge_modification(new, old, resource, Subresource.STATUS) is old or kind == "deployments"
    )
