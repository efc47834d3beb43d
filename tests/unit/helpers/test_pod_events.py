"""The Events about pods that a controller created and deleted, or could not."""

from __future__ import annotations

from kcm import errors
from kcm.apimachinery.meta_v1 import KubeObject
from kcm.helpers.pod_events import pod_write_events
from kcm.reconcile.plan import Create, Delete, Failure, Outcome, Write
from kcm.testing import builders

OWNER = builders.replica_set("web")
POD = builders.pod("web-1")
MAP = builders.config_map("settings")


def told(outcome: Outcome) -> list[tuple[str, str, str]]:
    events = pod_write_events(OWNER, outcome)
    assert all(event.about is OWNER for event in events)
    return [(event.type, event.reason, event.message) for event in events]


def test_each_pod_that_was_created_or_deleted_gets_an_event() -> None:
    changed = POD.with_metadata(labels={"left": "as it was stored last"})
    outcome = Outcome([(Create(POD), POD), (Delete(POD), changed)])
    assert told(outcome) == [
        ("Normal", "SuccessfulCreate", "Created pod: web-1"),
        ("Normal", "SuccessfulDelete", "Deleted pod: web-1"),
    ]


def test_a_failure_gets_a_warning_with_its_cause() -> None:
    error = errors.Forbidden("no more than ten")
    outcome = Outcome(failures=[Failure(Create(POD), error), Failure(Delete(POD), error)])
    assert told(outcome) == [
        ("Warning", "FailedCreate", "Error creating: no more than ten"),
        ("Warning", "FailedDelete", "Error deleting: no more than ten"),
    ]


def test_a_pod_that_was_gone_already_and_other_kinds_get_none() -> None:
    done: list[tuple[Write, KubeObject]] = [(Delete(POD), POD), (Create(MAP), MAP)]
    assert told(Outcome(done, [Failure(Delete(MAP), errors.NotFound("gone"))])) == []
