"""What isolates the containers of a pod, in the words of CRI.

A runtime that cannot isolate ignores these settings; `kuberuntime.security_context` says which of
them a pod asks for in vain.

Source: NamespaceOption, LinuxSandboxSecurityContext and LinuxContainerSecurityContext in
staging/src/k8s.io/cri-api/pkg/apis/runtime/v1/api.proto, Kubernetes 1.36.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path


class NamespaceMode(StrEnum):
    """With whom a container shares a namespace."""

    POD = "POD"
    CONTAINER = "CONTAINER"  # with nobody
    NODE = "NODE"
    TARGET = "TARGET"  # with another container


@dataclass(frozen=True)
class IDMapping:
    """A range of ids of users or groups, in a container and on the node."""

    host_id: int
    container_id: int
    length: int


@dataclass(frozen=True)
class UserNamespace:
    """The users and groups that a pod has of its own."""

    mode: NamespaceMode = NamespaceMode.POD
    uids: tuple[IDMapping, ...] = ()
    gids: tuple[IDMapping, ...] = ()


@dataclass(frozen=True)
class Namespaces:
    """The namespaces of a container. `target_id` is the container that TARGET means.

    `userns_options` is None where users are the node's. It stands in the sandbox's namespaces only.
    """

    network: NamespaceMode = NamespaceMode.POD
    pid: NamespaceMode = NamespaceMode.CONTAINER
    ipc: NamespaceMode = NamespaceMode.POD
    target_id: str = ""
    userns_options: UserNamespace | None = None


@dataclass(frozen=True)
class SecurityProfile:
    """A seccomp or AppArmor profile: RuntimeDefault, Unconfined, or Localhost with a name.

    For seccomp the name is the absolute path of a file of this node.
    """

    type: str = "Unconfined"
    localhost_ref: str = ""


@dataclass(frozen=True)
class SELinuxLabel:
    """The parts of an SELinux label; "" leaves one to the runtime."""

    user: str = ""
    role: str = ""
    type: str = ""
    level: str = ""


@dataclass(frozen=True)
class DNSConfig:
    """The lines of a pod's /etc/resolv.conf."""

    servers: Sequence[str] = ()
    searches: Sequence[str] = ()
    options: Sequence[str] = ()


@dataclass(frozen=True)
class ClusterDNS:
    """The cluster's name servers and domain, and the resolver's configuration of the node."""

    servers: Sequence[str] = ()
    domain: str = "cluster.local"
    resolv_conf: Path = Path("/etc/resolv.conf")


@dataclass(frozen=True)
class SandboxIsolation:
    """What isolates a sandbox. `privileged` is set if one of its containers is privileged."""

    namespaces: Namespaces = Namespaces()
    privileged: bool = False
    seccomp: SecurityProfile = SecurityProfile("RuntimeDefault")
    se_linux: SELinuxLabel | None = None
    run_as_user: int | None = None
    run_as_group: int | None = None
    supplemental_groups: Sequence[int] = ()
    strict_groups: bool = False  # without the groups that the image's /etc/group gives the user
    sysctls: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class ContainerIsolation:
    """What isolates a container beyond its user and capabilities."""

    namespaces: Namespaces = Namespaces()
    seccomp: SecurityProfile = SecurityProfile()
    app_armor: SecurityProfile | None = None
    se_linux: SELinuxLabel | None = None
    read_only_root: bool = False
    strict_groups: bool = False
    fs_group: int | None = None  # the group of the pod's volumes
    masked_paths: Sequence[str] = ()
    read_only_paths: Sequence[str] = ()
