"""The environment variables with the addresses of services: `WEB_SERVICE_HOST`, `WEB_PORT`, ...

Source: pkg/kubelet/envvars/envvars.go and getServiceEnvVarMap in pkg/kubelet/kubelet_pods.go,
Kubernetes 1.33.
"""

from __future__ import annotations

from collections.abc import Iterable

from kcm.api.core_v1 import Service, ServicePort, ServiceSpec
from kcm.apimachinery.meta_v1 import ObjectMeta

_ALWAYS = ("default", "kubernetes")  # namespace and name of the API server's Service


def service_variables(
    services: Iterable[Service], namespace: str, links: bool | None
) -> dict[str, str]:
    """Returns the variables of the API server's Service and of the Services in the pod's namespace.

    `links` is the pod's enableServiceLinks; False leaves out the Services of the namespace.
    Services without a cluster IP have no variables.
    """
    chosen: dict[str, Service] = {}
    for service in services:
        if (service.spec.cluster_ip or "None") == "None":
            continue
        if (service.namespace, service.name) == _ALWAYS:
            chosen.setdefault(service.name, service)
        elif service.namespace == namespace and links is not False:
            chosen[service.name] = service
    variables: dict[str, str] = {}
    for _, service in sorted(chosen.items()):
        variables.update(_list_variables(service))
    return variables


def with_api_server(services: Iterable[Service], host: str, port: int) -> list[Service]:
    """Returns the Services, in which that of the API server has this address and port.

    Where no proxy forwards cluster IPs, pods reach the API server there only.
    """
    namespace, name = _ALWAYS
    spec = ServiceSpec(
        cluster_ip=host, ports=[ServicePort(name="https", protocol="TCP", port=port)]
    )
    others = [one for one in services if (one.namespace, one.name) != _ALWAYS]
    return [*others, Service(metadata=ObjectMeta(name=name, namespace=namespace), spec=spec)]


def _list_variables(service: Service) -> Iterable[tuple[str, str]]:
    prefix, address = variable_name(service.name), service.spec.cluster_ip or ""
    host = f"[{address}]" if ":" in address else address
    yield f"{prefix}_SERVICE_HOST", address
    ports = service.spec.ports or []
    for port in ports[:1]:
        protocol = (port.protocol or "TCP").lower()
        yield f"{prefix}_SERVICE_PORT", str(port.port)
        yield f"{prefix}_PORT", f"{protocol}://{host}:{port.port}"
    for port in ports:
        protocol = port.protocol or "TCP"
        if port.name:
            yield f"{prefix}_SERVICE_PORT_{variable_name(port.name)}", str(port.port)
        link = f"{prefix}_PORT_{port.port}_{protocol.upper()}"
        yield link, f"{protocol.lower()}://{host}:{port.port}"
        yield f"{link}_PROTO", protocol.lower()
        yield f"{link}_PORT", str(port.port)
        yield f"{link}_ADDR", address


def variable_name(name: str) -> str:
    """Returns a Service's name in capitals, with underscores for dashes and dots."""
    return name.replace("-", "_").replace(".", "_").upper()
