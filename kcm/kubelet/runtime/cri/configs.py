"""Converts configurations of sandboxes and containers into CRI's messages: pure functions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, replace
from typing import Any

from kcm.errors import ContainerConfigError
from kcm.kubelet import cri
from kcm.kubelet.isolation import DNSConfig, SecurityProfile, UserNamespace
from kcm.kubelet.runtime.cri.messages import Message, new

_PROPAGATIONS = {
    "": "PROPAGATION_PRIVATE",
    "None": "PROPAGATION_PRIVATE",
    "HostToContainer": "PROPAGATION_HOST_TO_CONTAINER",
    "Bidirectional": "PROPAGATION_BIDIRECTIONAL",
}
_PROFILES = ("RuntimeDefault", "Unconfined", "Localhost")


def build_sandbox(config: cri.SandboxConfig, labels: Mapping[str, str]) -> Message:
    """Returns a PodSandboxConfig, with these labels besides those of `config`."""
    isolation = config.isolation
    groups = "Strict" if isolation.strict_groups else "Merge"
    context: dict[str, Any] = {
        "namespace_options": asdict(isolation.namespaces),
        "privileged": isolation.privileged,
        "seccomp": _profile(isolation.seccomp),
        "supplemental_groups": isolation.supplemental_groups,
        "supplemental_groups_policy": groups,
        **_user(isolation.run_as_user, isolation.run_as_group),
    }
    if isolation.se_linux is not None:
        context["selinux_options"] = asdict(isolation.se_linux)
    return new(
        "PodSandboxConfig",
        metadata={
            "name": config.name, "namespace": config.namespace,
            "uid": config.uid, "attempt": config.attempt,
        },
        # A sandbox in the node's network has the node's name, which nobody may set.
        hostname="" if config.host_network else config.hostname,
        log_directory=config.log_directory,
        port_mappings=[asdict(mapping) for mapping in config.port_mappings],
        labels={**config.labels, **labels},
        annotations=dict(config.annotations),
        linux={
            "cgroup_parent": config.cgroup_parent,
            "security_context": context,
            "sysctls": dict(isolation.sysctls),
        },
        **_dns(config.dns),
    )  # fmt: skip


def _dns(config: DNSConfig | None) -> dict[str, Any]:
    if config is None:
        return {}
    lines = {
        name: [_text(word, "dnsConfig") for word in words] for name, words in asdict(config).items()
    }
    return {"dns_config": lines}


def build_container(
    config: cri.ContainerConfig,
    labels: Mapping[str, str],
    annotations: Mapping[str, str],
    users: UserNamespace | None = None,
) -> Message:
    """Returns a ContainerConfig, with these labels and annotations besides those of `config`.

    `users` are those of the sandbox: files on the volumes belong to them as they would on the node.

    Raises ContainerConfigError for text that cannot be sent.
    """
    return new(
        "ContainerConfig",
        metadata={"name": config.name, "attempt": config.attempt},
        image={"image": config.image, "user_specified_image": config.image},
        command=[_text(word, "command") for word in config.command],
        args=[_text(word, "args") for word in config.args],
        working_dir=_text(config.working_dir, "workingDir"),
        # Since 1.36 values are bytes, which older runtimes read as text.
        envs=[
            {"key": _text(name, "env"), "value": value.encode("utf-8", "surrogateescape")}
            for name, value in config.env
        ],
        mounts=[_mount(mount, users) for mount in config.mounts],
        labels={**config.labels, **labels},
        annotations={**config.annotations, **annotations},
        log_path=config.log_path,
        stdin=config.stdin,
        stdin_once=config.stdin_once,
        tty=config.tty,
        linux={
            "resources": build_resources(config.resources),
            "security_context": _security_context(config, users),
        },
    )


def _security_context(config: cri.ContainerConfig, users: UserNamespace | None) -> dict[str, Any]:
    isolation = config.isolation
    volumes = [isolation.fs_group] if isolation.fs_group is not None else []
    context: dict[str, Any] = {
        "namespace_options": asdict(replace(isolation.namespaces, userns_options=users)),
        "privileged": config.privileged,
        "capabilities": {
            "add_capabilities": [_capability(name) for name in config.add_capabilities],
            "drop_capabilities": [_capability(name) for name in config.drop_capabilities],
        },
        "no_new_privs": config.no_new_privileges,
        "readonly_rootfs": isolation.read_only_root,
        "seccomp": _profile(isolation.seccomp),
        "supplemental_groups": [*volumes, *config.supplemental_groups],
        "supplemental_groups_policy": "Strict" if isolation.strict_groups else "Merge",
        "masked_paths": isolation.masked_paths,
        "readonly_paths": isolation.read_only_paths,
        **_user(config.run_as_user, config.run_as_group),
    }
    if isolation.app_armor is not None:
        context["apparmor"] = _profile(isolation.app_armor)
    if isolation.se_linux is not None:
        context["selinux_options"] = asdict(isolation.se_linux)
    return context


def build_resources(resources: cri.Resources) -> dict[str, Any]:
    """Returns the fields of LinuxContainerResources."""
    return {
        "cpu_period": resources.cpu_period if resources.cpu_quota is not None else 0,
        "cpu_quota": resources.cpu_quota or 0,
        "cpu_shares": resources.cpu_shares or 0,
        "memory_limit_in_bytes": resources.memory_bytes or 0,
        "oom_score_adj": resources.oom_score_adj or 0,
    }


def _mount(mount: cri.Mount, users: UserNamespace | None) -> dict[str, Any]:
    if mount.propagation not in _PROPAGATIONS:
        raise ContainerConfigError(f"unknown mountPropagation {mount.propagation}")
    image = {"image": mount.image, "user_specified_image": mount.image} if mount.image else None
    return {
        "image": image,
        "image_sub_path": _text(mount.image_sub_path, "subPath"),
        "host_path": mount.host_path,
        "container_path": _text(mount.container_path, "mountPath"),
        "readonly": mount.read_only,
        "recursive_read_only": mount.recursive_read_only,
        "propagation": _PROPAGATIONS[mount.propagation],
        "uidMappings": [asdict(each) for each in users.uids] if users else [],
        "gidMappings": [asdict(each) for each in users.gids] if users else [],
    }


def _profile(profile: SecurityProfile) -> dict[str, Any]:
    if profile.type not in _PROFILES:
        raise ContainerConfigError(f"unknown type {profile.type!r} of a security profile")
    return {"profile_type": profile.type, "localhost_ref": profile.localhost_ref}


def _user(user: int | None, group: int | None) -> dict[str, Any]:
    """Returns the fields of a user and group, which are left out where there are none."""
    ids = {"run_as_user": user, "run_as_group": group}
    return {name: {"value": number} for name, number in ids.items() if number is not None}


def _capability(name: str) -> str:
    return name.upper().removeprefix("CAP_")


def _text(text: str, where: str) -> str:
    """Returns text that protobuf can send. Raises ContainerConfigError for what is not Unicode."""
    try:
        text.encode()
    except UnicodeEncodeError:
        raise ContainerConfigError(f"{where} is not valid Unicode: {text!r}") from None
    return text
