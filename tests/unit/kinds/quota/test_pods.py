"""The usage of pods. Cases after upstream's pkg/quota/v1/evaluator/core/pods_test.go."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from kcm.api.core_v1 import Pod, ScopedResourceSelectorRequirement
from kcm.kinds.quota import pods
from kcm.testing.views import NOW
from tests.samples import with_spec


def pod_of(*containers: dict[str, Any], **spec: Any) -> Pod:
    pod: Pod = with_spec(
        "pods",
        containers=[
            {"name": f"c{n}", "image": "i", "resources": r} for n, r in enumerate(containers)
        ],
        **spec,
    )
    return pod


def show_usage(pod: Pod) -> dict[str, str]:
    return {name: str(amount) for name, amount in pods.usage(pod, NOW).items()}


COUNTED = {"count/pods": "1", "pods": "1"}
CPU = {"requests": {"cpu": "1"}, "limits": {"cpu": "2"}}
SIDECAR = {"name": "s", "image": "i", "restartPolicy": "Always", "resources": CPU}
FIRST = {"name": "f", "image": "i", "resources": {"requests": {"cpu": "3"}}}


@pytest.mark.parametrize(
    ("pod", "expected"),
    [
        pytest.param(pod_of({}), {}, id="nothing named"),
        pytest.param(
            pod_of(CPU, CPU),
            {"cpu": "2", "requests.cpu": "2", "limits.cpu": "4"},
            id="containers add up",
        ),
        pytest.param(
            pod_of({"requests": {"memory": "1Mi", "ephemeral-storage": "1Gi"}}),
            {
                "memory": "1Mi",
                "requests.memory": "1Mi",
                "ephemeral-storage": "1Gi",
                "requests.ephemeral-storage": "1Gi",
            },
            id="memory and disk",
        ),
        pytest.param(
            pod_of({"limits": {"hugepages-2Mi": "4Mi", "cpu": "1"}}),
            {
                "cpu": "1",
                "requests.cpu": "1",
                "limits.cpu": "1",
                "hugepages-2Mi": "4Mi",
                "requests.hugepages-2Mi": "4Mi",
            },
            id="huge pages",
        ),
        pytest.param(
            pod_of({"limits": {"example.com/gpu": "3"}}),
            {"requests.example.com/gpu": "3"},
            id="extended resources by their requests only",
        ),
        pytest.param(
            pod_of(CPU, initContainers=[FIRST]),
            {"cpu": "3", "requests.cpu": "3", "limits.cpu": "2"},
            id="an init container runs alone",
        ),
        pytest.param(
            pod_of(CPU, initContainers=[SIDECAR, FIRST]),
            {"cpu": "4", "requests.cpu": "4", "limits.cpu": "4"},
            id="or beside the sidecars before it",
        ),
        pytest.param(
            pod_of(CPU, overhead={"cpu": "1", "memory": "1"}),
            {
                "cpu": "2",
                "requests.cpu": "2",
                "limits.cpu": "3",
                "memory": "1",
                "requests.memory": "1",
            },
            id="overhead counts, as a limit where there is one",
        ),
    ],
)
def test_usage(pod: Pod, expected: dict[str, str]) -> None:
    assert show_usage(pod) == COUNTED | expected


@pytest.mark.parametrize(
    ("new", "old", "resized"),
    [
        (pod_of(CPU, {}), pod_of(CPU, {}), False),
        (pod_of(CPU, CPU), pod_of(CPU, {}), True),
        (pod_of(CPU, resources=CPU), pod_of(CPU), True),
        (pod_of({}, initContainers=[FIRST]), pod_of({}, initContainers=[FIRST]), False),
        (pod_of({}, initContainers=[SIDECAR]), pod_of({}, initContainers=[FIRST]), True),
        (pod_of({}, nodeName="n"), pod_of({}), False),
    ],
)
def test_a_pod_is_resized_if_its_resources_or_those_of_a_container_change(
    new: Pod, old: Pod, resized: bool
) -> None:
    assert pods.is_resized(new, old) is resized
    assert not pods.is_resized(new, new)


@pytest.mark.parametrize("phase", ["Failed", "Succeeded"])
def test_a_pod_that_ended_counts_as_an_object_only(phase: str) -> None:
    pod = pod_of(CPU)
    assert show_usage(pod.with_status(pod.status.replace(phase=phase))) == {"count/pods": "1"}


@pytest.mark.parametrize(("age", "counts"), [(39, True), (41, False)])
def test_a_pod_that_should_be_gone_no_longer_counts(age: int, counts: bool) -> None:
    marked = NOW - timedelta(seconds=age) + timedelta(seconds=10)
    pod = pod_of(CPU).with_metadata(deletion_timestamp=marked, deletion_grace_period_seconds=30)
    assert ("pods" in show_usage(pod)) is counts


def elsewhere(**term: Any) -> Pod:
    terms = [{"topologyKey": "zone", **term}]
    wanted = {"requiredDuringSchedulingIgnoredDuringExecution": terms}
    return pod_of({}, affinity={"podAntiAffinity": wanted})


def build_preferring_pod(**term: Any) -> Pod:
    weighted = [{"weight": 1, "podAffinityTerm": {"topologyKey": "zone", **term}}]
    wanted = {"preferredDuringSchedulingIgnoredDuringExecution": weighted}
    return pod_of({}, affinity={"podAffinity": wanted})


@pytest.mark.parametrize(
    ("scope", "operator", "values", "pod", "expected"),
    [
        ("Terminating", "Exists", None, pod_of({}, activeDeadlineSeconds=5), True),
        ("Terminating", "Exists", None, pod_of({}), False),
        ("NotTerminating", "Exists", None, pod_of({}), True),
        ("BestEffort", "Exists", None, pod_of({}), True),
        ("BestEffort", "Exists", None, pod_of(CPU), False),
        ("BestEffort", "Exists", None, pod_of({}, initContainers=[FIRST]), False),
        ("NotBestEffort", "Exists", None, pod_of(CPU), True),
        ("PriorityClass", "Exists", None, pod_of({}, priorityClassName="high"), True),
        ("PriorityClass", "Exists", None, pod_of({}), False),
        ("PriorityClass", "DoesNotExist", None, pod_of({}), True),
        ("PriorityClass", "In", ["high"], pod_of({}, priorityClassName="high"), True),
        ("PriorityClass", "In", ["high"], pod_of({}, priorityClassName="low"), False),
        ("PriorityClass", "In", ["high"], pod_of({}), False),
        ("PriorityClass", "NotIn", ["high"], pod_of({}, priorityClassName="low"), True),
        ("PriorityClass", "NotIn", ["high"], pod_of({}), True),
        ("CrossNamespacePodAffinity", "Exists", None, pod_of({}), False),
        ("CrossNamespacePodAffinity", "Exists", None, elsewhere(), False),
        ("CrossNamespacePodAffinity", "Exists", None, elsewhere(namespaces=["a"]), True),
        ("CrossNamespacePodAffinity", "Exists", None, elsewhere(namespaceSelector={}), True),
        (
            "CrossNamespacePodAffinity",
            "Exists",
            None,
            build_preferring_pod(namespaceSelector={}),
            True,
        ),
        ("Unknown", "Exists", None, pod_of({}), False),
    ],
)
def test_scopes(
    scope: str, operator: str, values: list[str] | None, pod: Pod, expected: bool
) -> None:
    wanted = ScopedResourceSelectorRequirement(scope_name=scope, operator=operator, values=values)
    assert pods.in_scope(pod, wanted) is expected


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("pods", True),
        ("count/pods", True),
        ("limits.ephemeral-storage", True),
        ("hugepages-2Mi", True),
        ("requests.hugepages-2Mi", True),
        ("requests.example.com/gpu", True),
        ("example.com/gpu", False),
        ("requests.storage", False),
        ("services", False),
    ],
)
def test_what_pods_take_of(name: str, expected: bool) -> None:
    assert pods.tracks(name) is expected


@pytest.mark.parametrize(
    ("limited", "expected"),
    [
        (["pods"], ""),
        (["requests.cpu"], "must specify requests.cpu for: c1"),
        (
            ["limits.memory", "limits.cpu", "pods"],
            "must specify limits.cpu for: c1; limits.memory for: c0,c1",
        ),
        (["requests.ephemeral-storage"], ""),
    ],
)
def test_what_containers_must_name(limited: list[str], expected: str) -> None:
    assert pods.missing(pod_of(CPU, {}), limited) == expected
