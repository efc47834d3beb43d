"""What a kubelet is told about its duties as a node. Names and defaults are upstream's flags'.

Source: pkg/kubelet/apis/config/v1beta1/defaults.go, Kubernetes 1.33.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from kcm.apimachinery.quantity import ResourceList
from kcm.errors import ConfigurationError
from kcm.kubelet.eviction.manager import EvictionOptions
from kcm.kubelet.eviction.thresholds import DEFAULT_HARD, parse_thresholds
from kcm.kubelet.node.reserved import parse_reserved
from kcm.kubelet.shutdown.manager import Group, groups_of


@dataclass(frozen=True, kw_only=True)
class DutyOptions:
    """See `of_flags`."""

    eviction: EvictionOptions = field(
        default_factory=lambda: EvictionOptions(parse_thresholds(DEFAULT_HARD, "", {}, ""))
    )
    system_reserved: ResourceList = field(default_factory=dict)
    kube_reserved: ResourceList = field(default_factory=dict)
    shutdown: tuple[Group, ...] = ()  # none: pods run on when the kubelet ends
    own_port: bool = False  # whether the port was asked for; else another will do if it is taken
    bind_address: str = ""  # of the node's HTTP API; "" is the node's own
    certificate: tuple[Path, Path] | None = None  # and its key; None: plain HTTP


def of_flags(flags: Mapping[str, Any]) -> DutyOptions:
    """From the command's flags, names with underscores. Raises ConfigurationError."""

    def text(name: str, default: str = "") -> str:
        return str(flags[name]) if flags.get(name) is not None else default

    thresholds = parse_thresholds(
        text("eviction_hard", DEFAULT_HARD),
        text("eviction_soft"),
        flags.get("eviction_soft_grace_period") or {},
        text("eviction_minimum_reclaim"),
    )
    defaults = EvictionOptions()
    return DutyOptions(
        eviction=EvictionOptions(
            thresholds,
            float(flags.get("eviction_pressure_transition_period") or defaults.transition),
            int(flags.get("eviction_max_pod_grace_period") or 0),
        ),
        system_reserved=parse_reserved("system-reserved", text("system_reserved")),
        kube_reserved=parse_reserved("kube-reserved", text("kube_reserved")),
        shutdown=tuple(
            groups_of(
                float(flags.get("shutdown_grace_period") or 0),
                float(flags.get("shutdown_grace_period_critical_pods") or 0),
            )
        ),
        own_port=flags.get("port") is not None,
        bind_address=text("bind_address"),
        certificate=_certificate(text("tls_cert_file"), text("tls_private_key_file")),
    )


def _certificate(certificate: str, key: str) -> tuple[Path, Path] | None:
    if bool(certificate) != bool(key):
        raise ConfigurationError("--tls-cert-file and --tls-private-key-file belong together")
    for file in filter(None, (certificate, key)):
        if not Path(file).is_file():
            raise ConfigurationError(f"there is no file {file}")
    return (Path(certificate), Path(key)) if certificate else None
