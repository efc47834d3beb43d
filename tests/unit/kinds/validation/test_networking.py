"""NetworkPolicies, Ingresses and IngressClasses."""

from __future__ import annotations

from typing import Any

import pytest

from tests.samples import sample, with_spec
from tests.unit.kinds.validation.outcomes import (
    validate_changed,
    validate_changed_status,
    validate_new_spec,
)

POLICIES = "networkpolicies.networking.k8s.io"
INGRESSES = "ingresses.networking.k8s.io"
CLASSES = "ingressclasses.networking.k8s.io"
CIDR = "must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)"
SERVICE = {"service": {"name": "web", "port": {"number": 80}}}
IN, OUT = "spec.ingress[0]", "spec.egress[0]"


@pytest.mark.parametrize(
    ("spec", "faults"),
    [
        ({}, []),
        ({"egress": [{"to": [{"namespaceSelector": {}}], "ports": [{"port": 1, "endPort": 9}]}]},
         []),
        ({"ingress": [{"from": [{}]}]}, [f"{IN}.from[0]: Required value: must specify a peer"]),
        ({"ingress": [{"from": [{"podSelector": {}, "ipBlock": {"cidr": "10.0.0.0/8"}}]}]},
         [f"{IN}.from[0]: Forbidden: may not specify both ipBlock and another peer"]),
        ({"ingress": [{"from": [{"ipBlock": {"cidr": "192.168.1.0/35"}}]}]},
         [f'{IN}.from[0].ipBlock.cidr: Invalid value: "192.168.1.0/35": {CIDR}']),
        ({"egress": [{"to": [{"ipBlock": {"cidr": ""}}]}]},
         [f"{OUT}.to[0].ipBlock.cidr: Required value"]),
        ({"egress": [{"to": [{"ipBlock": {"cidr": "10.0.0.0/8", "except": ["10.0.0.0/8"]}}]}]},
         [f'{OUT}.to[0].ipBlock.except[0]: Invalid value: "10.0.0.0/8": must be a strict subset '
          "of `cidr`"]),
        ({"ingress": [{"ports": [{"protocol": "x", "port": 80}]}]},
         [f'{IN}.ports[0].protocol: Unsupported value: "x": supported values: "TCP", "UDP", '
          '"SCTP"']),
        ({"ingress": [{"ports": [{"port": 0}]}]},
         [f"{IN}.ports[0].port: Invalid value: 0: must be between 1 and 65535, inclusive"]),
        ({"ingress": [{"ports": [{"port": 80, "endPort": 79}]}]},
         [f"{IN}.ports[0].endPort: Invalid value: 79: must be greater than or equal to `port`"]),
        ({"ingress": [{"ports": [{"port": "http", "endPort": 79}]}]},
         [f"{IN}.ports[0].endPort: Invalid value: 79: may not be specified when `port` is "
          "non-numeric"]),
        ({"ingress": [{"ports": [{"endPort": 79}]}]},
         [f"{IN}.ports[0].endPort: Invalid value: 79: may not be specified when `port` is not "
          "specified"]),
        ({"policyTypes": ["foo"]},
         ['spec.policyTypes[0]: Unsupported value: "foo": supported values: "Ingress", '
          '"Egress"']),
        ({"podSelector": {"matchExpressions": [{"key": "a", "operator": "x"}]}},
         ['spec.podSelector.matchExpressions[0].operator: Invalid value: "x": not a valid '
          "selector operator"]),
    ],
)  # fmt: skip
def test_network_policies(spec: dict[str, Any], faults: list[str]) -> None:
    """After upstream's TestValidateNetworkPolicy."""
    assert validate_new_spec(POLICIES, **spec) == faults


def path(**changes: Any) -> dict[str, Any]:
    """Returns the spec of an Ingress with one path."""
    http_path = {"path": "/", "pathType": "Prefix", "backend": SERVICE} | changes
    return {"rules": [{"host": "example.com", "http": {"paths": [http_path]}}]}


def test_a_range_that_was_stored_may_stay_as_it_is_written() -> None:
    """Upstream's TestValidateNetworkPolicyUpdate: only new ranges need the canonical form."""
    blocks = [{"ipBlock": {"cidr": "010.0.0.0/8"}}, {"ipBlock": {"cidr": "10.1.2.3/8"}}]
    old, new, other = (
        with_spec(POLICIES, podSelector=selector, ingress=[{"from": given}]).with_metadata(
            resource_version="1", uid="u"
        )
        for selector, given in (
            ({}, blocks[:1]),
            ({"matchLabels": {"a": "b"}}, blocks[:1]),
            ({}, blocks),
        )
    )
    assert validate_changed(new, old) == []
    assert len(validate_changed(other, old)) == len(validate_changed(other, new)) == 1


def default_backend(port: dict[str, Any]) -> dict[str, Any]:
    return {"rules": None, "defaultBackend": {"service": {"name": "web", "port": port}}}


PATH = "spec.rules[0].http.paths[0]"


@pytest.mark.parametrize(
    ("spec", "faults"),
    [
        ({"rules": None, "defaultBackend": SERVICE}, []),
        (default_backend({"name": "http"}), []),
        (default_backend({"name": "1"}),
         ['spec.defaultBackend.service.port.name: Invalid value: "1": must contain at least one '
          "letter (a-z)"]),
        (default_backend({"name": "http", "number": 80}),
         ['spec.defaultBackend: Invalid value: "": cannot set both port name & port number']),
        ({"rules": [{"host": "*.example.com"}]}, []),
        (path(pathType="ImplementationSpecific", path=""), []),
        ({"rules": None},
         ["spec: Invalid value: []: either `defaultBackend` or `rules` must be specified"]),
        ({"rules": [{"host": "10.0.0.1"}]},
         ['spec.rules[0].host: Invalid value: "10.0.0.1": must be a DNS name, not an IP '
          "address"]),
        ({"rules": [{"host": "foo.*.com"}]},
         ['spec.rules[0].host: Invalid value: "foo.*.com": a wildcard DNS-1123 subdomain must '
          "start with '*.', followed by a valid DNS subdomain, which must consist of lower case "
          "alphanumeric characters, '-' or '.' and end with an alphanumeric character (e.g. "
          "'*.example.com', regex used for validation is "
          "'\\*\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"]),
        *(({"rules": [{"host": host, "http": {"paths": []}}]},
           ["spec.rules[0].http.paths: Required value"]) for host in ("a", "*.example.com")),
        (path(pathType=None),
         [f"{PATH}.pathType: Required value: pathType must be specified"]),
        (path(pathType="x"),
         [f'{PATH}.pathType: Unsupported value: "x": supported values: "Exact", '
          '"ImplementationSpecific", "Prefix"']),
        (path(path="foo"), [f'{PATH}.path: Invalid value: "foo": must be an absolute path']),
        (path(path="/a//b"), [f"{PATH}.path: Invalid value: \"/a//b\": must not contain '//'"]),
        (path(path="/a/.."), [f"{PATH}.path: Invalid value: \"/a/..\": cannot end with '/..'"]),
        (path(backend={}),
         [f'{PATH}.backend: Invalid value: "": resource or service backend is required']),
        (path(backend={"service": {"name": "web", "port": {}}}),
         [f"{PATH}.backend: Required value: port name or number is required"]),
        (path(backend={"service": {"name": "web", "port": {"name": "a", "number": 1}}}),
         [f'{PATH}.backend: Invalid value: "": cannot set both port name & port number']),
        (path(backend={**SERVICE, "resource": {"kind": "a", "name": "b"}}),
         [f'{PATH}.backend: Invalid value: "": cannot set both resource and service backends']),
        ({"tls": [{"hosts": ["a"], "secretName": "_"}]},
         ['spec.tls[0].secretName: Invalid value: "_": a lowercase RFC 1123 subdomain must '
          "consist of lower case alphanumeric characters, '-' or '.', and must start and end "
          "with an alphanumeric character (e.g. 'example.com', regex used for validation is "
          "'[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"]),
    ],
)  # fmt: skip
def test_ingresses(spec: dict[str, Any], faults: list[str]) -> None:
    """After upstream's TestValidateIngress, TestValidateIngressCreate and
    TestValidateIngressTLS."""
    assert validate_new_spec(INGRESSES, **spec) == faults


def test_the_load_balancers_names_are_names() -> None:
    """After upstream's TestValidateIngressStatusUpdate."""
    old = sample(INGRESSES)
    new = sample(INGRESSES, status={"loadBalancer": {"ingress": [{"hostname": "127.0.0.1"}]}})
    assert validate_changed_status(new, old) == [
        'status.loadBalancer.ingress[0].hostname: Invalid value: "127.0.0.1": must be a DNS '
        "name, not an IP address"
    ]


@pytest.mark.parametrize(
    ("spec", "faults"),
    [
        ({"parameters": {"kind": "p", "name": "n", "scope": "Namespace", "namespace": "a"}}, []),
        ({"controller": ""}, ["spec.controller: Required value"]),
        ({"controller": "foo.co"},
         ['spec.controller: Invalid value: "foo.co": must be a domain-prefixed path (such as '
          '"acme.io/foo")']),
        ({"parameters": {"kind": "p", "name": "n", "scope": "x"}},
         ['spec.parameters.scope: Unsupported value: "x": supported values: "Cluster", '
          '"Namespace"']),
        ({"parameters": {"kind": "p", "name": "n", "scope": "Namespace"}},
         ["spec.parameters.namespace: Required value: `parameters.scope` is set to "
          "'Namespace'"]),
        ({"parameters": {"kind": "p", "name": "n", "namespace": "a"}},
         ["spec.parameters.namespace: Forbidden: `parameters.scope` is set to 'Cluster'"]),
        ({"parameters": {"kind": "", "name": "n"}}, ["spec.parameters.kind: Required value"]),
    ],
)  # fmt: skip
def test_ingress_classes(spec: dict[str, Any], faults: list[str]) -> None:
    """After upstream's TestValidateIngressClass."""
    assert validate_new_spec(CLASSES, **spec) == faults


def test_the_controller_of_a_class_stays() -> None:
    """After upstream's TestValidateIngressClassUpdate."""
    assert validate_changed(with_spec(CLASSES, controller="foo.co/other"), sample(CLASSES)) == [
        'spec.controller: Invalid value: "foo.co/other": field is immutable'
    ]
