"""Validation of security contexts.

Source: validatePodSpecSecurityContext and ValidateSecurityContext in
pkg/apis/core/validation/validation.go, Kubernetes 1.33. Privileged containers are allowed, as with
upstream's --allow-privileged.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping

from kcm.api.core_v1 import Container, Pod, PodSpec
from kcm.api.core_v1.security import (
    AppArmorProfile,
    PodSecurityContext,
    SeccompProfile,
    SecurityContext,
)
from kcm.api.pods import app_armor
from kcm.apimachinery.field_errors import (
    Faults,
    duplicate,
    forbidden,
    invalid,
    not_supported,
    required,
    too_long,
)
from kcm.kinds.validation.podspec import windows
from kcm.kinds.validation.podspec.context import PodContext
from kcm.kinds.validation.podspec.volumes.paths import descending

_ID_LIMIT = 2**31 - 1
_ID_RANGE = f"must be between 0 and {_ID_LIMIT}, inclusive"
_PROFILE_TYPES = ("Localhost", "RuntimeDefault", "Unconfined")
_PROFILE_LIMIT = 4095  # one less than the longest path
_SECCOMP_OF_POD = "seccomp.security.alpha.kubernetes.io/pod"
_SECCOMP = "container.seccomp.security.alpha.kubernetes.io/"  # and the name of a container
_SECCOMP_MEANINGS = {
    "Unconfined": ("unconfined",),
    "RuntimeDefault": ("runtime/default", "docker/default"),
}
_SECCOMP_TEXTS = frozenset(text for texts in _SECCOMP_MEANINGS.values() for text in texts)
_APP_ARMOR_MEANINGS = {kind: (text,) for kind, text in app_armor.TEXTS.items()}
_PROC_MOUNTS = ("Default", "Unmasked")
_GROUP_CHANGE_POLICIES = ("Always", "OnRootMismatch")
_GROUP_POLICIES = ("Merge", "Strict")
_SELINUX_POLICIES = ("Recursive",)  # MountOption needs a feature that is off by default
_SYSCTL_LIMIT = 253
_SYSCTL = r"([a-z0-9]([-_a-z0-9]*[a-z0-9])?[\./])*[a-z0-9]([-_a-z0-9]*[a-z0-9])?"
_SYSCTL_RE = re.compile(_SYSCTL)
_NETWORK_SYSCTLS = ("net.",)
_IPC_SYSCTLS = ("kernel.shm", "kernel.msg", "fs.mqueue.")


def of_pod(spec: PodSpec, path: str) -> Faults:
    """Checks the security context of a pod."""
    context = spec.security_context
    if context is None:
        return []
    faults: Faults = []
    faults += user_id(context.fs_group, f"{path}.fsGroup")
    faults += user_id(context.run_as_user, f"{path}.runAsUser")
    faults += user_id(context.run_as_group, f"{path}.runAsGroup")
    for index, group in enumerate(context.supplemental_groups or ()):
        faults += user_id(group, f"{path}.supplementalGroups[{index}]")
    if spec.share_process_namespace and spec.host_pid:
        detail = "ShareProcessNamespace and HostPID cannot both be enabled"
        faults.append(invalid(f"{path}.shareProcessNamespace", True, detail))
    faults += _sysctls(spec, context, f"{path}.sysctls")
    for value, field, supported in (
        (context.fs_group_change_policy, "fsGroupChangePolicy", _GROUP_CHANGE_POLICIES),
        (context.supplemental_groups_policy, "supplementalGroupsPolicy", _GROUP_POLICIES),
        (context.se_linux_change_policy, "seLinuxChangePolicy", _SELINUX_POLICIES),
    ):
        if value is not None and value not in supported:
            faults.append(not_supported(f"{path}.{field}", value, supported))
    return [
        *faults,
        *_seccomp(context.seccomp_profile, f"{path}.seccompProfile"),
        *windows.options(context.windows_options, f"{path}.windowsOptions"),
        *_app_armor(context.app_armor_profile, f"{path}.appArmorProfile"),
    ]


def of_container(context: SecurityContext | None, path: str, pod: PodContext) -> Faults:
    if context is None:
        return []
    faults = user_id(context.run_as_user, f"{path}.runAsUser")
    faults += user_id(context.run_as_group, f"{path}.runAsGroup")
    if context.proc_mount is not None:
        faults += _proc_mount(context.proc_mount, f"{path}.procMount", pod)
    faults += _seccomp(context.seccomp_profile, f"{path}.seccompProfile")
    if context.allow_privilege_escalation is False:
        faults += _escalation(context, path)
    return [
        *faults,
        *windows.options(context.windows_options, f"{path}.windowsOptions"),
        *_app_armor(context.app_armor_profile, f"{path}.appArmorProfile"),
    ]


def user_id(number: int | None, path: str) -> Faults:
    """Checks the id of a user or group."""
    return [] if number is None or 0 <= number <= _ID_LIMIT else [invalid(path, number, _ID_RANGE)]


def _proc_mount(kind: str, path: str, pod: PodContext) -> Faults:
    faults: Faults = []
    if kind not in _PROC_MOUNTS:
        faults.append(not_supported(path, kind, _PROC_MOUNTS))
    if pod.host_users and kind == "Unmasked":
        faults.append(invalid(path, kind, "`hostUsers` must be false to use `Unmasked`"))
    return faults


def _escalation(context: SecurityContext, path: str) -> Faults:
    """Checks that nothing contradicts `allowPrivilegeEscalation: false`."""
    faults: Faults = []
    if context.privileged:
        detail = "cannot set `allowPrivilegeEscalation` to false and `privileged` to true"
        faults.append(invalid(path, context, detail))
    if "CAP_SYS_ADMIN" in ((context.capabilities and context.capabilities.add) or ()):
        detail = (
            "cannot set `allowPrivilegeEscalation` to false and `capabilities.Add` CAP_SYS_ADMIN"
        )
        faults.append(invalid(path, context, detail))
    return faults


def _seccomp(profile: SeccompProfile | None, path: str) -> Faults:
    if profile is None:
        return []
    faults: Faults = []
    if not profile.type:
        faults.append(required(f"{path}.type", "type is required when seccompProfile is set"))
    elif profile.type not in _PROFILE_TYPES:
        faults.append(not_supported(f"{path}.type", profile.type, _PROFILE_TYPES))
    where = f"{path}.localhostProfile"
    if profile.type != "Localhost":
        if profile.localhost_profile is not None:
            detail = "can only be set when seccomp type is Localhost"
            faults.append(invalid(where, profile, detail))
    elif profile.localhost_profile is None:
        faults.append(required(where, "must be set when seccomp type is Localhost"))
    else:
        faults += descending(profile.localhost_profile, where)
    return faults


def _app_armor(profile: AppArmorProfile | None, path: str) -> Faults:
    if profile is None:
        return []
    where, local = f"{path}.localhostProfile", profile.localhost_profile
    if not profile.type:
        return [required(f"{path}.type", "type is required when appArmorProfile is set")]
    if profile.type not in _PROFILE_TYPES:
        return [not_supported(f"{path}.type", profile.type, _PROFILE_TYPES)]
    if profile.type != "Localhost":
        detail = "can only be set when AppArmor type is Localhost"
        return [] if local is None else [invalid(where, local, detail)]
    faults: Faults = []
    if local is not None and local != local.strip():
        faults.append(invalid(where, local, "must not be padded with whitespace"))
    elif not local:
        faults.append(required(where, "must be set when AppArmor type is Localhost"))
    if len((local or "").encode(errors="replace")) > _PROFILE_LIMIT:
        faults.append(too_long(where, _PROFILE_LIMIT))
    return faults


def profile_annotations(annotations: Mapping[str, str], spec: PodSpec, path: str) -> Faults:
    """Checks the annotations with profiles of seccomp and AppArmor, which fields have replaced."""
    if not _name_profiles(annotations):
        return []
    faults: Faults = []
    containers = {container.name for container, _ in _all_containers(spec, "")}
    for key, text in annotations.items():
        if key == _SECCOMP_OF_POD or key.startswith(_SECCOMP):
            faults += _seccomp_text(text, f"{path}.{key}")
        elif key.startswith(app_armor.ANNOTATION):
            name, where = key.removeprefix(app_armor.ANNOTATION), f"{path}[{key}]"
            if name not in containers:
                faults.append(invalid(where, name, "container not found"))
            valid = ("", *app_armor.TEXTS.values())
            if text not in valid and not text.startswith(app_armor.LOCALHOST):
                faults.append(invalid(where, text, f'invalid AppArmor profile name: "{text}"'))
    return faults


def _name_profiles(annotations: Iterable[str]) -> bool:
    """Reports whether the keys of annotations may be those of profiles, which few pods have."""
    return any("security." in key for key in annotations)


def _seccomp_text(text: str, path: str) -> Faults:
    if text in _SECCOMP_TEXTS:
        return []
    if text.startswith(app_armor.LOCALHOST):
        return descending(text.removeprefix(app_armor.LOCALHOST), path)
    return [invalid(path, text, "must be a valid seccomp profile")]


def matching_profiles(pod: Pod) -> Faults:
    """Checks that profiles in annotations of a new pod are those of its fields."""
    if not _name_profiles(pod.annotations):
        return []
    faults: Faults = []
    context, annotations = pod.spec.security_context or PodSecurityContext(), pod.annotations
    where = "spec.securityContext.seccompProfile"
    of_pod = annotations.get(_SECCOMP_OF_POD)
    faults += _match(context.seccomp_profile, of_pod, _SECCOMP_MEANINGS, where)
    has_app_armor = pod.spec.os is None or pod.spec.os.name != "windows"
    for container, place in _all_containers(pod.spec, "spec"):
        own, path = container.security_context or SecurityContext(), f"{place}.securityContext"
        text = annotations.get(f"{_SECCOMP}{container.name}")
        where = f"{path}.seccompProfile"
        faults += _match(own.seccomp_profile, text, _SECCOMP_MEANINGS, where)
        text = annotations.get(f"{app_armor.ANNOTATION}{container.name}")
        profile = own.app_armor_profile or context.app_armor_profile
        if has_app_armor:
            faults += _match(profile, text, _APP_ARMOR_MEANINGS, f"{path}.appArmorProfile")
    return faults


def _match(
    profile: SeccompProfile | AppArmorProfile | None,
    text: str | None,
    meanings: Mapping[str, Collection[str]],
    path: str,
) -> Faults:
    """Checks that a profile is the one of an annotation, if there are both."""
    if profile is None or text is None:
        return []
    what = "apparmor" if isinstance(profile, AppArmorProfile) else "seccomp"
    if profile.type != "Localhost":
        is_same = profile.type not in meanings or text in meanings[profile.type]
    else:
        is_same = text.startswith(app_armor.LOCALHOST)
        if is_same and text.removeprefix(app_armor.LOCALHOST) != profile.localhost_profile:
            detail = f"{what} profile in annotation and field must match"
            return [forbidden(f"{path}.localhostProfile", detail)]
    detail = f"{what} type in annotation and field must match"
    return [] if is_same else [forbidden(f"{path}.type", detail)]


def _all_containers(spec: PodSpec, path: str) -> Iterator[tuple[Container, str]]:
    for field, containers in (
        ("initContainers", spec.init_containers),
        ("containers", spec.containers),
        ("ephemeralContainers", spec.ephemeral_containers),
    ):
        for index, container in enumerate(containers or ()):
            yield container, f"{path}.{field}[{index}]"


def _sysctls(spec: PodSpec, context: PodSecurityContext, path: str) -> Faults:
    faults: Faults = []
    seen: set[str] = set()
    for index, sysctl in enumerate(context.sysctls or ()):
        where, name = f"{path}[{index}].name", sysctl.name
        if not name:
            faults.append(required(where))
        elif len(name) > _SYSCTL_LIMIT or not _SYSCTL_RE.fullmatch(name):
            detail = f"must have at most {_SYSCTL_LIMIT} characters and match regex ^{_SYSCTL}$"
            faults.append(invalid(where, name, detail))
        elif name in seen:
            faults.append(duplicate(where, name))
        seen.add(name)
        dotted = _separate_by_dots(name)
        if spec.host_network and dotted.startswith(_NETWORK_SYSCTLS):
            detail = "may not be specified when 'hostNetwork' is true"
            faults.append(invalid(where, name, detail))
        elif spec.host_ipc and (dotted.startswith(_IPC_SYSCTLS) or dotted == "kernel.sem"):
            faults.append(invalid(where, name, "may not be specified when 'hostIPC' is true"))
    return faults


def _separate_by_dots(name: str) -> str:
    """Returns the name of a sysctl with dots as separators.

    In a name whose first separator is a slash, slashes become dots and dots become slashes:
    `net/ipv4/conf/eth0.1` becomes `net.ipv4.conf.eth0/1`.
    """
    first = next((char for char in name if char in "./"), ".")
    return name if first == "." else name.translate(str.maketrans("./", "/."))
