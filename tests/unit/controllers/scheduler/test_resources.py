"""The requests of a pod, with cases from upstream's Test_PodRequests."""

from __future__ import annotations

from typing import Any

import pytest

from kcm.api.core_v1 import Container, Pod, ResourceRequirements
from kcm.controllers.scheduler.nodeinfo import PodInfo
from kcm.controllers.scheduler.resources import DEFAULT_MEMORY, requests_of, reserve_resized
from tests.typed_objects import decode_as
from tests.unit.controllers.scheduler.world import build_container, pod, quantities


def sidecar(**requests: Any) -> Container:
    return build_container(**requests).replace(restart_policy="Always")


@pytest.mark.parametrize(
    ("containers", "init", "overhead", "cpu", "memory"),
    [
        ([build_container(cpu="1", memory="10")], [], {}, 1000, 10),
        (
            [build_container(cpu="100m"), build_container(cpu="250m", memory="1Ki")],
            [],
            {},
            350,
            1024,
        ),
        ([build_container(cpu="1")], [build_container(cpu="3")], {}, 3000, 0),
        (
            [build_container(cpu="2")],
            [build_container(cpu="1"), build_container(cpu="1500m")],
            {},
            2000,
            0,
        ),
        ([build_container(cpu="1")], [sidecar(cpu="1")], {}, 2000, 0),
        ([build_container(cpu="1")], [sidecar(cpu="1"), build_container(cpu="3")], {}, 4000, 0),
        ([build_container(cpu="1")], [build_container(cpu="3"), sidecar(cpu="1")], {}, 3000, 0),
        (
            [build_container(cpu="1")],
            [sidecar(cpu="1"), build_container(cpu="1"), sidecar(cpu="2")],
            {},
            4000,
            0,
        ),
        ([build_container(cpu="1")], [], {"cpu": "250m", "memory": "7"}, 1250, 7),
        ([build_container(cpu="1")], [build_container(cpu="3")], {"cpu": "1"}, 4000, 0),
        ([build_container(cpu="100u")], [], {}, 1, 0),
    ],
)
def test_init_containers_sidecars_and_overhead_count_as_they_run(
    containers: list[Container],
    init: list[Container],
    overhead: dict[str, str],
    cpu: int,
    memory: int,
) -> None:
    new_pod = pod(containers=containers, init_containers=init, overhead=quantities(overhead))
    requests = requests_of(new_pod.spec)
    assert (requests.cpu, requests.memory) == (cpu, memory)


def test_extended_resources_are_kept_by_name() -> None:
    requests = requests_of(pod(containers=[build_container(nvidia=2, storage="1")]).spec)
    assert requests.others == (("nvidia.com/gpu", 2), ("storage", 1))


def test_containers_without_requests_count_as_small_ones_in_scores() -> None:
    requests = requests_of(
        pod(containers=[build_container(), build_container(cpu="1", memory="5")]).spec
    )
    assert (requests.cpu, requests.memory) == (1000, 5)
    assert (requests.scoring_cpu, requests.scoring_memory) == (1100, DEFAULT_MEMORY + 5)


def test_requests_of_the_pod_itself_count_in_place_of_its_containers() -> None:
    own = quantities({"cpu": "3"})
    spec = pod(
        containers=[build_container(cpu="1", memory="5")],
        resources=ResourceRequirements(requests=own),
        overhead=quantities({"cpu": "1"}),
    ).spec
    assert (requests_of(spec).cpu, requests_of(spec).memory) == (4000, 5)


# after the cases of Test_PodRequests with InPlacePodVerticalScaling
@pytest.mark.parametrize(
    ("asked", "has", "pending", "cpu"),
    [
        ("2", "2", "", 2000), ("3", "2", "", 3000), ("1", "2", "", 2000), ("2", None, "", 2000),
        ("3", "2", "Deferred", 3000), ("3", "2", "Infeasible", 2000),
    ],
)  # fmt: skip
def test_what_a_resized_pod_has_and_asks_for_is_reserved(
    asked: str, has: str | None, pending: str, cpu: int
) -> None:
    resources = {"requests": {"cpu": asked}}
    status: dict[str, Any] = {"name": "c", "restartCount": 0}
    if has is not None:
        status["resources"] = {"requests": {"cpu": has}}
    conditions = [{"type": "PodResizePending", "status": "True", "reason": pending}]
    resized = decode_as(Pod, {
        "metadata": {"name": "p", "uid": "u", "generation": 1, "resourceVersion": "1"},
        "spec": {"containers": [{"name": "c", "image": "i", "resources": resources}]},
        "status": {"containerStatuses": [status], "conditions": conditions if pending else []},
    })  # fmt: skip
    assert requests_of(reserve_resized(resized)).cpu == cpu
    settled = has in {asked, None}
    assert (reserve_resized(resized) is resized.spec) == settled
    assert PodInfo(resized).is_current(resized) == settled
