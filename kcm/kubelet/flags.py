"""Parses the flags of `kcm kubelet` into the kubelet's options.

Source: cmd/kubelet/app/options/options.go, Kubernetes 1.33.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from ipaddress import ip_address
from pathlib import Path
from typing import Any

from kcm.api.core_v1 import Taint
from kcm.apimachinery.quantity import Quantity
from kcm.errors import ConfigurationError
from kcm.kubelet.eviction.thresholds import DEFAULT_HARD, EvictionConfig, parse_thresholds
from kcm.kubelet.images.garbage import ImageLimits
from kcm.kubelet.isolation import ClusterDNS
from kcm.kubelet.node.reserved import parse_reserved
from kcm.kubelet.options import CRI, KubeletOptions, require
from kcm.kubelet.shutdown.grace_periods import split_grace_period

FLAGS_VARIABLE = "KCM_KUBELET_FLAGS"
"""The environment variable with the flags of `kcm kubelet`, as JSON, for its Celery worker."""

_EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute")

Flags = Mapping[str, Any]
"""Flag values by name, with underscores instead of dashes. None means that a flag is not set."""


def parse_flags(flags: Flags) -> KubeletOptions:
    """Returns the options that the flags set. Raises ConfigurationError.

    Flags that the kubelet does not know are ignored, because they are the Celery worker's.
    """
    given = {name: value for name, value in flags.items() if value is not None}
    values = {
        name: value for name, value in given.items() if name in KubeletOptions.__dataclass_fields__
    }
    for name, parse in _PARSERS.items():
        if name in values:
            try:
                values[name] = parse(values[name])
            except ValueError as error:
                flag = name.replace("_", "-")
                raise ConfigurationError(f"--{flag} {values[name]!r}: {error}") from None
    if "container_runtime_endpoint" in values:
        runtime = values.setdefault("container_runtime", CRI)
        why = f"--container-runtime-endpoint has no effect with --container-runtime {runtime}"
        require(runtime == CRI, why)
    return KubeletOptions(
        **values,
        dns=_parse_dns(given),
        image_limits=_parse_image_limits(given),
        eviction=_parse_eviction(given),
        shutdown_grace_periods=split_grace_period(
            float(given.get("shutdown_grace_period", 0)),
            float(given.get("shutdown_grace_period_critical_pods", 0)),
        ),
        port_required="port" in given,
        certificate=_parse_certificate(
            given.get("tls_cert_file", ""), given.get("tls_private_key_file", "")
        ),
        adopts_orphans=True,
    )


def _parse_dns(given: Flags) -> ClusterDNS:
    defaults = ClusterDNS()
    servers = tuple(_split(given.get("cluster_dns", "")))
    for server in servers:
        require(_is_address(server), f"--cluster-dns: {server!r} is not an address")
    return ClusterDNS(
        servers,
        given.get("cluster_domain", defaults.domain),
        Path(given.get("resolv_conf", defaults.resolv_conf)),
    )


def _parse_image_limits(given: Flags) -> ImageLimits:
    defaults = ImageLimits()
    return ImageLimits(
        int(given.get("image_gc_high_threshold", defaults.high)),
        int(given.get("image_gc_low_threshold", defaults.low)),
        float(given.get("minimum_image_ttl_duration", defaults.minimum_age)),
    )


def _is_address(text: str) -> bool:
    try:
        ip_address(text)
    except ValueError:
        return False
    return True


def _parse_eviction(given: Flags) -> EvictionConfig:
    defaults = EvictionConfig()
    thresholds = parse_thresholds(
        given.get("eviction_hard", DEFAULT_HARD),
        given.get("eviction_soft", ""),
        given.get("eviction_soft_grace_period", {}),
        given.get("eviction_minimum_reclaim", ""),
    )
    return EvictionConfig(
        thresholds,
        pressure_transition_period=float(
            given.get("eviction_pressure_transition_period", defaults.pressure_transition_period)
        ),
        max_pod_grace_period=int(given.get("eviction_max_pod_grace_period", 0)),
    )


def _parse_certificate(certificate: str, key: str) -> tuple[Path, Path] | None:
    require(
        bool(certificate) == bool(key),
        "--tls-cert-file and --tls-private-key-file must be used together",
    )
    for file in filter(None, (certificate, key)):
        require(Path(file).is_file(), f"there is no file {file}")
    return (Path(certificate), Path(key)) if certificate else None


def _parse_file(text: str) -> Path:
    if not Path(text).is_file():
        raise ValueError("there is no such file")
    return Path(text)


def _split(text: str) -> list[str]:
    return [part.strip() for part in text.split(",") if part.strip()]


def _parse_labels(text: str) -> dict[str, str]:
    """Parses labels like `a=b,c=d`."""
    labels: dict[str, str] = {}
    for part in _split(text):
        name, equals, value = part.partition("=")
        require(bool(name and equals), f"--node-labels: {part!r} is not of the form name=value")
        labels[name] = value
    return labels


def _parse_taints(text: str) -> list[Taint]:
    """Parses taints like `key=value:Effect,key:Effect`."""
    taints = []
    for part in _split(text):
        name, colon, effect = part.rpartition(":")
        require(
            bool(colon) and effect in _EFFECTS,
            f"--register-with-taints: {part!r} is not of the form key=value:{_EFFECTS[0]}",
        )
        key, _, value = name.partition("=")
        taints.append(Taint(key=key, value=value or None, effect=effect))
    return taints


def _parse_ids(flag: str) -> Callable[[str], tuple[tuple[int, int], ...]]:
    """Returns a parser of ids and ranges of ids, like `1000,2000-2999`.

    The parser returns pairs of first and last id, and raises ConfigurationError.
    """

    def parse(text: str) -> tuple[tuple[int, int], ...]:
        ranges = []
        for part in _split(text):
            low, dash, high = part.partition("-")
            high = high if dash else low
            require(
                low.isdigit() and high.isdigit() and int(low) <= int(high),
                f"{flag}: {part!r} is not of the form 1000 or 2000-2999",
            )
            ranges.append((int(low), int(high)))
        return tuple(ranges)

    return parse


def _parse_address(flag: str, text: str) -> tuple[str, int]:
    """Parses an address like `10.0.0.7:6443` or `[::1]:6443`."""
    host, colon, port = text.rpartition(":")
    require(
        bool(host and colon) and port.isdecimal() and 0 < int(port) < 65536,
        f"{flag}: {text!r} is not of the form HOST:PORT",
    )
    return host.removeprefix("[").removesuffix("]"), int(port)


def _parse_headers(text: str) -> dict[str, str]:
    """Parses headers like `Name: value,Name: value`."""
    pairs = (part.partition(":") for part in _split(text))
    return {name.strip(): value.strip() for name, _, value in pairs}


_PARSERS: Mapping[str, Callable[[Any], Any]] = {
    "root_dir": Path,
    "pod_manifest_path": Path,
    "stages": Path,
    "image_credential_provider_config": Path,
    "image_credential_provider_bin_dir": Path,
    "service_account_signing_key_file": Path,
    "client_ca_file": _parse_file,
    "pod_api_server": lambda text: _parse_address("--pod-api-server", text),
    "node_labels": _parse_labels,
    "register_with_taints": _parse_taints,
    "allowed_users": _parse_ids("--allowed-users"),
    "allowed_groups": _parse_ids("--allowed-groups"),
    "allowed_host_paths": lambda text: tuple(Path(path) for path in text.split(",") if path),
    "manifest_url_headers": _parse_headers,
    "container_log_max_size": lambda text: Quantity(text).value(),
    "system_reserved": lambda text: parse_reserved("system-reserved", text),
    "kube_reserved": lambda text: parse_reserved("kube-reserved", text),
}
