"""Validation of a pod's DNS settings, host aliases and use of the host's network.

Source: validatePodDNSConfig, ValidateHostAliases, validatePodHostNetworkDeps and validateHostUsers
in pkg/apis/core/validation/validation.go, Kubernetes 1.33.
"""

from __future__ import annotations

from collections.abc import Iterable

from kcm.api.core_v1 import PodSpec
from kcm.api.core_v1.pods import HostAlias
from kcm.apimachinery import names
from kcm.apimachinery.field_errors import (
    Faults,
    forbidden,
    invalid,
    invalid_all,
    required,
    too_long,
)
from kcm.kinds.validation.addresses import address

_HOSTNAME_LIMIT = 64
_MOST_SERVERS = 3
_MOST_SEARCHES = 32
_MOST_SEARCH_CHARACTERS = 2048


def dns(spec: PodSpec, path: str) -> Faults:
    """Checks dnsConfig, which the dnsPolicy None requires."""
    config = spec.dns_config
    if spec.dns_policy == "None":
        if config is None:
            return [required(path, "must provide `dnsConfig` when `dnsPolicy` is None")]
        if not config.nameservers:
            detail = "must provide at least one DNS nameserver when `dnsPolicy` is None"
            return [required(f"{path}.nameservers", detail)]
    if config is None:
        return []
    faults: Faults = []
    servers, searches = config.nameservers or [], config.searches or []
    if len(servers) > _MOST_SERVERS:
        detail = f"must not have more than {_MOST_SERVERS} nameservers"
        faults.append(invalid(f"{path}.nameservers", servers, detail))
    for index, server in enumerate(servers):
        faults += address(server, f"{path}.nameservers[{index}]")
    faults += _searches(searches, f"{path}.searches")
    for index, option in enumerate(config.options or ()):
        if not option.name:
            faults.append(required(f"{path}.options[{index}]", "must not be empty"))
    return faults


def _searches(searches: list[str], path: str) -> Faults:
    faults: Faults = []
    if len(searches) > _MOST_SEARCHES:
        detail = f"must not have more than {_MOST_SEARCHES} search paths"
        faults.append(invalid(path, searches, detail))
    if len(" ".join(searches)) > _MOST_SEARCH_CHARACTERS:
        detail = (
            f"must not have more than {_MOST_SEARCH_CHARACTERS} characters (including spaces) in "
            "the search list"
        )
        faults.append(invalid(path, searches, detail))
    for index, search in enumerate(searches):
        if search != ".":
            bare = search.removesuffix(".")
            complaints = names.subdomain_with_underscore_faults(bare)
            faults += invalid_all(f"{path}[{index}]", bare, complaints)
    return faults


def host_aliases(aliases: Iterable[HostAlias], path: str) -> Faults:
    faults: Faults = []
    for index, alias in enumerate(aliases):
        faults += address(alias.ip, f"{path}[{index}].ip")
        for at, name in enumerate(alias.hostnames or ()):
            where = f"{path}[{index}].hostnames[{at}]"
            faults += invalid_all(where, name, names.subdomain_faults(name))
    return faults


def host_ports(spec: PodSpec, path: str, *, in_pod: bool) -> Faults:
    """Checks that the host ports of a pod with the host's network are its container ports.

    Templates may leave host ports out (`in_pod` is False).
    """
    if not spec.host_network:
        return []
    return [
        invalid(
            f"{path}.containers[{index}].ports[{at}].hostPort",
            port.host_port or 0,
            "must match `containerPort` when `hostNetwork` is true",
        )
        for index, container in enumerate(spec.containers)
        for at, port in enumerate(container.ports or ())
        if (in_pod or port.host_port) and (port.host_port or 0) != port.container_port
    ]


def hostname_override(spec: PodSpec, path: str) -> Faults:
    """Checks the name that replaces hostname and subdomain inside the pod."""
    name = spec.hostname_override
    if name is None:
        return []
    others = {"setHostnameAsFQDN": spec.set_hostname_as_fqdn, "hostNetwork": spec.host_network}
    faults = [
        forbidden(path, f"may not be specified when {field} is true")
        for field, is_set in others.items()
        if is_set
    ]
    if len(name) > _HOSTNAME_LIMIT:
        faults.append(too_long(path, _HOSTNAME_LIMIT))
    return faults + invalid_all(path, name, names.subdomain_faults(name))


def host_users(spec: PodSpec, path: str) -> Faults:
    """Checks that a pod with a user namespace of its own shares no other host namespaces, and has
    no devices, whose owners cannot be mapped.
    """
    if spec.host_users is not False:
        return []
    shared = {
        "hostNetwork": spec.host_network,
        "HostPID": spec.host_pid,  # upstream's spelling
        "HostIPC": spec.host_ipc,
    }
    lists = (
        ("initContainers", spec.init_containers),
        ("containers", spec.containers),
        ("ephemeralContainers", spec.ephemeral_containers),
    )
    devices = {
        f"{field}[{index}].volumeDevices": container.volume_devices
        for field, containers in lists
        for index, container in enumerate(containers or ())
    }
    return [
        forbidden(f"{path}.{field}", "when `hostUsers` is false")
        for field, is_set in (shared | devices).items()
        if is_set
    ]
