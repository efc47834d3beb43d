"""Fields and resources of pods as text."""

from __future__ import annotations

import pytest

from kcm.api.core_v1 import Pod
from kcm.api.core_v1.environment import ResourceFieldSelector
from kcm.apimachinery.base import JsonObject
from kcm.apimachinery.quantity import Quantity
from kcm.errors import ContainerConfigError
from kcm.kubelet.environment.fields import field_value, format_map, resource_value
from kcm.kubelet.environment.lookups import PodLocation

POD = Pod.model_validate(
    {
        "metadata": {
            "name": "web",
            "namespace": "shop",
            "uid": "u1",
            "labels": {"b": "2", "a": "1"},
            "annotations": {"a/b": 'say "hi"\n'},
        },
        "spec": {
            "nodeName": "n1",
            "serviceAccountName": "robot",
            "containers": [
                {
                    "name": "main",
                    "resources": {
                        "limits": {"cpu": "1500m", "memory": "100Mi"},
                        "requests": {"cpu": "250m", "hugepages-2Mi": "4Mi"},
                    },
                },
                {"name": "bare"},
            ],
            "initContainers": [{"name": "first", "resources": {"limits": {"cpu": "3"}}}],
        },
    }
)
PLACE = PodLocation(
    ("127.64.0.9", "::1"),
    ("10.0.0.1", "10.0.0.2"),
    {"cpu": Quantity("8"), "memory": Quantity("2Gi")},
)


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("metadata.name", "web"),
        ("metadata.namespace", "shop"),
        ("metadata.uid", "u1"),
        ("metadata.labels", 'a="1"\nb="2"'),
        ("metadata.labels['b']", "2"),
        ("metadata.labels['none']", ""),
        ("metadata.annotations", 'a/b="say \\"hi\\"\\n"'),
        ("metadata.annotations['a/b']", 'say "hi"\n'),
        ("spec.nodeName", "n1"),
        ("spec.serviceAccountName", "robot"),
        ("status.hostIP", "10.0.0.1"),
        ("status.hostIPs", "10.0.0.1,10.0.0.2"),
        ("status.podIP", "127.64.0.9"),
        ("status.podIPs", "127.64.0.9,::1"),
    ],
)
def test_a_field_has_its_value(path: str, value: str) -> None:
    assert field_value(path, POD, PLACE) == value


@pytest.mark.parametrize("path", ["spec.restartPolicy", "", "metadata.name['a']"])
def test_other_fields_are_refused(path: str) -> None:
    with pytest.raises(ContainerConfigError):
        field_value(path, POD, PLACE)


@pytest.mark.parametrize(
    ("ref", "value"),
    [
        ({"resource": "limits.cpu"}, "2"),
        ({"resource": "limits.cpu", "divisor": "1m"}, "1500"),
        ({"resource": "requests.cpu", "divisor": "1"}, "1"),
        ({"resource": "requests.cpu", "divisor": "100m"}, "3"),
        ({"resource": "limits.memory"}, str(100 * 2**20)),
        ({"resource": "limits.memory", "divisor": "1Mi"}, "100"),
        ({"resource": "limits.memory", "divisor": "1Gi"}, "1"),
        ({"resource": "requests.memory"}, "0"),
        ({"resource": "requests.hugepages-2Mi", "divisor": "1Mi"}, "4"),
        ({"resource": "limits.cpu", "containerName": "bare"}, "8"),
        ({"resource": "limits.memory", "containerName": "bare", "divisor": "1Mi"}, "2048"),
        ({"resource": "limits.cpu", "containerName": "first"}, "3"),
    ],
)
def test_an_amount_is_counted_in_divisors_and_rounded_up(ref: JsonObject, value: str) -> None:
    assert (
        resource_value(
            ResourceFieldSelector.model_validate(ref), POD, POD.spec.containers[0], PLACE
        )
        == value
    )


@pytest.mark.parametrize(
    "ref",
    [
        {"resource": "limits.gpu"},
        {"resource": "cpu"},
        {"resource": "limits.cpu", "containerName": "x"},
    ],
)
def test_unknown_amounts_are_refused(ref: JsonObject) -> None:
    with pytest.raises(ContainerConfigError):
        resource_value(
            ResourceFieldSelector.model_validate(ref), POD, POD.spec.containers[0], PLACE
        )


def test_no_labels_are_an_empty_text() -> None:
    assert format_map(None) == ""
