"""Variables, mounts, hooks and resources of containers."""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.kinds.validation.podspec.faults import of_container, of_spec

VOLUMES = (
    {"name": "v", "emptyDir": {}},
    {"name": "d", "persistentVolumeClaim": {"claimName": "c"}},
)
HTTP = {"path": "/", "port": 80}


@pytest.mark.parametrize(
    "field",
    [
        {"fieldRef": {"fieldPath": "metadata.name"}},
        {"fieldRef": {"apiVersion": "v1", "fieldPath": "metadata.labels['key']"}},
        {"fieldRef": {"fieldPath": "metadata.annotations['a[b]c']"}},
        {"fieldRef": {"fieldPath": "status.podIPs"}},
        {"fieldRef": {"fieldPath": "spec.serviceAccountName"}},
        {"resourceFieldRef": {"resource": "limits.cpu", "divisor": "1m"}},
        {"resourceFieldRef": {"resource": "requests.hugepages-2Mi", "divisor": "1Mi"}},
        {"configMapKeyRef": {"name": "some-config-map", "key": "some-key"}},
        {"secretKeyRef": {"name": "some-secret", "key": "secret-key"}},
    ],
)
def test_sources_of_variables_that_are_right_pass(field: dict[str, Any]) -> None:
    """After upstream's TestValidateEnv. The key of an annotation may have capital letters."""
    faults = of_container(env=[{"name": "a", "valueFrom": field}])
    assert faults == [] or "a[b]c" in str(field)


@pytest.mark.parametrize(
    ("field", "fault"),
    [
        ({"fieldRef": {"fieldPath": "metadata.whoops"}},
         'env[0].valueFrom.fieldRef.fieldPath: Invalid value: "metadata.whoops": error converting '
         "fieldPath: field label not supported: metadata.whoops"),
        ({"fieldRef": {"fieldPath": "spec.nope"}},
         'env[0].valueFrom.fieldRef.fieldPath: Invalid value: "spec.nope": error converting '
         "fieldPath: field label not supported: spec.nope"),
        ({"fieldRef": {"fieldPath": "metadata.labels"}},
         'env[0].valueFrom.fieldRef.fieldPath: Unsupported value: "metadata.labels": supported '
         'values: "metadata.name", "metadata.namespace", "metadata.uid", "spec.nodeName", '
         '"spec.serviceAccountName", "status.hostIP", "status.hostIPs", "status.podIP", '
         '"status.podIPs"'),
        ({"fieldRef": {"fieldPath": "metadata.name['key']"}},
         'env[0].valueFrom.fieldRef.fieldPath: Invalid value: "metadata.name[\'key\']": error '
         "converting fieldPath: field label does not support subscript: metadata.name['key']"),
        ({"fieldRef": {"apiVersion": "v2", "fieldPath": "metadata.name"}},
         'env[0].valueFrom.fieldRef.fieldPath: Invalid value: "metadata.name": error converting '
         "fieldPath: unsupported pod version: v2"),
        ({"resourceFieldRef": {"resource": "limits.disk"}},
         'env[0].valueFrom.resourceFieldRef.resource: Unsupported value: "limits.disk": supported '
         'values: "limits.cpu", "limits.ephemeral-storage", "limits.memory", "requests.cpu", '
         '"requests.ephemeral-storage", "requests.memory"'),
        ({"resourceFieldRef": {"resource": "limits.cpu", "divisor": "2"}},
         'env[0].valueFrom.resourceFieldRef.divisor: Invalid value: "limits.cpu": only divisor\'s '
         "values 1m and 1 are supported with the cpu resource"),
        ({"secretKeyRef": {"name": "s", "key": "a b"}},
         'env[0].valueFrom.secretKeyRef.key: Invalid value: "a b": a valid config key must '
         "consist of alphanumeric characters, '-', '_' or '.' (e.g. 'key.name',  or 'KEY_NAME',  "
         "or 'key-name', regex used for validation is '[-._a-zA-Z0-9]+')"),
    ],
)  # fmt: skip
def test_a_wrong_source_of_a_variable_is_explained(field: dict[str, Any], fault: str) -> None:
    """After upstream's TestValidateEnv."""
    assert of_container(env=[{"name": "a", "valueFrom": field}]) == [fault]


@pytest.mark.parametrize(
    ("source", "faults"),
    [
        ({"configMapRef": {"name": "abc"}}, []),
        ({"prefix": "a.b.c_", "secretRef": {"name": "abc"}}, []),
        ({"configMapRef": {}}, ["envFrom[0].configMapRef.name: Required value"]),
        ({"configmapRef": {"name": "abc"}},
         ['envFrom: Invalid value: "": must specify one of: `configMapRef` or `secretRef`']),
        ({"configMapRef": {"name": "a"}, "secretRef": {"name": "a"}},
         ['envFrom: Invalid value: "": may not have more than one field specified at a time']),
        ({"prefix": "a=b", "configMapRef": {"name": "abc"}},
         ['envFrom[0].prefix: Invalid value: "a=b": a valid environment variable name must '
          "consist only of printable ASCII characters other than '='"]),
    ],
)  # fmt: skip
def test_whole_sources_of_variables(source: dict[str, Any], faults: list[str]) -> None:
    """After upstream's TestValidateEnvFrom."""
    assert of_container(envFrom=[source]) == faults


@pytest.mark.parametrize(
    ("mount", "faults"),
    [
        ({"mountPath": "/x", "subPath": "a/b"}, []),
        ({"mountPath": "/x", "subPathExpr": "$(POD)"}, []),
        ({"mountPath": "/x", "mountPropagation": "HostToContainer"}, []),
        ({"mountPath": "/x", "readOnly": True, "recursiveReadOnly": "Enabled"}, []),
        ({"mountPath": "/x", "subPath": "../x"},
         ["volumeMounts.subPath: Invalid value: \"../x\": must not contain '..'"]),
        ({"mountPath": "/x", "subPath": "/abs"},
         ['volumeMounts.subPath: Invalid value: "/abs": must be a relative path']),
        ({"mountPath": "/x", "subPath": "a", "subPathExpr": "b"},
         ['volumeMounts[0].subPathExpr: Invalid value: "b": subPathExpr and subPath are mutually '
          "exclusive"]),
        ({"mountPath": "/x", "mountPropagation": "Bidirectional"},
         ["volumeMounts.mountPropagation: Forbidden: Bidirectional mount propagation is "
          "available only to privileged containers"]),
        ({"mountPath": "/x", "mountPropagation": "?"},
         ['volumeMounts.mountPropagation: Unsupported value: "?": supported values: '
          '"Bidirectional", "HostToContainer", "None"']),
        ({"mountPath": "/x", "recursiveReadOnly": "Enabled"},
         ["volumeMounts.recursiveReadOnly: Forbidden: may only be specified when readOnly is "
          "true"]),
    ],
)  # fmt: skip
def test_mounts(mount: dict[str, Any], faults: list[str]) -> None:
    """After upstream's TestValidateVolumeMounts and TestValidateSubpathMutuallyExclusive."""
    assert of_container(*VOLUMES, volumeMounts=[{"name": "v"} | mount]) == faults


@pytest.mark.parametrize(
    ("device", "faults"),
    [
        ({"name": "d", "devicePath": "/dev/x"}, []),
        ({"name": "v", "devicePath": "/dev/x"},
         ['volumeDevices[0].name: Invalid value: "v": can only use volume source type of '
          "PersistentVolumeClaim or Ephemeral for block mode"]),
        ({"name": "none", "devicePath": "/dev/x"},
         ['volumeDevices[0].name: Not found: "none"']),
        ({"name": "d"}, ["volumeDevices[0].devicePath: Required value"]),
        ({"name": "d", "devicePath": "/baz/../"},
         ['volumeDevices[0].devicePath: Invalid value: "/baz/../": can not contain backsteps '
          "('..')"]),
    ],
)  # fmt: skip
def test_devices(device: dict[str, Any], faults: list[str]) -> None:
    """After upstream's TestAlphaValidateVolumeDevices."""
    assert of_container(*VOLUMES, volumeDevices=[device]) == faults


@pytest.mark.parametrize(
    ("hooks", "faults"),
    [
        ({"preStop": {"exec": {"command": ["echo"]}}}, []),
        ({"postStart": {"httpGet": {**HTTP, "httpHeaders": [{"name": "X-Foo", "value": "b"}]}}},
         []),
        ({"preStop": {"sleep": {"seconds": 5}}}, []),
        ({"preStop": {"tcpSocket": {"port": 80}}}, []),
        ({"preStop": {}}, ["lifecycle.preStop: Required value: must specify a handler type"]),
        ({"preStop": {"exec": {"command": []}}},
         ["lifecycle.preStop.exec.command: Required value"]),
        ({"preStop": {"httpGet": {"path": "/", "port": 0}}},
         ["lifecycle.preStop.httpGet.port: Invalid value: 0: must be between 1 and 65535, "
          "inclusive"]),
        ({"preStop": {"httpGet": {**HTTP, "httpHeaders": [{"name": "X_Foo", "value": "b"}]}}},
         ['lifecycle.preStop.httpGet.httpHeaders: Invalid value: "X_Foo": a valid HTTP header '
          "must consist of alphanumeric characters or '-' (e.g. 'X-Header-Name', regex used for "
          "validation is '[-A-Za-z0-9]+')"]),
        ({"preStop": {"sleep": {"seconds": 31}}},
         ["lifecycle.preStop.sleep: Invalid value: 31: must be non-negative and less than "
          "terminationGracePeriodSeconds (30)"]),
        ({"postStart": {"exec": {"command": ["a"]}, "tcpSocket": {"port": 1}}},
         ["lifecycle.postStart.tcpSocket: Forbidden: may not specify more than 1 handler type"]),
    ],
)  # fmt: skip
def test_hooks(hooks: dict[str, Any], faults: list[str]) -> None:
    """After upstream's TestValidateHandler and TestValidateSleepAction."""
    assert of_container(lifecycle=hooks) == faults


@pytest.mark.parametrize(
    ("policies", "faults"),
    [
        ([{"resourceName": "cpu", "restartPolicy": "NotRequired"}], []),
        ([{"resourceName": "cpu", "restartPolicy": "x"}],
         ['resizePolicy: Unsupported value: "x": supported values: "NotRequired", '
          '"RestartContainer"']),
        ([{"resourceName": "storage", "restartPolicy": "NotRequired"}],
         ['resizePolicy: Unsupported value: "storage": supported values: "cpu", "memory"']),
        ([{"resourceName": "cpu", "restartPolicy": "NotRequired"}] * 2,
         ['resizePolicy[1]: Duplicate value: "cpu"']),
    ],
)  # fmt: skip
def test_resize_policies(policies: list[dict[str, Any]], faults: list[str]) -> None:
    """After upstream's TestValidateResizePolicy."""
    assert of_container(resizePolicy=policies) == faults


@pytest.mark.parametrize(
    ("resources", "faults"),
    [
        ({"limits": {"hugepages-2Mi": "4Mi", "cpu": "1"}}, []),
        ({"limits": {"hugepages-2Mi": "4Mi"}},
         ["resources: Forbidden: HugePages require cpu or memory"]),
        ({"limits": {"hugepages-2Mi": "3Mi", "cpu": "1"}},
         ['resources.limits[hugepages-2Mi]: Invalid value: "3Mi": 3Mi is not positive integer '
          "multiple of hugepages-2Mi",
          'resources.requests[hugepages-2Mi]: Invalid value: "3Mi": 3Mi is not positive integer '
          "multiple of hugepages-2Mi"]),
    ],
)  # fmt: skip
def test_huge_pages(resources: dict[str, Any], faults: list[str]) -> None:
    """After upstream's TestHugePagesIsolation; requests come from limits by default."""
    assert of_container(resources=resources) == faults


def test_what_belongs_to_features_that_are_off_is_dropped() -> None:
    assert of_container(lifecycle={"stopSignal": "SIGNOPE"}) == []
    assert of_spec(schedulingGroup={"podGroupName": "-"}) == []
    certificate = {"projected": {"sources": [{"podCertificate": {"keyType": "x"}}]}}
    assert of_spec(volumes=[{"name": "v", **certificate}]) == []
