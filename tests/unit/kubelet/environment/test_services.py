"""Environment variables for Services."""

from __future__ import annotations

from typing import Any

import pytest

from kcm.api.core_v1 import Service
from kcm.kubelet.environment.services import service_variables, variable_name, with_api_server


def service(name: str, namespace: str = "shop", **spec: Any) -> Service:
    return Service.model_validate(
        {
            "metadata": {"name": name, "namespace": namespace},
            "spec": {"clusterIP": "10.96.0.7", "ports": [{"port": 80}], **spec},
        }
    )


def test_a_service_is_told_by_host_ports_and_links() -> None:
    ports = [{"port": 80, "name": "http"}, {"port": 53, "name": "dns-u", "protocol": "UDP"}]
    assert service_variables([service("my-web.1", ports=ports)], "shop", True) == {
        "MY_WEB_1_SERVICE_HOST": "10.96.0.7",
        "MY_WEB_1_SERVICE_PORT": "80",
        "MY_WEB_1_SERVICE_PORT_HTTP": "80",
        "MY_WEB_1_SERVICE_PORT_DNS_U": "53",
        "MY_WEB_1_PORT": "tcp://10.96.0.7:80",
        "MY_WEB_1_PORT_80_TCP": "tcp://10.96.0.7:80",
        "MY_WEB_1_PORT_80_TCP_PROTO": "tcp",
        "MY_WEB_1_PORT_80_TCP_PORT": "80",
        "MY_WEB_1_PORT_80_TCP_ADDR": "10.96.0.7",
        "MY_WEB_1_PORT_53_UDP": "udp://10.96.0.7:53",
        "MY_WEB_1_PORT_53_UDP_PROTO": "udp",
        "MY_WEB_1_PORT_53_UDP_PORT": "53",
        "MY_WEB_1_PORT_53_UDP_ADDR": "10.96.0.7",
    }


def test_an_address_of_version_6_stands_in_brackets_before_a_port() -> None:
    variables = service_variables([service("web", clusterIP="fd00::7")], "shop", None)
    assert (variables["WEB_SERVICE_HOST"], variables["WEB_PORT"]) == (
        "fd00::7",
        "tcp://[fd00::7]:80",
    )


@pytest.mark.parametrize(
    ("links", "hosts"),
    [
        (True, {"KUBERNETES", "WEB"}),
        (None, {"KUBERNETES", "WEB"}),
        (False, {"KUBERNETES"}),
    ],
)
def test_the_api_server_is_always_told_and_others_of_the_namespace_by_wish(
    links: bool | None, hosts: set[str]
) -> None:
    services = [
        service("kubernetes", "default"),
        service("web"),
        service("other", "elsewhere"),
        service("headless", clusterIP="None"),
        service("young", clusterIP=""),
    ]
    variables = service_variables(services, "shop", links)
    suffix = "_SERVICE_HOST"
    assert {name.removesuffix(suffix) for name in variables if name.endswith(suffix)} == hosts


@pytest.mark.parametrize(
    ("name", "variable"),
    [("foo-bar", "FOO_BAR"), ("8083", "8083"), ("super-duper-port", "SUPER_DUPER_PORT")],
)
def test_a_name_becomes_a_variables(name: str, variable: str) -> None:
    """TestFromServices (envvars_test.go): a port's name may be all digits."""
    assert variable_name(name) == variable
    ports = [{"port": 80, "name": name}]
    variables = service_variables([service("web", ports=ports)], "shop", True)
    assert variables[f"WEB_SERVICE_PORT_{variable}"] == "80"


def test_the_api_servers_address_takes_the_place_of_its_cluster_ip() -> None:
    own = service("kubernetes", "default", clusterIP="10.96.0.1", ports=[{"port": 443}])
    web = service("web", clusterIP="10.96.0.2", ports=[{"port": 80}])
    for services in ([own, web], [web]):
        found = service_variables(with_api_server(services, "127.0.0.1", 8001), "shop", True)
        assert found["KUBERNETES_SERVICE_HOST"] == "127.0.0.1"
        assert found["KUBERNETES_SERVICE_PORT"] == "8001"
        assert found["KUBERNETES_SERVICE_PORT_HTTPS"] == "8001"
        assert found["KUBERNETES_PORT"] == "tcp://127.0.0.1:8001"
        assert found["WEB_SERVICE_HOST"] == "10.96.0.2"
