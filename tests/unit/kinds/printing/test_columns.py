"""The tables of `kcm get`, compared with what kubectl prints."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from kcm.api import codec, scheme
from kcm.api.scheme import BUILT_IN
from kcm.apimachinery.meta_v1 import KubeObject
from kcm.kinds.printing.columns import columns_of
from kcm.testing import builders

NOW = builders.START + timedelta(minutes=5)


def row(obj: KubeObject, *, wide: bool = False) -> dict[str, str]:
    columns = columns_of(obj.resource, wide=wide)
    return {column.title.upper(): column.text(obj, NOW) for column in columns}


def pod(status: dict[str, Any], **metadata: Any) -> KubeObject:
    spec = {"containers": [{"name": "a", "image": "x"}, {"name": "b", "image": "y"}]}
    spec |= status.pop("spec", {})
    return codec.decode(
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {
                "name": "p",
                "namespace": "default",
                "creationTimestamp": "2024-01-01T00:00:00Z",
                **metadata,
            },
            "spec": spec,
            "status": status,
        },
        BUILT_IN,
    )


def container(name: str, restarts: int = 0, ready: bool = False, **state: Any) -> dict[str, Any]:
    return {
        "name": name,
        "ready": ready,
        "restartCount": restarts,
        "state": state,
        "image": "x",
        "imageID": "",
    }


RUNNING: dict[str, Any] = {"running": {"startedAt": "2024-01-01T00:00:00Z"}}
DELETED = {"deletionTimestamp": "2024-01-01T00:01:00Z"}


@pytest.mark.parametrize(
    ("status", "metadata", "ready", "word"),
    [
        ({"phase": "Pending"}, {}, "0/2", "Pending"),
        (
            {
                "phase": "Running",
                "containerStatuses": [
                    container("a", ready=True, **RUNNING),
                    container("b", waiting={"reason": "CrashLoopBackOff"}),
                ],
            },
            {},
            "1/2",
            "CrashLoopBackOff",
        ),
        (
            {
                "phase": "Succeeded",
                "containerStatuses": [container("a", terminated={"reason": "Completed"})],
            },
            {},
            "0/2",
            "Completed",
        ),
        (
            {"phase": "Failed", "containerStatuses": [container("a", terminated={"exitCode": 3})]},
            {},
            "0/2",
            "ExitCode:3",
        ),
        (
            {"phase": "Failed", "containerStatuses": [container("a", terminated={"signal": 9})]},
            {},
            "0/2",
            "Signal:9",
        ),
        ({"phase": "Failed", "reason": "Evicted"}, {}, "0/2", "Evicted"),
        ({"phase": "Running"}, DELETED, "0/2", "Terminating"),
        ({"phase": "Running", "reason": "NodeLost"}, DELETED, "0/2", "Unknown"),
        (
            {
                "phase": "Pending",
                "spec": {"initContainers": [{"name": "i", "image": "x"}]},
                "initContainerStatuses": [container("i", **RUNNING)],
            },
            {},
            "0/2",
            "Init:0/1",
        ),
        (
            {
                "phase": "Pending",
                "conditions": [
                    {"type": "PodScheduled", "status": "False", "reason": "SchedulingGated"}
                ],
            },
            {},
            "0/2",
            "SchedulingGated",
        ),
    ],
)
def test_a_pod_is_summed_up_as_kubectl_does(
    status: dict[str, Any], metadata: dict[str, Any], ready: str, word: str
) -> None:
    shown = row(pod(status, **metadata))
    assert (shown["READY"], shown["STATUS"]) == (ready, word)
    assert list(shown) == ["NAME", "READY", "STATUS", "RESTARTS", "AGE"]
    assert shown["AGE"] == "5m"


def test_restarts_tell_when_the_last_one_was() -> None:
    ended = {"terminated": {"exitCode": 1, "finishedAt": "2024-01-01T00:02:00Z"}}
    status = container("a", restarts=3, **RUNNING) | {"lastState": ended}
    assert row(pod({"phase": "Running", "containerStatuses": [status]}))["RESTARTS"] == (
        "3 (3m ago)"
    )


def test_the_wide_view_of_a_pod_adds_where_it_is() -> None:
    shown = row(pod({"phase": "Running", "podIP": "10.0.0.1"}), wide=True)
    assert shown["IP"] == "10.0.0.1"
    assert shown["NODE"] == "<none>"
    assert list(shown)[-2:] == ["NOMINATED NODE", "READINESS GATES"]


def test_a_replica_set_shows_its_counts() -> None:
    replica_set = builders.replica_set("web", replicas=3)
    shown = row(replica_set, wide=True)
    assert (shown["DESIRED"], shown["CURRENT"], shown["READY"]) == ("3", "0", "0")
    assert shown["SELECTOR"]


def test_a_node_shows_whether_it_can_take_pods() -> None:
    node = codec.decode(
        {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {"name": "n1", "labels": {"node-role.kubernetes.io/control-plane": ""}},
            "spec": {"unschedulable": True},
            "status": {"conditions": [{"type": "Ready", "status": "True"}]},
        },
        BUILT_IN,
    )
    shown = row(node)
    assert shown["STATUS"] == "Ready,SchedulingDisabled"
    assert shown["ROLES"] == "control-plane"
    assert shown["AGE"] == "<unknown>"


def test_an_event_shows_how_often_it_came() -> None:
    event = codec.decode(
        {
            "apiVersion": "v1",
            "kind": "Event",
            "metadata": {"name": "e", "namespace": "default"},
            "involvedObject": {"kind": "ReplicaSet", "name": "web"},
            "reason": "FailedCreate",
            "type": "Warning",
            "count": 4,
            "firstTimestamp": "2024-01-01T00:00:00Z",
            "lastTimestamp": "2024-01-01T00:04:00Z",
        },
        BUILT_IN,
    )
    shown = row(event)
    assert shown["LAST SEEN"] == "60s (x4 over 5m)"
    assert shown["OBJECT"] == "replicaset/web"


@pytest.mark.parametrize("resource", BUILT_IN.resources(), ids=str)
def test_every_kind_has_a_table_for_an_empty_object(resource: scheme.Resource) -> None:
    obj = resource.model()
    assert all(isinstance(text, str) for text in row(obj, wide=True).values())
