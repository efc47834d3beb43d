"""The table is TestSync of
staging/src/k8s.io/kube-aggregator/pkg/controllers/autoregister/autoregister_controller_test.go,
Kubernetes 1.33.
"""

from __future__ import annotations

import pytest

from kcm.api.apiregistration_v1 import AUTOMANAGED, CONTINUOUSLY, ON_START, APIService
from kcm.apiserver.aggregation.registration import Action, build, decide, list_built_in, list_custom
from kcm.apiserver.documents.priorities import Priority
from kcm.kinds.validation import validate_create
from tests.samples import sample

PRIORITY = Priority(1000, 100)
MANAGED = build("foo", "v1", PRIORITY, CONTINUOUSLY)
MANAGED_ON_START = build("foo", "v1", PRIORITY, ON_START)
FOREIGN = MANAGED.with_metadata(labels=None)
MODIFIED = MANAGED.with_spec(MANAGED.spec.replace(version_priority=5))
MODIFIED_ON_START = MODIFIED.with_metadata(labels={AUTOMANAGED: ON_START})


@pytest.mark.parametrize(
    ("present", "wanted", "synced", "at_start", "action"),
    [
        # adding an API service which isn't auto-managed does nothing
        (FOREIGN, None, False, False, Action.NOTHING),
        # adding one to auto-register should create
        (None, MANAGED, False, False, Action.CREATE),
        # duplicates
        (MANAGED, MANAGED, False, False, Action.NOTHING),
        (MANAGED, None, False, False, Action.DELETE),
        # removing auto-managed then RemoveAPIService should not touch APIService
        (FOREIGN, MANAGED, False, False, Action.NOTHING),
        # modifying it should result in stomping
        (MODIFIED, MANAGED, False, False, Action.UPDATE),
        (MODIFIED, MANAGED, True, False, Action.UPDATE),
        # adding one to auto-register on start should create, but not again
        (None, MANAGED_ON_START, False, False, Action.CREATE),
        (None, MANAGED_ON_START, True, False, Action.NOTHING),
        # managed onstart apiservice without a matching request
        (MANAGED_ON_START, None, False, True, Action.DELETE),
        (MANAGED_ON_START, None, True, True, Action.NOTHING),
        (MANAGED_ON_START, None, False, False, Action.NOTHING),
        # modifying onstart it should result in stomping, unless it was already synced
        (MODIFIED, MANAGED_ON_START, False, False, Action.UPDATE),
        (MODIFIED_ON_START, MANAGED_ON_START, False, True, Action.UPDATE),
        (MODIFIED_ON_START, MANAGED_ON_START, True, True, Action.NOTHING),
        # nothing is there, and nothing wanted
        (None, None, False, False, Action.NOTHING),
    ],
)
def test_what_is_done_follows_from_what_is_there(
    present: APIService | None,
    wanted: APIService | None,
    synced: bool,
    at_start: bool,
    action: Action,
) -> None:
    assert decide(present, wanted, synced=synced, at_start=at_start) is action


def test_built_in_versions_have_valid_api_services() -> None:
    listed = list_built_in()
    assert listed["v1."].spec.group_priority_minimum == 18000
    assert listed["v2.autoscaling"].spec.version_priority == 30
    assert not [name for name in listed if "metrics" in name or "apiregistration" in name]
    assert [fault for service in listed.values() for fault in validate_create(service)] == []


def test_versions_of_custom_kinds_that_are_served_have_one() -> None:
    definition = sample("customresourcedefinitions.apiextensions.k8s.io")
    [v1] = definition.spec.versions
    old = v1.replace(name="v1alpha1", served=False, storage=False)
    definition = definition.with_spec(definition.spec.replace(versions=[v1, old]))
    listed = list_custom([definition, definition])
    assert list(listed) == ["v1.example.com"]
    assert listed["v1.example.com"].labels == {AUTOMANAGED: "true"}
    assert validate_create(listed["v1.example.com"]) == []
