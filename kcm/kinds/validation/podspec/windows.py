"""Validation of Windows options, and of fields that Linux or Windows pods must not set.

Source: validateWindowsSecurityContextOptions, validateWindowsHostProcessPod, validateLinux and
validateWindows in pkg/apis/core/validation/validation.go, Kubernetes 1.33.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from kcm.api.core_v1 import Container, PodSpec
from kcm.api.core_v1.security import WindowsSecurityContextOptions
from kcm.apimachinery import names
from kcm.apimachinery.base import Model
from kcm.apimachinery.field_errors import Faults, forbidden, invalid, invalid_all

_SPEC_LIMIT = 64 * 1024
_DOMAIN_LIMIT, _USER_LIMIT = 256, 104
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")
_NETBIOS = re.compile(r'[^\\/:*?"<>|.][^\\/:*?"<>|]{0,14}')
_DNS_LABEL = r"[a-zA-Z0-9](?:[a-zA-Z0-9-]{0,61}[a-zA-Z0-9])?"
_DNS = re.compile(rf"{_DNS_LABEL}(?:\.{_DNS_LABEL})*")
_NOT_IN_USERS = re.compile(r'["/\\:;|=,+*?<>@\[\]]')
_DOTS_AND_SPACES = re.compile(r"[. ]+")


def options(windows_options: WindowsSecurityContextOptions | None, path: str) -> Faults:
    if windows_options is None:
        return []
    faults: Faults = []
    if windows_options.gmsa_credential_spec_name is not None:
        name = windows_options.gmsa_credential_spec_name
        faults += invalid_all(f"{path}.gmsaCredentialSpecName", name, names.subdomain_faults(name))
    if windows_options.gmsa_credential_spec is not None:
        where, content = f"{path}.gmsaCredentialSpec", windows_options.gmsa_credential_spec
        if not content:
            detail = "gmsaCredentialSpec cannot be an empty string"
            faults.append(invalid(where, content, detail))
        elif len(content.encode(errors="replace")) > _SPEC_LIMIT:
            detail = "gmsaCredentialSpec size must be under 64 KiB"
            faults.append(invalid(where, content, detail))
    if windows_options.run_as_user_name is not None:
        details = _user_name(windows_options.run_as_user_name)
        faults += invalid_all(f"{path}.runAsUserName", windows_options.run_as_user_name, details)
    return faults


def _user_name(name: str) -> Iterator[str]:
    if not name:
        yield "runAsUserName cannot be an empty string"
        return
    if _CONTROL.search(name):
        yield "runAsUserName cannot contain control characters"
        return
    domain, backslash, user = name.rpartition("\\")
    if "\\" in domain:
        yield "runAsUserName cannot contain more than one backslash"
        return
    if len(domain) >= _DOMAIN_LIMIT:
        yield f"runAsUserName's Domain length must be under {_DOMAIN_LIMIT} characters"
    if backslash and not (_NETBIOS.fullmatch(domain) or _DNS.fullmatch(domain)):
        yield "runAsUserName's Domain doesn't match the NetBios nor the DNS format"
    if not user:
        yield "runAsUserName's User cannot be empty"
    elif len(user) > _USER_LIMIT:
        yield f"runAsUserName's User length must not be longer than {_USER_LIMIT} characters"
    if _DOTS_AND_SPACES.fullmatch(user):
        yield "runAsUserName's User cannot contain only periods or spaces"
    if _NOT_IN_USERS.search(user):
        yield ("runAsUserName's User cannot contain the following characters: \"/\\:;|=,+*?<>@[]")


def host_process(spec: PodSpec, path: str) -> Faults:
    """Checks that all containers or none are HostProcess containers.

    Such a pod must use the host's network.
    """
    faults: Faults = []
    of_pod = spec.security_context and spec.security_context.windows_options
    inherited = of_pod.host_process if of_pod else None
    containers = list(_containers(spec, path))
    count = 0
    for container, where in containers:
        context = container.security_context
        own = context.windows_options.host_process if context and context.windows_options else None
        if inherited is not None and own is not None and inherited != own:
            detail = (
                "pod hostProcess value must be identical if both are specified, was "
                f"{str(inherited).lower()}"
            )
            at = f"{where}.securityContext.windowsOptions.hostProcess"
            faults.append(invalid(at, own, detail))
        count += bool(inherited if own is None else own)
    if not count:
        return faults
    if count != len(containers):
        detail = (
            "If pod contains any hostProcess containers then all containers must be HostProcess "
            "containers"
        )
        faults.append(invalid(path, "", detail))
    if not spec.host_network:
        detail = "hostNetwork must be true if pod contains any hostProcess containers"
        faults.append(invalid(f"{path}.hostNetwork", False, detail))
    return faults


def _containers(spec: PodSpec, path: str) -> Iterator[tuple[Container, str]]:
    lists = {
        "initContainers": spec.init_containers,
        "containers": spec.containers,
        "ephemeralContainers": spec.ephemeral_containers,
    }
    for name, containers in lists.items():
        for index, container in enumerate(containers or ()):
            yield container, f"{path}.{name}[{index}]"


_NOT_ON_WINDOWS_POD = (
    "app_armor_profile", "se_linux_options", "seccomp_profile", "fs_group",
    "fs_group_change_policy", "sysctls", "run_as_user", "run_as_group", "supplemental_groups",
    "supplemental_groups_policy", "se_linux_change_policy",
)  # fmt: skip
_NOT_ON_WINDOWS_SPEC = ("host_users", "host_pid", "host_ipc", "share_process_namespace")
_NOT_ON_WINDOWS = (
    "app_armor_profile", "se_linux_options", "seccomp_profile", "capabilities",
    "read_only_root_filesystem", "privileged", "allow_privilege_escalation", "proc_mount",
    "run_as_user", "run_as_group",
)  # fmt: skip


def on_windows(spec: PodSpec, path: str) -> Faults:
    """Checks that a pod for Windows sets no fields that apply to Linux only."""
    detail = "cannot be set for a windows pod"
    faults = _set(spec.security_context, _NOT_ON_WINDOWS_POD, f"{path}.securityContext", detail)
    # Upstream checks these only if there is a security context, which defaulting adds.
    faults += _set(spec, _NOT_ON_WINDOWS_SPEC, path, detail)
    for container, where in _containers(spec, path):
        context = container.security_context
        faults += _set(context, _NOT_ON_WINDOWS, f"{where}.securityContext", detail)
    return faults


def on_linux(spec: PodSpec, path: str) -> Faults:
    """Checks that a pod for Linux sets no fields that apply to Windows only."""
    detail = "windows options cannot be set for a linux pod"
    faults = _set(spec.security_context, ("windows_options",), f"{path}.securityContext", detail)
    for container, where in _containers(spec, path):
        context = container.security_context
        faults += _set(context, ("windows_options",), f"{where}.securityContext", detail)
    return faults


def _set(model: Model | None, fields: tuple[str, ...], path: str, detail: str) -> Faults:
    if model is None:
        return []
    aliases = type(model).model_fields
    # For fields that are no pointers in Go, absent, false and empty are the same.
    return [
        forbidden(f"{path}.{aliases[field].alias}", detail)
        for field in fields
        if getattr(model, field) not in (None, [])
        and not (field in ("host_pid", "host_ipc") and getattr(model, field) is False)
    ]
