"""Requests and limits of whole pods."""

from kcm.api import codec
from kcm.api.core_v1 import Pod
from kcm.api.pods.qos import compute_qos_class
from kcm.api.pods.resources import has_pod_level, limits_of, requests_of
from kcm.controllers.scheduler.resources import requests_of as scheduled_requests
from kcm.helpers.podresources import requests_of as kubelet_requests

WHOLE = {"requests": {"cpu": "2", "vendor/gpu": "1"}, "limits": {"cpu": "3"}}
CONTAINER = {"requests": {"cpu": "1", "memory": "1Gi"}, "limits": {"memory": "2Gi"}}


def build_pod(**spec: object) -> Pod:
    containers = [{"name": "c", "image": "i", "resources": CONTAINER}]
    return codec.decode({"spec": {"containers": containers, **spec}}, Pod.resource)


def test_what_the_pod_asks_for_replaces_the_sum_of_its_containers() -> None:
    spec = build_pod(resources=WHOLE, overhead={"cpu": "100m"}).spec
    assert {n: str(a) for n, a in requests_of(spec).items()} == {"cpu": "2100m", "memory": "1Gi"}
    assert {n: str(a) for n, a in limits_of(spec).items()} == {"cpu": "3100m", "memory": "2Gi"}


def test_scheduler_and_kubelet_count_the_same() -> None:
    pod = build_pod(resources=WHOLE)
    assert scheduled_requests(pod.spec).cpu == kubelet_requests(pod)["cpu"] == 2000
    assert kubelet_requests(pod)["vendor/gpu"] == 0


def test_resources_that_only_containers_have_do_not_count_for_a_pod() -> None:
    assert not has_pod_level(build_pod(resources={"requests": {"vendor/gpu": "1"}}).spec)
    assert has_pod_level(build_pod(resources={"limits": {"cpu": "1"}}).spec)


def test_the_class_of_a_pod_follows_from_its_own_amounts() -> None:
    both = {"cpu": "1", "memory": "1Gi"}
    assert compute_qos_class(build_pod()) == "Burstable"
    assert compute_qos_class(build_pod(resources={"limits": both})) == "Guaranteed"
    assert compute_qos_class(build_pod(resources={"requests": both})) == "Burstable"
    assert compute_qos_class(build_pod(resources={})) == "BestEffort"
