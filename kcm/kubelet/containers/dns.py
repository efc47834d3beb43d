"""The resolver's configuration of a pod, by its DNS policy.

Source: pkg/kubelet/network/dns/dns.go, Kubernetes 1.36. Departure: options are in the order in
which they are given, upstream's in that of a Go map.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from kcm import errors
from kcm.api.core_v1 import Pod
from kcm.kubelet.isolation import ClusterDNS, DNSConfig
from kcm.kubelet.recorder import KubeletEventRecorder
from kcm.kubelet.types import format_pod

_MOST_SERVERS, _MOST_SEARCHES, _MOST_OF_SEARCH_LINE, _MOST_OF_NAME = 3, 32, 2048, 253
_MOST_OF_FILE = 10 * 1024 * 1024  # bytes
_CLUSTER_OPTIONS = ("ndots:5",)
_NONE, _DEFAULT, _CLUSTER = "None", "Default", "ClusterFirst"


class PodDNS:
    """Builds the configurations of pods. Thread-safe."""

    def __init__(self, cluster: ClusterDNS, recorder: KubeletEventRecorder) -> None:
        self._cluster = cluster
        self._recorder = recorder

    def build(self, pod: Pod) -> DNSConfig:
        """Returns a pod's configuration. Raises ContainerRuntimeError if the node's is unreadable.

        What does not fit into a resolver's limits is left out, with an Event.
        """
        config = self._build_by_policy(pod)
        settings = pod.spec.dns_config
        if settings is not None:
            options = [
                f"{option.name}:{option.value}" if option.value else option.name or ""
                for option in settings.options or ()
            ]
            config = DNSConfig(
                _without_duplicates([*config.servers, *(settings.nameservers or ())]),
                _without_duplicates([*config.searches, *(settings.searches or ())]),
                _merge_options([*config.options, *options]),
            )
        return self._fit(pod, config)

    def _build_by_policy(self, pod: Pod) -> DNSConfig:
        policy = _determine_policy(pod)
        if policy == _NONE:
            return DNSConfig()
        node = read_resolv_conf(self._cluster.resolv_conf)
        if policy == _DEFAULT:
            return node
        if not self._cluster.servers:
            self._recorder.record_pod_event(
                pod,
                "Warning",
                "MissingClusterDNS",
                f'pod: "{format_pod(pod)}". kubelet does not have ClusterDNS IP configured and '
                f'cannot create Pod using "{_CLUSTER}" policy. Falling back to "{_DEFAULT}" '
                "policy.",
            )
            return node
        domain = self._cluster.domain
        searches = [f"{pod.namespace}.svc.{domain}", f"svc.{domain}", domain] if domain else []
        return DNSConfig(
            self._cluster.servers,
            _without_duplicates([*searches, *node.searches]),
            _CLUSTER_OPTIONS,
        )

    def _fit(self, pod: Pod, config: DNSConfig) -> DNSConfig:
        servers = config.servers[:_MOST_SERVERS]
        if len(servers) < len(config.servers):
            self._warn(
                pod,
                "Nameserver limits were exceeded, some nameservers have been omitted, the applied "
                f"nameserver line is: {' '.join(servers)}",
            )
        searches = [name for name in config.searches[:_MOST_SEARCHES] if len(name) <= _MOST_OF_NAME]
        while len(" ".join(searches)) > _MOST_OF_SEARCH_LINE:
            searches.pop()
        if len(searches) < len(config.searches):
            self._warn(
                pod,
                "Search Line limits were exceeded, some search paths have been omitted, the "
                f"applied search line is: {' '.join(searches)}",
            )
        return DNSConfig(servers, searches, config.options)

    def _warn(self, pod: Pod, text: str) -> None:
        self._recorder.record_pod_event(pod, "Warning", "DNSConfigForming", text)


def _determine_policy(pod: Pod) -> str:
    policy = pod.spec.dns_policy or _CLUSTER
    if policy in (_NONE, _DEFAULT):
        return policy
    return _DEFAULT if policy == _CLUSTER and pod.spec.host_network else _CLUSTER


def read_resolv_conf(path: Path) -> DNSConfig:
    """Returns what the resolver's configuration says. Raises ContainerRuntimeError."""
    try:
        with path.open("rb") as file:
            text = file.read(_MOST_OF_FILE).decode("utf-8", "replace")
    except OSError as error:
        raise errors.ContainerRuntimeError(f"{path} cannot be read: {error.strerror}") from error
    servers: list[str] = []
    searches: list[str] = []
    options: list[str] = []
    for line in text.splitlines():
        match line.split():
            case ["nameserver", server, *_]:
                servers.append(server)
            case ["search", *names]:
                searches = [name.removesuffix(".") for name in names if name != "."]
            case ["options", *more]:
                options = _merge_options([*options, *more])
    return DNSConfig(servers, searches, options)


def _merge_options(options: Iterable[str]) -> list[str]:
    """Returns options without those that a later one of the same name replaces."""
    return list({option.partition(":")[0]: option for option in options}.values())


def _without_duplicates(words: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(words))
