"""After TestSync of pkg/controller/storageversionmigrator/storageversionmigrator_test.go and
TestResourceVersionController_sync of resourceversion_test.go.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from kcm import errors
from kcm.api import codec
from kcm.api.apiextensions_v1 import CustomResourceDefinition
from kcm.api.apps_v1 import Deployment
from kcm.api.scheme import BUILT_IN, Scheme
from kcm.api.storagemigration_v1beta1 import (
    FAILED,
    RUNNING,
    SUCCEEDED,
    StorageVersionMigration,
    StorageVersionMigrationSpec,
    StorageVersionMigrationStatus,
)
from kcm.apiextensions.registration import register, unregister
from kcm.apimachinery.meta_v1 import Condition, GroupResource, KubeObject, ObjectMeta
from kcm.controllers.storageversionmigrator import (
    BUDGET,
    RETRY,
    StorageVersionMigrator,
)
from kcm.reconcile.plan import Outcome, Plan, RewriteObjects, UpdateStatus
from kcm.store.writes.collections import Rewriting
from kcm.testing.views import FakeView
from tests.samples import sample

MIGRATOR = StorageVersionMigrator()
SCHEME = Scheme()
DEFINITIONS = "customresourcedefinitions.apiextensions.k8s.io"


def migration(
    *conditions: str,
    version: str | None = "100",
    resource: str = "deployments",
    group: str = "apps",
) -> StorageVersionMigration:
    status = StorageVersionMigrationStatus(
        resource_version=version,
        conditions=[Condition(type=kind, status="True") for kind in conditions] or None,
    )
    wanted = GroupResource(group=group, resource=resource)
    return StorageVersionMigration(
        metadata=ObjectMeta(name="m", uid="u1"),
        spec=StorageVersionMigrationSpec(resource=wanted),
        status=status,
    )


def plan_of(
    obj: StorageVersionMigration | None,
    *others: KubeObject,
    memory: Mapping[str, str] | None = None,
) -> Plan:
    objects = [*others, *([obj] if obj is not None else [])]
    view = FakeView(*objects, controller=MIGRATOR, memory=memory, position=100, scheme=SCHEME)
    return MIGRATOR.reconcile("m", view)


def conditions_of(plan: Plan) -> dict[str, tuple[str, str, str]]:
    [write] = plan.writes
    assert isinstance(write, UpdateStatus)
    assert isinstance(write.new, StorageVersionMigration)
    return {
        one.type: (one.status, one.reason or "", one.message or "")
        for one in write.new.status.conditions or ()
    }


def ended(page: Rewriting, memory: Mapping[str, str] | None = None) -> Plan:
    plan = plan_of(migration(RUNNING), memory=memory)
    assert plan.plan_after is not None
    return plan.plan_after(Outcome(rewritings=[page]))


@pytest.mark.parametrize("obj", [None, migration(SUCCEEDED), migration(FAILED)])
def test_a_migration_that_is_gone_or_has_ended_is_left_alone(
    obj: StorageVersionMigration | None,
) -> None:
    plan = plan_of(obj)
    assert (plan.writes, plan.steps) == ([], [])


def test_a_new_migration_notes_where_it_begins_and_runs() -> None:
    plan = plan_of(migration(version=None))
    assert conditions_of(plan) == {RUNNING: ("True", "StorageVersionMigrationInProgress", "")}
    [write] = plan.writes
    assert isinstance(write, UpdateStatus)
    assert isinstance(write.new, StorageVersionMigration)
    assert write.new.status.resource_version == "100"
    assert plan.steps == plan.batches  # nothing is rewritten yet


def test_a_kind_that_does_not_exist_fails() -> None:
    why = "resource does not exist in discovery"
    failed = {FAILED: ("True", "StorageVersionMigrationFailed", why)}
    assert conditions_of(plan_of(migration(resource="things", version=None))) == failed
    assert conditions_of(plan_of(migration(group="example.com", resource="things"))) == failed


def test_one_that_runs_rewrites_the_next_objects() -> None:
    deployments = Deployment.resource
    assert plan_of(migration(RUNNING)).steps == [RewriteObjects(deployments, "", BUDGET)]
    memory = {"uid": "u1", "after": "default/a"}
    plan = plan_of(migration(RUNNING), memory=memory)
    assert plan.steps == [RewriteObjects(deployments, "default/a", BUDGET)]
    of_another = plan_of(migration(RUNNING), memory=memory | {"uid": "u0"})
    assert of_another.steps == [RewriteObjects(deployments, "", BUDGET)]


def test_it_goes_on_after_the_last_object() -> None:
    plan = ended(Rewriting(after="default/b", rewritten=3))
    assert (plan.state, plan.requeue_after) == (
        {"uid": "u1", "after": "default/b", "failed": ""},
        0.0,
    )
    assert plan.writes == []


def test_it_succeeds_when_no_object_is_left() -> None:
    assert conditions_of(ended(Rewriting())) == {
        RUNNING: ("False", "", ""),
        SUCCEEDED: ("True", "StorageVersionMigrationSucceeded", ""),
    }


def test_an_object_that_cannot_be_rewritten_fails_it_after_all_others() -> None:
    plan = ended(Rewriting(after="default/b", failed=1, error=errors.KcmError("no")))
    assert plan.state == {"uid": "u1", "after": "default/b", "failed": "yes"}
    assert conditions_of(ended(Rewriting(), plan.state)) == {
        RUNNING: ("False", "", ""),
        FAILED: (
            "True",
            "StorageVersionMigrationFailed",
            "migration encountered unhandled error",
        ),
    }


# --- custom kinds


def definition(stored: str, group: str = "example.com") -> CustomResourceDefinition:
    schema = {"openAPIV3Schema": {"type": "object"}}
    versions = [
        {"name": name, "served": True, "storage": name == stored, "schema": schema}
        for name in ("v1", "v2")
    ]
    spec: dict[str, Any] = {
        "group": group,
        "scope": "Namespaced",
        "names": {"plural": "widgets", "kind": "Widget"},
        "versions": versions,
    }
    status = {
        "acceptedNames": spec["names"],
        "conditions": [{"type": "Established", "status": "True"}],
    }
    made = codec.decode(
        codec.to_dict(sample(DEFINITIONS))
        | {"metadata": {"name": f"widgets.{group}"}, "spec": spec, "status": status},
        BUILT_IN,
    )
    assert isinstance(made, CustomResourceDefinition)
    return made


@pytest.fixture
def widgets() -> Iterator[CustomResourceDefinition]:
    made = definition("v2")
    register(SCHEME, made)
    yield made
    unregister(SCHEME, made.name)


def test_objects_of_a_custom_kind_get_its_storage_version(
    widgets: CustomResourceDefinition,
) -> None:
    running = migration(RUNNING, group="example.com", resource="widgets")
    [rewrite] = plan_of(running, widgets).steps
    assert isinstance(rewrite, RewriteObjects)
    assert rewrite.resource.version == "v2"


def test_a_process_that_does_not_know_the_latest_definition_waits(
    widgets: CustomResourceDefinition,
) -> None:
    running = migration(RUNNING, group="example.com", resource="widgets")
    other_group = "other.example.com"
    other = migration(RUNNING, group="other.example.com", resource="widgets")
    for obj, latest in ((running, definition("v1")), (other, definition("v1", other_group))):
        plan = plan_of(obj, latest)
        assert (plan.requeue_after, plan.writes, plan.steps) == (RETRY, [], [])


def test_a_definition_that_is_not_established_has_no_kind() -> None:
    obj = migration(group="example.com", resource="widgets", version=None)
    refused = definition("v1")
    refused = refused.with_status(refused.status.replace(conditions=None))
    assert FAILED in conditions_of(plan_of(obj, refused))
