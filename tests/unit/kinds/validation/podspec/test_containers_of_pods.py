"""Containers: names, images, ports, variables, mounts, probes, resources."""

from typing import Any

import pytest

from kcm.api import codec
from kcm.api.core_v1 import Pod
from kcm.kinds import defaults
from kcm.kinds.validation import validate_create

PODS = Pod.resource
C = {"name": "c", "image": "i"}


def faults(*containers: dict[str, Any], **spec: Any) -> list[str]:
    spec = {"containers": list(containers) or [C], **spec}
    body = {"metadata": {"name": "a", "namespace": "b"}, "spec": spec}
    return [str(fault) for fault in validate_create(defaults.apply(codec.decode(body, PODS)))]


KEY = {"name": "a", "key": "k"}
FILE = {"volumeName": "v", "path": "a", "key": "k"}
FIELD = {"fieldPath": "metadata.name"}


@pytest.mark.parametrize(
    ("fields", "fault"),
    [
        ({"name": ""}, "name: Required value"),
        ({"image": ""}, "image: Required value"),
        (
            {"image": " i"},
            'image: Invalid value: " i": must not have leading or trailing whitespace',
        ),
        (
            {"imagePullPolicy": "x"},
            'imagePullPolicy: Unsupported value: "x": supported values: "Always", '
            '"IfNotPresent", "Never"',
        ),
        (
            {"terminationMessagePolicy": "x"},
            'terminationMessagePolicy: Unsupported value: "x": supported values: '
            '"FallbackToLogsOnError", "File"',
        ),
        ({"ports": [{}]}, "ports[0].containerPort: Required value"),
        (
            {"ports": [{"containerPort": 65536}]},
            "ports[0].containerPort: Invalid value: 65536: must be between 1 and 65535, inclusive",
        ),
        (
            {"ports": [{"containerPort": 1, "hostPort": -1}]},
            "ports[0].hostPort: Invalid value: -1: must be between 1 and 65535, inclusive",
        ),
        (
            {"ports": [{"containerPort": 1, "protocol": "x"}]},
            'ports[0].protocol: Unsupported value: "x": supported values: "SCTP", "TCP", "UDP"',
        ),
        (
            {"ports": [{"containerPort": 1, "name": "a"}, {"containerPort": 2, "name": "a"}]},
            'ports[1].name: Duplicate value: "a"',
        ),
        (
            {"ports": [{"containerPort": 1, "name": "80"}]},
            'ports[0].name: Invalid value: "80": must contain at least one letter (a-z)',
        ),
        (
            {"ports": [{"containerPort": 1, "hostPort": 9}, {"containerPort": 2, "hostPort": 9}]},
            'ports[1].hostPort: Duplicate value: "TCP//9"',
        ),
        ({"env": [{"value": "x"}]}, "env[0].name: Required value"),
        (
            {"env": [{"name": "a=b"}]},
            'env[0].name: Invalid value: "a=b": a valid environment variable name must consist '
            "only of printable ASCII characters other than '='",
        ),
        (
            {"env": [{"name": "a", "valueFrom": {}}]},
            'env[0].valueFrom: Invalid value: "": must specify one of: `fieldRef`, '
            "`resourceFieldRef`, `configMapKeyRef`, `secretKeyRef` or `fileKeyRef`",
        ),
        (
            {"env": [{"name": "a", "valueFrom": {"fileKeyRef": {**FILE, "key": ""}}}]},
            "env[0].valueFrom.fileKeyRef.key: Required value",
        ),
        (
            {"env": [{"name": "a", "valueFrom": {"fileKeyRef": {**FILE, "path": "../a"}}}]},
            "env[0].valueFrom.fileKeyRef.path: Invalid value: \"../a\": must not contain '..'",
        ),
        (
            {"env": [{"name": "a", "valueFrom": {"fileKeyRef": {**FILE, "volumeName": "w"}}}]},
            'env[0].valueFrom.fileKeyRef.volumeName: Not found: "w"',
        ),
        (
            {"env": [{"name": "a", "value": "b", "valueFrom": {"secretKeyRef": KEY}}]},
            'env[0].valueFrom: Invalid value: "": may not be specified when `value` is not empty',
        ),
        (
            {"env": [{"name": "a", "valueFrom": {"secretKeyRef": KEY, "fieldRef": FIELD}}]},
            'env[0].valueFrom: Invalid value: "": may not have more than one field specified at '
            "a time",
        ),
        ({"volumeMounts": [{"mountPath": "/"}]}, "volumeMounts[0].name: Required value"),
        (
            {"volumeMounts": [{"name": "x", "mountPath": "/"}]},
            'volumeMounts[0].name: Not found: "x"',
        ),
        ({"volumeMounts": [{"name": "v"}]}, "volumeMounts[0].mountPath: Required value"),
        (
            {"volumeMounts": [{"name": "v", "mountPath": "/"}] * 2},
            'volumeMounts[1].mountPath: Invalid value: "/": must be unique',
        ),
        ({"livenessProbe": {}}, "livenessProbe: Required value: must specify a handler type"),
        (
            {"livenessProbe": {"exec": {"command": ["x"]}, "tcpSocket": {"port": 1}}},
            "livenessProbe.tcpSocket: Forbidden: may not specify more than 1 handler type",
        ),
        ({"livenessProbe": {"exec": {}}}, "livenessProbe.exec.command: Required value"),
        (
            {"readinessProbe": {"httpGet": {"port": 0}}},
            "readinessProbe.httpGet.port: Invalid value: 0: must be between 1 and 65535, inclusive",
        ),
        (
            {"readinessProbe": {"httpGet": {"port": 1, "scheme": "x"}}},
            'readinessProbe.httpGet.scheme: Unsupported value: "x": supported values: "HTTP", '
            '"HTTPS"',
        ),
        (
            {"startupProbe": {"tcpSocket": {"port": "no_good"}}},
            'startupProbe.tcpSocket.port: Invalid value: "no_good": must contain only '
            "alpha-numeric characters (a-z, 0-9), and hyphens (-)",
        ),
        (
            {"startupProbe": {"grpc": {"port": 0}}},
            "startupProbe.grpc.port: Invalid value: 0: must be between 1 and 65535, inclusive",
        ),
        (
            {"livenessProbe": {"tcpSocket": {"port": 1}, "successThreshold": 2}},
            "livenessProbe.successThreshold: Invalid value: 2: must be 1",
        ),
        (
            {"livenessProbe": {"tcpSocket": {"port": 1}, "periodSeconds": -1}},
            "livenessProbe.periodSeconds: Invalid value: -1: must be greater than or equal to 0",
        ),
        (
            {"livenessProbe": {"tcpSocket": {"port": 1}, "terminationGracePeriodSeconds": 0}},
            "livenessProbe.terminationGracePeriodSeconds: Invalid value: 0: must be greater than 0",
        ),
        (
            {"readinessProbe": {"tcpSocket": {"port": 1}, "terminationGracePeriodSeconds": 1}},
            "readinessProbe.terminationGracePeriodSeconds: Invalid value: 1: must not be set for "
            "readinessProbes",
        ),
        (
            {"resources": {"limits": {"cpu": "1"}, "requests": {"cpu": "2"}}},
            'resources.requests: Invalid value: "2": must be less than or equal to cpu limit of 1',
        ),
        (
            {"resources": {"requests": {"memory": "-1Ki"}}},
            'resources.requests[memory]: Invalid value: "-1Ki": must be greater than or equal to 0',
        ),
        (
            {"resources": {"requests": {"pods": "1"}}},
            'resources.requests[pods]: Invalid value: "pods": must be a standard resource for '
            "containers",
        ),
        (
            {"resources": {"requests": {"example.com/gpu": "1"}}},
            "resources.limits: Required value: Limit must be set for non overcommitable resources",
        ),
        (
            {
                "resources": {
                    "requests": {"hugepages-2Mi": "2Mi", "cpu": 1},
                    "limits": {"hugepages-2Mi": 0},
                }
            },
            'resources.requests: Invalid value: "2Mi": must be equal to hugepages-2Mi limit of 0',
        ),
    ],
)
def test_a_bad_container_is_explained_in_upstreams_words(
    fields: dict[str, Any], fault: str
) -> None:
    messages = faults({**C, **fields}, volumes=[{"name": "v"}])
    assert messages == [f"spec.containers[0].{fault}"]


def test_a_name_is_a_label() -> None:
    [message] = faults({**C, "name": "A"})
    assert message.startswith('spec.containers[0].name: Invalid value: "A": a lowercase RFC 1123')


def test_an_unknown_resource_is_refused_twice_over() -> None:
    assert faults({**C, "resources": {"limits": {"gpu": "1"}, "requests": {"gpu": "1"}}})[:2] == [
        'spec.containers[0].resources.limits[gpu]: Invalid value: "gpu": must be a standard '
        "resource type or fully qualified",
        'spec.containers[0].resources.limits[gpu]: Invalid value: "gpu": must be a standard '
        "resource for containers",
    ]


def test_vendors_resources_are_whole_and_not_called_requests() -> None:
    def limit(name: str, amount: int | str) -> list[str]:
        return faults({**C, "resources": {"limits": {name: amount}}})

    assert limit("example.com/gpu", 2) == []
    assert "must be an integer" in limit("example.com/gpu", "500m")[0]
    assert "extended resource name standard" in limit("requests.example.com/gpu", 1)[0]
    assert "name part must consist" in limit("a b", 1)[0]


def test_no_two_containers_share_a_name() -> None:
    assert faults(C, C) == ['spec.containers[1].name: Duplicate value: "c"']
    assert faults(C, initContainers=[C]) == ['spec.initContainers[0].name: Duplicate value: "c"']


def test_two_containers_may_use_one_port_name_but_not_one_host_port() -> None:
    port = {"containerPort": 1, "name": "a"}
    other = {**C, "name": "d"}
    assert faults({**C, "ports": [port]}, {**other, "ports": [port]}) == []
    port = {**port, "hostPort": 2, "hostIP": "10.0.0.1"}
    assert faults({**C, "ports": [port]}, {**other, "ports": [port]}) == [
        'spec.containers[1].ports[0].hostPort: Duplicate value: "TCP/10.0.0.1/2"'
    ]


def test_only_sidecars_may_have_probes_among_init_containers() -> None:
    init = {"name": "i", "image": "i", "livenessProbe": {"tcpSocket": {"port": 1}}}
    assert faults(initContainers=[{**init, "restartPolicy": "Always"}]) == []
    assert faults(initContainers=[init]) == [
        "spec.initContainers[0].livenessProbe: Forbidden: may not be set for init containers "
        "without restartPolicy=Always"
    ]
