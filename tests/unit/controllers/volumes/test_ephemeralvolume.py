"""Ephemeral volumes of pods get claims that their pod owns.

The cases are those of TestSyncHandler in pkg/controller/volume/ephemeral/controller_test.go,
Kubernetes 1.33.
"""

from __future__ import annotations

from typing import Any

import pytest

from kcm import errors
from kcm.api.core_v1 import PersistentVolumeClaim, Pod
from kcm.api.core_v1.volume_claims import PersistentVolumeClaimSpec
from kcm.api.core_v1.volumes import EphemeralVolumeSource, PersistentVolumeClaimTemplate, Volume
from kcm.apimachinery.meta_v1 import ObjectMeta
from kcm.apimachinery.ownership import is_controlled_by, new_controller_ref
from kcm.controllers.volumes.ephemeralvolume import (
    CREATED,
    FAILED,
    EphemeralVolumeController,
    new_pods,
    pods_of_lost_claim,
)
from kcm.reconcile.contract import Change
from kcm.reconcile.plan import Create, Failure, Outcome, Plan
from kcm.testing.builders import pod
from kcm.testing.storage_builders import claim
from kcm.testing.views import NOW, FakeView

TEMPLATE = PersistentVolumeClaimTemplate(
    metadata=ObjectMeta(labels={"a": "b"}, annotations={"c": "d"}),
    spec=PersistentVolumeClaimSpec(access_modes=["ReadWriteOnce"], storage_class_name="fast"),
)
SCRATCH = Volume(name="scratch", ephemeral=EphemeralVolumeSource(volume_claim_template=TEMPLATE))


def with_volume(**fields: Any) -> Pod:
    return pod("web", volumes=[SCRATCH], **fields)


def plan_of(subject: Pod, *claims: PersistentVolumeClaim) -> Plan:
    return EphemeralVolumeController().reconcile(subject.key, FakeView(subject, *claims))


def test_the_claim_is_made_from_the_template_and_owned_by_the_pod() -> None:
    owner = with_volume()
    (write,) = plan_of(owner).writes
    assert isinstance(write, Create)
    made = write.obj
    assert isinstance(made, PersistentVolumeClaim)
    assert made.key == "default/web-scratch"
    assert is_controlled_by(made, owner)
    assert (dict(made.labels), dict(made.annotations)) == ({"a": "b"}, {"c": "d"})
    assert made.spec.storage_class_name == "fast"


@pytest.mark.parametrize("subject", [with_volume(deleting=NOW), pod("web")])
def test_no_claim_is_made_for_a_deleted_pod_or_without_such_volumes(subject: Pod) -> None:
    assert plan_of(subject).writes == []


def test_a_claim_that_is_there_already_is_left_alone() -> None:
    owner = with_volume()
    own = claim("web-scratch", metadata={"owner_references": [new_controller_ref(owner)]})
    assert plan_of(owner, own).writes == []


def test_a_claim_of_somebody_else_is_an_error_and_an_event() -> None:
    plan = plan_of(with_volume(), claim("web-scratch"))
    assert plan.writes == []
    assert isinstance(plan.error, errors.Conflict)
    (event,) = plan.events
    assert (event.type, event.reason, event.message) == (
        "Warning",
        "FailedBinding",
        "ephemeral volume scratch: PVC default/web-scratch was not created for pod default/web "
        "(pod is not owner)",
    )


def test_attempts_and_failures_are_counted_and_failures_recorded() -> None:
    plan = plan_of(with_volume())
    (write,) = plan.writes
    error = errors.Forbidden("exceeded quota", resource="persistentvolumeclaims", name="x")
    failed = Outcome(failures=(Failure(write, error),))
    assert plan.counts_after(failed) == {CREATED.name: 1, FAILED.name: 1}
    (event,) = plan.events_after(failed)
    assert event.message.startswith("ephemeral volume scratch: create PVC web-scratch: exceeded")
    assert plan.counts_after(Outcome(done=((write, claim()),))) == {CREATED.name: 1}


def test_new_pods_and_pods_that_lost_a_claim_are_synced() -> None:
    owner = with_volume()
    assert list(new_pods(Change(None, owner), FakeView())) == ["default/web"]
    assert list(new_pods(Change(owner, owner), FakeView())) == []
    assert list(new_pods(Change(None, pod("web")), FakeView())) == []
    lost = claim("web-scratch")
    assert list(pods_of_lost_claim(Change(lost, None), FakeView(owner))) == ["default/web"]
    assert list(pods_of_lost_claim(Change(lost, lost), FakeView(owner))) == []
