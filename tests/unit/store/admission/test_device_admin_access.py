"""Administrators' access to devices, after the cases of TestStrategyCreate and
TestStatusStrategyUpdate in pkg/registry/resource/resourceclaim.
"""

from __future__ import annotations

from typing import TypeVar

import pytest

from kcm import errors
from kcm.api.resource_v1 import ResourceClaim
from kcm.api.resource_v1.requests import AllocationResult
from kcm.apimachinery.meta_v1 import KubeObject
from kcm.store import Store
from kcm.testing import builders
from kcm.testing.world import World
from tests.unit.controllers.resourceclaim.objects import claim, template

T = TypeVar("T", bound=KubeObject)
LABEL = "resource.kubernetes.io/admin-access"
WHY = f"admin access to devices requires the `{LABEL}: true` label on the containing namespace"


def store(label: str) -> Store:
    labels = {LABEL: label} if label else {}
    return World(builders.namespace("default", labels=labels)).store


def unstored(obj: T) -> T:
    return obj.with_metadata(resource_version=None)


def asking() -> ResourceClaim:
    return claim().with_spec(template(admin=True).spec.spec)


@pytest.mark.parametrize("label", ["", "false", "True"])
@pytest.mark.parametrize("obj", [asking(), template(admin=True)], ids=lambda obj: obj.kind)
def test_claims_in_other_namespaces_may_not_ask_for_it(obj: KubeObject, label: str) -> None:
    with pytest.raises(errors.Invalid) as refused:
        store(label).create(unstored(obj))
    assert [str(cause) for cause in refused.value.causes] == [
        f"spec.devices.requests[0].adminAccess: Forbidden: {WHY}"
    ]


def test_claims_in_marked_namespaces_may_and_others_need_no_mark() -> None:
    marked = store("true")
    assert marked.create(unstored(asking()))
    assert marked.create(unstored(template(admin=True)))
    assert store("").create(unstored(claim()))


@pytest.mark.parametrize("label", ["", "true"])
def test_devices_are_granted_in_marked_namespaces(label: str) -> None:
    kept = store(label)
    stored = kept.create(unstored(claim()))
    result = {"request": "req-0", "driver": "d.example.com", "pool": "p", "device": "d"}
    allocation = AllocationResult.model_validate(
        {"devices": {"results": [result, {**result, "device": "e", "adminAccess": True}]}}
    )
    granted = stored.with_status(stored.status.replace(allocation=allocation))
    if label:
        assert kept.update_status(granted).status.allocation == allocation
        return
    with pytest.raises(errors.Invalid, match=r"results\[1\]\.adminAccess: Forbidden"):
        kept.update_status(granted)
