"""The environment variables of a container."""

from __future__ import annotations

import base64
from typing import Any

import pytest

from kcm.api.core_v1 import ConfigMap, Pod, Secret, Service
from kcm.api.core_v1.containers import ResourceRequirements
from kcm.api.core_v1.environment import ResourceFieldSelector
from kcm.apimachinery.base import JsonObject
from kcm.apimachinery.quantity import Quantity
from kcm.errors import ContainerConfigError
from kcm.kubelet.environment.variables import (
    PodLocation,
    field_value,
    format_map,
    make_environment,
    resource_value,
)
from tests.lookups import FakeLookups

LOOKUPS = FakeLookups(
    {("shop", "settings"): ConfigMap(data={"COLOR": "red", "SIZE": "9"})},
    {("shop", "keys"): Secret(data={"TOKEN": base64.b64encode(b"s3cret").decode()})},
    (
        Service.model_validate(
            {
                "metadata": {"name": "db", "namespace": "shop"},
                "spec": {"clusterIP": "10.96.0.8", "ports": [{"port": 5432}]},
            }
        ),
    ),
)


FILES = {("scratch", "a/env"): "COLOR='red'\nEMPTY=''\n"}


def read_file(volume: str, path: str) -> str:
    if (volume, path) not in FILES:
        raise ContainerConfigError(f"no file {path} on {volume}")
    return FILES[volume, path]


def environment(**container: Any) -> dict[str, str]:
    pod = Pod.model_validate(
        {
            "metadata": {"name": "web", "namespace": "shop"},
            "spec": {"containers": [{"name": "main", **container}], "enableServiceLinks": True},
        }
    )
    place = PodLocation(pod_ips=("127.64.0.9",))
    variables = make_environment(pod, pod.spec.containers[0], LOOKUPS, place, read_file=read_file)
    return {name: value for name, value in variables.items() if not name.startswith("DB_PORT")}


DB = {"DB_SERVICE_HOST": "10.96.0.8", "DB_SERVICE_PORT": "5432"}


def env(*variables: tuple[str, Any]) -> list[dict[str, Any]]:
    return [
        {"name": name, "value" if isinstance(value, str) else "valueFrom": value}
        for name, value in variables
    ]


@pytest.mark.parametrize(
    ("container", "added"),
    [
        ({}, {}),
        ({"env": env(("A", "1"))}, {"A": "1"}),
        ({"env": [{"name": "A"}]}, {"A": ""}),
        ({"env": env(("A", "1"), ("A", "2"))}, {"A": "2"}),
        (
            {"env": env(("A", "1"), ("B", "$(A)$(C)"), ("C", "3"))},
            {"A": "1", "B": "1$(C)", "C": "3"},
        ),
        ({"env": env(("URL", "db:$(DB_SERVICE_PORT)"))}, {"URL": "db:5432"}),
        ({"env": env(("DB_SERVICE_HOST", "mine"))}, {"DB_SERVICE_HOST": "mine"}),
        ({"env": env(("IP", {"fieldRef": {"fieldPath": "status.podIP"}}))}, {"IP": "127.64.0.9"}),
        ({"env": env(("CPU", {"resourceFieldRef": {"resource": "limits.cpu"}}))}, {"CPU": "0"}),
        (
            {"env": env(("C", {"configMapKeyRef": {"name": "settings", "key": "COLOR"}}))},
            {"C": "red"},
        ),
        ({"env": env(("T", {"secretKeyRef": {"name": "keys", "key": "TOKEN"}}))}, {"T": "s3cret"}),
        ({"env": env(("X", {"secretKeyRef": {"name": "no", "key": "a", "optional": True}}))}, {}),
        (
            {
                "env": env(
                    ("X", {"configMapKeyRef": {"name": "settings", "key": "a", "optional": True}})
                )
            },
            {},
        ),
        ({"envFrom": [{"configMapRef": {"name": "settings"}}]}, {"COLOR": "red", "SIZE": "9"}),
        ({"envFrom": [{"prefix": "P_", "secretRef": {"name": "keys"}}]}, {"P_TOKEN": "s3cret"}),
        ({"envFrom": [{"secretRef": {"name": "no", "optional": True}}]}, {}),
        (
            {
                "envFrom": [{"configMapRef": {"name": "settings"}}],
                "env": env(("COLOR", "not $(COLOR)")),
            },
            {"COLOR": "not red", "SIZE": "9"},
        ),
    ],
)
def test_variables_come_from_services_envfrom_and_env(
    container: dict[str, Any], added: dict[str, str]
) -> None:
    assert environment(**container) == {**DB, **added}


@pytest.mark.parametrize(
    ("container", "words"),
    [
        ({"envFrom": [{"configMapRef": {"name": "no"}}]}, 'configmap "no" not found'),
        ({"envFrom": [{"secretRef": {"name": "no"}}]}, 'secret "no" not found'),
        (
            {"env": env(("X", {"configMapKeyRef": {"name": "settings", "key": "a"}}))},
            "couldn't find key a in ConfigMap shop/settings",
        ),
        (
            {"env": env(("X", {"secretKeyRef": {"name": "keys", "key": "a"}}))},
            "couldn't find key a in Secret shop/keys",
        ),
        ({"env": env(("X", {"fileKeyRef": {"volumeName": "v", "path": "p"}}))}, "no file p on v"),
    ],
)
def test_a_reference_that_leads_nowhere_is_an_error(container: dict[str, Any], words: str) -> None:
    with pytest.raises(ContainerConfigError, match=words):
        environment(**container)


# --- Fields and resources of pods as text.


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
    ("ref", "value"),
    [
        ({"resource": "limits.cpu", "containerName": "bare"}, "2"),
        ({"resource": "limits.cpu", "containerName": "first"}, "3"),
        ({"resource": "limits.memory", "containerName": "bare", "divisor": "1Mi"}, "2048"),
        ({"resource": "requests.cpu", "containerName": "bare"}, "0"),
    ],
)
def test_a_limit_that_is_not_set_is_the_pods(ref: JsonObject, value: str) -> None:
    limits = ResourceRequirements.model_validate({"limits": {"cpu": "1250m"}})
    pod = POD.with_spec(POD.spec.replace(resources=limits))
    chosen = ResourceFieldSelector.model_validate(ref)
    assert resource_value(chosen, pod, None, PLACE) == value


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


def in_file(key: str, path: str = "a/env", **more: Any) -> list[dict[str, Any]]:
    ref = {"volumeName": "scratch", "path": path, "key": key, **more}
    return env(("V", {"fileKeyRef": ref}))


# After the rows with fileKeyRef of TestMakeEnvironmentVariables in kubelet_pods_test.go.
def test_a_variable_comes_from_a_file_on_a_volume() -> None:
    assert environment(env=in_file("COLOR")) == DB | {"V": "red"}
    assert environment(env=in_file("OTHER", optional=True)) == DB
    for variable, words in (
        (in_file("OTHER"), 'environment variable key "OTHER" not found in file "a/env"'),
        (in_file("EMPTY"), "not found"),
        (in_file("COLOR", "none", optional=True), "no file none on scratch"),
    ):
        with pytest.raises(ContainerConfigError, match=words):
            environment(env=variable)
