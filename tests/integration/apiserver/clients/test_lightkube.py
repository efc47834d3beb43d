"""lightkube: typed models, apply, patch, wait, generic resources."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from lightkube import ApiError, Client, KubeConfig
from lightkube.models.apps_v1 import ReplicaSetSpec
from lightkube.models.core_v1 import Container, PodSpec, PodTemplateSpec
from lightkube.models.meta_v1 import LabelSelector, ObjectMeta
from lightkube.resources.apps_v1 import ReplicaSet
from lightkube.resources.core_v1 import ConfigMap, Pod
from lightkube.types import PatchType

from tests.integration.apiserver.serving import Live


@pytest.fixture
def lightkube(api: Live, namespace: str) -> Iterator[Client]:
    config = KubeConfig.from_file(str(api.kubeconfig))
    with Client(config=config, namespace=namespace, field_manager="me") as client:
        yield client


def web(name: str = "web", replicas: int = 1) -> ReplicaSet:
    labels = {"app": name}
    template = PodTemplateSpec(
        metadata=ObjectMeta(labels=labels),
        spec=PodSpec(containers=[Container(name="c", image="nginx:1")]),
    )
    spec = ReplicaSetSpec(LabelSelector(matchLabels=labels), replicas=replicas, template=template)
    return ReplicaSet(metadata=ObjectMeta(name=name), spec=spec)


def test_objects_are_created_read_listed_and_deleted(lightkube: Client) -> None:
    lightkube.create(ConfigMap(metadata=ObjectMeta(name="c", labels={"a": "b"}), data={"k": "v"}))
    assert lightkube.get(ConfigMap, "c").data == {"k": "v"}
    listed = lightkube.list(ConfigMap, labels={"a": "b"})
    assert [item.metadata.name for item in listed if item.metadata] == ["c"]
    lightkube.delete(ConfigMap, "c")
    with pytest.raises(ApiError, match="not found"):
        lightkube.get(ConfigMap, "c")


def test_server_side_apply_changes_and_conflicts(lightkube: Client) -> None:
    lightkube.apply(web(replicas=2))
    assert lightkube.apply(web(replicas=3)).spec.replicas == 3
    with pytest.raises(ApiError, match="conflict"):
        lightkube.apply(web(replicas=4), field_manager="other")
    assert lightkube.apply(web(replicas=4), field_manager="other", force=True).spec.replicas == 4


def test_patches_of_all_types(lightkube: Client) -> None:
    lightkube.create(web())
    lightkube.patch(ReplicaSet, "web", {"spec": {"replicas": 5}}, patch_type=PatchType.MERGE)
    operation = {"op": "add", "path": "/spec/minReadySeconds", "value": 7}
    lightkube.patch(ReplicaSet, "web", [operation], patch_type=PatchType.JSON)
    image = {"spec": {"template": {"spec": {"containers": [{"name": "c", "image": "nginx:2"}]}}}}
    patched = lightkube.patch(ReplicaSet, "web", image, patch_type=PatchType.STRATEGIC)
    assert (patched.spec.replicas, patched.spec.minReadySeconds) == (5, 7)
    assert patched.spec.template is not None
    assert patched.spec.template.spec is not None
    assert patched.spec.template.spec.containers[0].image == "nginx:2"


def test_the_scale_subresource(lightkube: Client) -> None:
    lightkube.create(web())
    scale = lightkube.get(ReplicaSet.Scale, "web")
    assert scale.spec is not None
    scale.spec.replicas = 9
    lightkube.replace(scale, "web")
    assert lightkube.get(ReplicaSet, "web").spec.replicas == 9


def test_a_watch_and_a_wait_see_a_status(lightkube: Client, api: Live, namespace: str) -> None:
    pod = Pod(
        metadata=ObjectMeta(name="p"),
        spec=PodSpec(containers=[Container(name="c", image="nginx:1")]),
    )
    lightkube.create(pod)
    condition = {"type": "Ready", "status": "True"}
    api.patch(
        f"/api/v1/namespaces/{namespace}/pods/p/status",
        {"status": {"phase": "Running", "conditions": [condition]}},
    )
    waited = lightkube.wait(Pod, "p", for_conditions=["Ready"])
    assert waited.status is not None
    assert waited.status.phase == "Running"
    operation, seen = next(iter(lightkube.watch(Pod, server_timeout=2)))
    assert seen.metadata is not None
    assert (operation, seen.metadata.name) == ("ADDED", "p")
