"""Services."""

from typing import Any

import pytest

from tests.samples import sample, with_spec
from tests.unit.kinds.validation.outcomes import (
    validate_changed,
    validate_changed_status,
    validate_new,
    validate_new_spec,
)

PORT = {"port": 80}
A, B = {"name": "a", "port": 80}, {"name": "b", "port": 81}


def test_services_are_named_by_rfc_1123() -> None:
    assert not validate_new("services", metadata={"name": "1a", "namespace": "default"})
    [message] = validate_new("services", metadata={"name": "a.b", "namespace": "default"})
    assert message.startswith('metadata.name: Invalid value: "a.b": a lowercase RFC 1123 label')


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ({"ports": None}, ["spec.ports: Required value"]),
        ({"ports": None, "clusterIP": "None"}, []),
        ({"ports": [A, B]}, []),
        ({"ports": [PORT, B]}, ["spec.ports[0].name: Required value"]),
        (
            {"ports": [A, {"name": "a", "port": 81}]},
            ['spec.ports[1].name: Duplicate value: "a"'],
        ),
        (
            {"ports": [A, {"name": "b", "port": 80}]},
            ['spec.ports[1]: Duplicate value: {"protocol":"TCP","port":80}'],
        ),
        (
            {"ports": [{"port": 0, "targetPort": "http"}]},
            ["spec.ports[0].port: Invalid value: 0: must be between 1 and 65535, inclusive"],
        ),
        (
            {"ports": [{"port": 1, "protocol": "ICMP"}]},
            [
                'spec.ports[0].protocol: Unsupported value: "ICMP": '
                'supported values: "SCTP", "TCP", "UDP"'
            ],
        ),
        (
            {"ports": [{"port": 1, "nodePort": 30000}]},
            ["spec.ports[0].nodePort: Forbidden: may not be used when `type` is 'ClusterIP'"],
        ),
        (
            {"type": "X"},
            [
                'spec.type: Unsupported value: "X": supported values: "ClusterIP", '
                '"ExternalName", "LoadBalancer", "NodePort"'
            ],
        ),
        ({"type": "ExternalName", "ports": None, "externalName": "a.b."}, []),
        ({"type": "ExternalName"}, ["spec.externalName: Required value"]),
        (
            {"type": "ExternalName", "externalName": "a", "clusterIP": "1.2.3.4"},
            ["spec.clusterIPs: Forbidden: may not be set for ExternalName services"],
        ),
        (
            {"type": "ExternalName", "externalName": "a", "ipFamilies": ["IPv4"]},
            ["spec.ipFamilies: Forbidden: may not be set for ExternalName services"],
        ),
        (
            {"type": "NodePort", "clusterIP": "None"},
            [
                'spec.clusterIPs[0]: Invalid value: "None": '
                "may not be set to 'None' for NodePort services"
            ],
        ),
        (
            {"sessionAffinity": "ClientIP"},
            [],
        ),
        (
            {
                "sessionAffinity": "ClientIP",
                "sessionAffinityConfig": {"clientIP": {"timeoutSeconds": 86401}},
            },
            [
                "spec.sessionAffinityConfig.clientIP.timeoutSeconds: Invalid value: 86401: "
                "must be greater than 0 and less than 86400"
            ],
        ),
        (
            {"externalTrafficPolicy": "Local"},
            [
                'spec.externalTrafficPolicy: Invalid value: "Local": '
                "may only be set for externally-accessible services"
            ],
        ),
        (
            {"healthCheckNodePort": 30000},
            [
                "spec.healthCheckNodePort: Invalid value: 30000: may only be set when `type` is "
                "'LoadBalancer' and `externalTrafficPolicy` is 'Local'"
            ],
        ),
        (
            {
                "type": "LoadBalancer",
                "externalTrafficPolicy": "Local",
                "healthCheckNodePort": 70000,
            },
            [
                "spec.healthCheckNodePort: Invalid value: 70000: "
                "must be between 1 and 65535, inclusive"
            ],
        ),
        (
            {"internalTrafficPolicy": "X"},
            [
                'spec.internalTrafficPolicy: Unsupported value: "X": '
                'supported values: "Cluster", "Local"'
            ],
        ),
        (
            {"trafficDistribution": "X"},
            [
                'spec.trafficDistribution: Unsupported value: "X": supported values: '
                '"PreferClose", "PreferSameZone", "PreferSameNode"'
            ],
        ),
        (
            {"loadBalancerClass": "a.b/c", "allocateLoadBalancerNodePorts": True},
            [
                "spec.loadBalancerClass: Forbidden: may only be used when `type` is 'LoadBalancer'",
                "spec.allocateLoadBalancerNodePorts: Forbidden: "
                "may only be used when `type` is 'LoadBalancer'",
            ],
        ),
        (
            {"loadBalancerSourceRanges": ["10.0.0.0/8"]},
            [
                "spec.LoadBalancerSourceRanges: Forbidden: "
                "may only be used when `type` is 'LoadBalancer'"
            ],
        ),
        (
            {"type": "LoadBalancer", "loadBalancerSourceRanges": ["10.0.0.0/8", "10.0.0.1"]},
            [
                'spec.LoadBalancerSourceRanges[1]: Invalid value: "10.0.0.1": must be a valid '
                "CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)"
            ],
        ),
        (
            {"externalIPs": ["127.0.0.1"]},
            [
                'spec.externalIPs[0]: Invalid value: "127.0.0.1": may not be in the loopback '
                "range (127.0.0.0/8, ::1/128)"
            ],
        ),
        ({"selector": {"a": "b"}, "ipFamilies": ["IPv6"], "ipFamilyPolicy": "SingleStack"}, []),
    ],
)
def test_the_spec_of_a_service_is_checked_as_upstream_does(
    spec: dict[str, Any], expected: list[str]
) -> None:
    assert validate_new_spec("services", **spec) == expected


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ({"clusterIP": "10.0.0.1", "clusterIPs": ["10.0.0.1", "fd00::1"]}, []),
        (
            {"clusterIPs": ["10.0.0.1"]},
            [
                'spec.clusterIPs: Invalid value: []string{"10.0.0.1"}: '
                "must be empty when `clusterIP` is not specified"
            ],
        ),
        (
            {"clusterIP": "10.0.0.1", "clusterIPs": ["10.0.0.2"]},
            [
                'spec.clusterIPs: Invalid value: []string{"10.0.0.2"}: '
                "first value must match `clusterIP`"
            ],
        ),
        (
            {"clusterIP": "None", "clusterIPs": ["None", "10.0.0.2"]},
            [
                'spec.clusterIPs: Invalid value: []string{"None", "10.0.0.2"}: '
                "'None' must be the first and only value"
            ],
        ),
        (
            {"clusterIP": "10.0.0.1", "clusterIPs": ["10.0.0.1", "10.0.0.2"]},
            [
                'spec.clusterIPs: Invalid value: []string{"10.0.0.1", "10.0.0.2"}: '
                "may specify no more than one IP for each IP family"
            ],
        ),
        (
            {"clusterIP": "fd00::1", "clusterIPs": ["fd00::1"], "ipFamilies": ["IPv4"]},
            [
                'spec.clusterIPs[0]: Invalid value: "fd00::1": '
                "expected an IPv4 value as indicated by `ipFamilies[0]`"
            ],
        ),
        (
            {"clusterIP": "x", "clusterIPs": ["x"]},
            [
                'spec.clusterIPs[0]: Invalid value: "x": must be a valid IP address, '
                "(e.g. 10.9.8.7 or 2001:db8::ffff)"
            ],
        ),
        (
            {"ipFamilies": ["IPv4", "IPv4"]},
            ['spec.ipFamilies[1]: Duplicate value: "IPv4"'],
        ),
        (
            {"ipFamilies": ["IPv5"], "ipFamilyPolicy": "X"},
            [
                'spec.ipFamilies[0]: Unsupported value: "IPv5": supported values: "IPv4", "IPv6"',
                'spec.ipFamilyPolicy: Unsupported value: "X": supported values: '
                '"PreferDualStack", "RequireDualStack", "SingleStack"',
            ],
        ),
    ],
)
def test_the_addresses_of_a_service_fit_together(spec: dict[str, Any], expected: list[str]) -> None:
    assert validate_new_spec("services", **spec) == expected


def test_an_address_once_set_stays() -> None:
    old = with_spec("services", clusterIP="10.0.0.1", clusterIPs=["10.0.0.1"])
    new = with_spec("services", clusterIP="10.0.0.2", clusterIPs=["10.0.0.2"])
    assert validate_changed(new, old) == [
        'spec.clusterIPs[0]: Invalid value: []string{"10.0.0.2"}: may not change once set'
    ]
    assert validate_changed(sample("services"), old) == [
        "spec.clusterIPs[0]: Invalid value: []: primary clusterIP can not be unset"
    ]
    outside = with_spec("services", type="ExternalName", externalName="a.b")
    assert validate_changed(outside, old) == []


def test_the_class_of_a_load_balancer_stays() -> None:
    old = with_spec("services", type="LoadBalancer", loadBalancerClass="a.b/c")
    new = with_spec("services", type="LoadBalancer", loadBalancerClass="a.b/d")
    assert validate_changed(new, old) == [
        'spec.loadBalancerClass: Invalid value: "a.b/d": may not change once set'
    ]


def test_the_addresses_of_a_load_balancer_are_addresses() -> None:
    old = sample("services")
    ingress = [
        {"ip": "x"},
        {"hostname": "10.0.0.1"},
        {"hostname": "lb.example.com", "ipMode": "VIP"},
    ]
    new = sample("services", status={"loadBalancer": {"ingress": ingress}})
    path = "status.loadBalancer.ingress"
    assert validate_changed_status(new, old) == [
        f'{path}[0].ip: Invalid value: "x": must be a valid IP address, '
        "(e.g. 10.9.8.7 or 2001:db8::ffff)",
        f'{path}[1].hostname: Invalid value: "10.0.0.1": must be a DNS name, not an IP address',
        f"{path}[2].ipMode: Forbidden: may not be specified when `ip` is not set",
    ]


HINTS, MODE = "service.kubernetes.io/topology-aware-hints", "service.kubernetes.io/topology-mode"


@pytest.mark.parametrize(
    ("annotations", "faults"),
    [
        ({HINTS: "Auto"}, []),
        ({MODE: "Auto"}, []),
        ({HINTS: "Auto", MODE: "Auto"}, []),
        ({HINTS: "original", MODE: "different"},
         [f'metadata.annotations[{MODE}]: Invalid value: "different": must match '
          f"annotations[{HINTS}] when both are specified"]),
    ],
)  # fmt: skip
def test_both_annotations_about_topology_say_the_same(
    annotations: dict[str, str], faults: list[str]
) -> None:
    meta = {"name": "web", "namespace": "default", "annotations": annotations}
    assert validate_new("services", metadata=meta) == faults
