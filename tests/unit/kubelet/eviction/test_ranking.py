"""The order of evictions and their messages, by the tables of upstream's documentation."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from kcm.api.core_v1 import Pod, ResourceRequirements
from kcm.api.core_v1.volumes import Volume
from kcm.apimachinery.quantity import Quantity
from kcm.kubelet.eviction.ranking import (
    build_eviction_message,
    find_storage_excess,
    rank_pods,
    sort_by_urgency,
)
from kcm.kubelet.eviction.thresholds import Observation, Signal, Threshold, ThresholdValue
from kcm.kubelet.stats.provider import ContainerUsage, DiskUsage, PodStats
from kcm.testing import builders

AT = datetime(2026, 1, 1, tzinfo=UTC)
MI = 2**20


def pod(name: str, *, priority: int = 0, **requests: str) -> Pod:
    asked = {key.replace("_", "-"): Quantity(text) for key, text in requests.items()}
    resources = ResourceRequirements(requests=asked or None)
    return builders.pod(
        name, priority=priority, containers=[builders.container(resources=resources)]
    )


def use(
    pod: Pod, *, memory: int = 0, disk: int = 0, files: int = 0, processes: int = 0, logs: int = 0
) -> PodStats:
    container = ContainerUsage(
        "c", "id", AT, 0, None, memory * MI, memory * MI, processes, log_bytes=logs * MI
    )
    return PodStats(pod.uid or "", pod.name or "", "default", (container,),
                  DiskUsage(disk * MI, files, {"data": disk * MI}))  # fmt: skip


def order(signal: Signal, *pods_with_stats: tuple[Pod, PodStats | None]) -> list[str]:
    uses = {pod.uid or "": one for pod, one in pods_with_stats if one is not None}
    return [pod.name or "" for pod in rank_pods(signal, [pod for pod, _ in pods_with_stats], uses)]


def measure(pod: Pod, **amounts: int) -> tuple[Pod, PodStats]:
    return pod, use(pod, **amounts)


@pytest.mark.parametrize(
    ("signal", "pods_with_stats", "expected"),
    [
        pytest.param(
            Signal.MEMORY,
            [
                measure(pod("within", memory="500Mi"), memory=400),
                measure(pod("over", memory="100Mi"), memory=200),
                measure(pod("none"), memory=150),
            ],
            ["none", "over", "within"],
            id="those over their requests first, by how much; best-effort pods are always over",
        ),
        pytest.param(
            Signal.MEMORY,
            [
                measure(pod("high", priority=10), memory=900),
                measure(pod("low"), memory=100),
                measure(pod("high-within", priority=9, memory="1Gi"), memory=1),
                measure(pod("low-within", memory="1Gi"), memory=900),
            ],
            ["low", "high", "low-within", "high-within"],
            id="priority counts among those over, and among those within",
        ),
        pytest.param(
            Signal.MEMORY,
            [measure(pod("known"), memory=900), (pod("unknown"), None)],
            ["unknown", "known"],
            id="a pod of which nothing is known goes first",
        ),
        pytest.param(
            Signal.DISK,
            [
                measure(pod("volumes"), disk=10),
                measure(pod("logs"), logs=20),
                measure(pod("within", ephemeral_storage="1Gi"), disk=500),
            ],
            ["logs", "volumes", "within"],
            id="volumes and logs count for disk",
        ),
        pytest.param(
            Signal.INODES,
            [measure(pod("few"), files=1, disk=900), measure(pod("many"), files=9)],
            ["many", "few"],
            id="files count for inodes",
        ),
        pytest.param(
            Signal.PIDS,
            [
                measure(pod("high", priority=1), processes=900),
                measure(pod("many"), processes=20),
                measure(pod("few"), processes=2),
            ],
            ["many", "few", "high"],
            id="processes count after priority",
        ),
    ],
)
def test_pods_are_ranked(
    signal: Signal, pods_with_stats: list[tuple[Pod, PodStats | None]], expected: list[str]
) -> None:
    assert order(signal, *pods_with_stats) == expected


def test_memory_is_the_most_urgent() -> None:
    signals = [
        Threshold(s, ThresholdValue(Quantity(1))) for s in (Signal.DISK, Signal.PIDS, Signal.MEMORY)
    ]
    assert sort_by_urgency(signals)[0].signal is Signal.MEMORY


@pytest.mark.parametrize(
    ("signal", "value", "amounts", "expected"),
    [
        (
            Signal.MEMORY, ThresholdValue(Quantity("100Mi")), {"memory": 200},
            "The node was low on resource: memory. Threshold quantity: 100Mi, available: 50Mi. "
            "Container c was using 200Mi, request is 10Mi, has larger consumption of memory. ",
        ),
        (
            Signal.MEMORY, ThresholdValue(Quantity("100Mi")), {"memory": 5},
            "The node was low on resource: memory. Threshold quantity: 100Mi, available: 50Mi. ",
        ),
        (
            Signal.DISK, ThresholdValue(fraction=0.1), {"logs": 3},
            "The node was low on resource: ephemeral-storage. "
            "Threshold quantity: 100Mi, available: 50Mi. "
            "Container c was using 3Mi, request is 0, "
            "has larger consumption of ephemeral-storage. ",
        ),
    ],
)  # fmt: skip
def test_a_pod_is_told_why(
    signal: Signal, value: ThresholdValue, amounts: dict[str, int], expected: str
) -> None:
    evicted = pod("p", memory="10Mi")
    observed = {signal: Observation(50 * MI, 1000 * MI)}
    assert (
        build_eviction_message(Threshold(signal, value), evicted, use(evicted, **amounts), observed)
        == expected
    )


def test_of_a_pod_without_figures_only_the_threshold_is_told() -> None:
    text = build_eviction_message(
        Threshold(Signal.MEMORY, ThresholdValue(Quantity(1))), pod("p"), None, {}
    )
    assert text == "The node was low on resource: memory. "


@pytest.mark.parametrize(
    ("disk", "limit", "storage", "expected"),
    [
        (
            10, "5Mi", None,
            ("emptydirfs.limit", 'Usage of EmptyDir volume "data" exceeds the limit "5Mi". '),
        ),
        (5, "5Mi", None, None),
        (50, None, None, None),
        (
            50, None, "20Mi",
            (
                "ephemeralpodfs.limit",
                "Pod ephemeral local storage usage exceeds the total limit of containers 20Mi. ",
            ),
        ),
        (20, None, "20Mi", None),
    ],
)  # fmt: skip
def test_a_pod_that_writes_more_than_it_may_goes(
    disk: int, limit: str | None, storage: str | None, expected: tuple[str, str] | None
) -> None:
    source: dict[str, Any] = {"sizeLimit": limit} if limit else {}
    limits = {"ephemeral-storage": Quantity(storage)} if storage else None
    writing = builders.pod(
        volumes=[Volume.model_validate({"name": "data", "emptyDir": source})],
        containers=[builders.container(resources=ResourceRequirements(limits=limits))],
    )
    excess = find_storage_excess(writing, use(writing, disk=disk))
    assert ((excess.signal, excess.message) if excess else None) == expected
