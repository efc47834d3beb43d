"""Endpoints and EndpointSlices."""

from typing import Any

import pytest

from tests.samples import sample
from tests.unit.kinds.validation.outcomes import validate_changed, validate_new

SLICES = "endpointslices.discovery.k8s.io"
SPECIAL = {
    "0.0.0.0": "may not be unspecified (0.0.0.0)",
    "127.0.0.2": "may not be in the loopback range (127.0.0.0/8, ::1/128)",
    "169.254.1.1": "may not be in the link-local range (169.254.0.0/16, fe80::/10)",
    "224.0.0.1": "may not be in the link-local multicast range (224.0.0.0/24, ff02::/10)",
}


def subset(**changes: Any) -> dict[str, Any]:
    return {"addresses": [{"ip": "10.0.0.1"}], "ports": [{"port": 80}], **changes}


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (
            {"addresses": []},
            ["subsets[0]: Required value: must specify `addresses` or `notReadyAddresses`"],
        ),
        (
            {"ports": [{"port": 80}, {"name": "b", "port": 81}]},
            ["subsets[0].ports[0].name: Required value"],
        ),
        (
            {"ports": [{"port": 65536}]},
            [
                "subsets[0].ports[0].port: Invalid value: 65536: "
                "must be between 1 and 65535, inclusive"
            ],
        ),
        (
            {"notReadyAddresses": [{"ip": "x"}]},
            [
                'subsets[0].notReadyAddresses[0].ip: Invalid value: "x": must be a valid IP '
                "address, (e.g. 10.9.8.7 or 2001:db8::ffff)"
            ],
        ),
    ],
)
def test_subsets_have_addresses_and_ports(body: dict[str, Any], expected: list[str]) -> None:
    assert validate_new("endpoints", subsets=[subset(**body)]) == expected


@pytest.mark.parametrize("ip", SPECIAL)
def test_an_endpoint_has_an_address_of_its_own(ip: str) -> None:
    [message] = validate_new("endpoints", subsets=[subset(addresses=[{"ip": ip}])])
    assert message == f'subsets[0].addresses[0].ip: Invalid value: "{ip}": {SPECIAL[ip]}'
    [message] = validate_new(SLICES, endpoints=[{"addresses": [ip]}])
    assert message == f'endpoints[0].addresses[0]: Invalid value: "{ip}": {SPECIAL[ip]}'


def test_names_of_hosts_and_nodes_are_checked() -> None:
    address = {"ip": "10.0.0.1", "hostname": "a.b", "nodeName": "A"}
    hostname, node = validate_new("endpoints", subsets=[subset(addresses=[address])])
    assert hostname.startswith('subsets[0].addresses[0].hostname: Invalid value: "a.b"')
    assert node.startswith('subsets[0].addresses[0].nodeName: Invalid value: "A"')


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"addressType": ""}, ["addressType: Required value"]),
        (
            {"addressType": "IP", "endpoints": [{"addresses": ["a"]}]},
            ['addressType: Unsupported value: "IP": supported values: "FQDN", "IPv4", "IPv6"'],
        ),
        (
            {"addressType": "IPv6"},
            ['endpoints[0].addresses: Invalid value: "10.0.0.1": must be an IPv6 address'],
        ),
        ({"addressType": "FQDN", "endpoints": [{"addresses": ["a.example.com."]}]}, []),
        (
            {"addressType": "FQDN", "endpoints": [{"addresses": ["a"]}]},
            [
                'endpoints[0].addresses[0]: Invalid value: "a": should be a domain with at least '
                "two segments separated by dots"
            ],
        ),
        (
            {"endpoints": [{"addresses": []}]},
            ["endpoints[0].addresses: Required value: must contain at least 1 address"],
        ),
        (
            {"endpoints": [{"addresses": ["10.0.0.1"] * 101}]},
            ["endpoints[0].addresses: Too many: 101: must have at most 100 items"],
        ),
        (
            {"endpoints": [{"addresses": ["10.0.0.1"]}] * 1001},
            ["endpoints: Too many: 1001: must have at most 1000 items"],
        ),
        (
            {"ports": [{"name": "a"}, {"name": "a"}]},
            ['ports[1].name: Duplicate value: "a"'],
        ),
        (
            {
                "endpoints": [
                    {
                        "addresses": ["10.0.0.1"],
                        "hints": {"forZones": [{"name": "z"}, {"name": "z"}]},
                    }
                ]
            },
            ['endpoints[0].hints.forZones[1].name: Duplicate value: "z"'],
        ),
        (
            {
                "endpoints": [
                    {"addresses": ["10.0.0.1"], "hints": {"forZones": [{"name": "z"}] * 9}}
                ]
            },
            ["endpoints[0].hints.forZones: Too many: 9: must have at most 8 items"],
        ),
    ],
)
def test_slices_are_checked_as_upstream_does(changes: dict[str, Any], expected: list[str]) -> None:
    assert validate_new(SLICES, **changes) == expected


def test_the_type_of_addresses_of_a_slice_stays() -> None:
    old = sample(SLICES)
    new = sample(SLICES, addressType="FQDN", endpoints=[])
    assert validate_changed(new, old) == ['addressType: Invalid value: "FQDN": field is immutable']


def test_the_ports_of_slices_have_names_and_protocols() -> None:
    [port] = sample(SLICES).ports
    assert (port.name, port.protocol) == ("", "TCP")


@pytest.mark.parametrize("ip", ["127.0.0.1", "127.64.0.1", "127.127.255.254"])
def test_addresses_of_the_process_runtime_are_endpoints(ip: str) -> None:
    assert validate_new("endpoints", subsets=[subset(addresses=[{"ip": ip}])]) == []
    assert validate_new(SLICES, addressType="IPv4", endpoints=[{"addresses": [ip]}]) == []
