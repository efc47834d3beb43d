"""What all containers of a pod may use together. Cases of TestResourceConfigForPod in
pkg/kubelet/cm/helpers_linux_test.go, Kubernetes 1.36, and of pods with resources of their own.
"""

from __future__ import annotations

from typing import Any

import pytest

from kcm.api.core_v1 import Pod
from kcm.kubelet.kuberuntime.configs import build_pod_resources

MIB = 1024**2


def amounts(cpu: str, memory: str) -> dict[str, str]:
    return {"cpu": cpu, "memory": memory}


ASKS = {"requests": amounts("100m", "100Mi")}
LIMITED = {"requests": amounts("100m", "100Mi"), "limits": amounts("200m", "200Mi")}
GUARANTEED = {"requests": amounts("100m", "100Mi"), "limits": amounts("100m", "100Mi")}


@pytest.mark.parametrize(
    ("containers", "more", "shares", "quota", "memory"),
    [
        ([{}], {}, 2, None, None),
        ([ASKS], {}, 102, None, None),
        ([LIMITED], {}, 102, 20_000, 200 * MIB),
        ([LIMITED, ASKS], {}, 204, None, None),
        ([LIMITED, LIMITED], {}, 204, 40_000, 400 * MIB),
        ([GUARANTEED], {}, 102, 10_000, 100 * MIB),
        ([{"limits": {"memory": "5Mi"}}], {}, 2, None, 5 * MIB),
        ([LIMITED], {"initContainers": [ASKS]}, 102, None, None),
        ([LIMITED], {"initContainers": [{"limits": amounts("300m", "9Mi")}]}, 102, 30_000,
         200 * MIB),
        ([ASKS], {"resources": {"limits": amounts("500m", "50Mi")}}, 102, 50_000, 50 * MIB),
        ([{"limits": amounts("1m", "1Mi")}], {}, 2, 1000, MIB),
    ],
)  # fmt: skip
def test_a_pod_is_limited_where_all_of_it_is(
    containers: list[dict[str, Any]],
    more: dict[str, Any],
    shares: int,
    quota: int | None,
    memory: int | None,
) -> None:
    def build(resources: list[dict[str, Any]]) -> list[dict[str, Any]]:
        return [{"name": f"c{n}", "resources": each} for n, each in enumerate(resources)]

    inits = build(more.get("initContainers", []))
    spec = {**more, "containers": build(containers), "initContainers": inits}
    resources = build_pod_resources(Pod.model_validate({"spec": spec}))
    assert (resources.cpu_shares, resources.cpu_quota, resources.memory_bytes) == (
        shares, quota, memory,
    )  # fmt: skip
