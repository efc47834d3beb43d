"""What a pod's spec says about the isolation of its sandbox and containers: pure functions.

Source: generatePodSandboxLinuxConfig in pkg/kubelet/kuberuntime/kuberuntime_sandbox.go,
security_context.go and helpers.go (getSeccompProfile) there, NamespacesForPod in
pkg/kubelet/kuberuntime/util, and pkg/securitycontext/util.go, Kubernetes 1.36.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path

from kcm.api.core_v1 import Container, EphemeralContainer, Pod
from kcm.api.core_v1.security import (
    AppArmorProfile,
    PodSecurityContext,
    SeccompProfile,
    SELinuxOptions,
)
from kcm.errors import ContainerConfigError
from kcm.helpers.pods import list_containers
from kcm.kubelet.isolation import (
    ContainerIsolation,
    NamespaceMode,
    Namespaces,
    SandboxIsolation,
    SecurityProfile,
    SELinuxLabel,
)
from kcm.kubelet.kuberuntime.security_context import determine_effective_security_context

_LOCALHOST, _UNMASKED, _STRICT = "Localhost", "Unmasked", "Strict"
_MASKED = (
    "/proc/asound",
    "/proc/acpi",
    "/proc/interrupts",
    "/proc/kcore",
    "/proc/keys",
    "/proc/latency_stats",
    "/proc/timer_list",
    "/proc/timer_stats",
    "/proc/sched_debug",
    "/proc/scsi",
    "/sys/firmware",
    "/sys/devices/virtual/powercap",
)
_READ_ONLY = ("/proc/bus", "/proc/fs", "/proc/irq", "/proc/sys", "/proc/sysrq-trigger")


def build_namespaces(pod: Pod, target_id: str = "") -> Namespaces:
    """Returns the namespaces of a pod's containers. With a target, processes are the target's."""
    spec = pod.spec
    pid = NamespaceMode.CONTAINER
    if spec.host_pid:
        pid = NamespaceMode.NODE
    elif spec.share_process_namespace:
        pid = NamespaceMode.POD
    if target_id and pid is NamespaceMode.CONTAINER:
        pid = NamespaceMode.TARGET
    return Namespaces(
        network=NamespaceMode.NODE if spec.host_network else NamespaceMode.POD,
        pid=pid,
        ipc=NamespaceMode.NODE if spec.host_ipc else NamespaceMode.POD,
        target_id=target_id if pid is NamespaceMode.TARGET else "",
    )


def build_sandbox_isolation(pod: Pod) -> SandboxIsolation:
    """Returns what isolates a pod's sandbox."""
    context = pod.spec.security_context or PodSecurityContext()
    volumes = [context.fs_group] if context.fs_group is not None else []
    return SandboxIsolation(
        namespaces=build_namespaces(pod),
        privileged=any(
            bool(container.security_context and container.security_context.privileged)
            for container in list_containers(pod.spec)
        ),
        se_linux=_label(context.se_linux_options),
        run_as_user=context.run_as_user,
        run_as_group=context.run_as_group,
        supplemental_groups=[*volumes, *(context.supplemental_groups or ())],
        strict_groups=context.supplemental_groups_policy == _STRICT,
        sysctls={sysctl.name: sysctl.value for sysctl in context.sysctls or ()},
    )


def build_container_isolation(
    pod: Pod, container: Container, *, seccomp_dir: Path, target_id: str = ""
) -> ContainerIsolation:
    """Returns what isolates a container.

    `seccomp_dir` is the folder of seccomp profiles of this node, `target_id` the container whose
    processes an ephemeral one sees. Raises ContainerConfigError for a profile without a name.
    """
    of_pod = pod.spec.security_context or PodSecurityContext()
    context = determine_effective_security_context(pod, container)
    shows_all = context.proc_mount == _UNMASKED
    return ContainerIsolation(
        namespaces=build_namespaces(pod, target_id),
        seccomp=_seccomp(context.seccomp_profile, seccomp_dir),
        app_armor=_app_armor(context.app_armor_profile),
        se_linux=_label(context.se_linux_options),
        read_only_root=bool(context.read_only_root_filesystem),
        strict_groups=of_pod.supplemental_groups_policy == _STRICT,
        fs_group=of_pod.fs_group,
        masked_paths=() if shows_all else (*_MASKED, *_list_throttles()),
        read_only_paths=() if shows_all else _READ_ONLY,
    )


def name_target(container: Container) -> str:
    """Returns the name of the container whose processes an ephemeral one sees, "" for none."""
    return (
        container.target_container_name or "" if isinstance(container, EphemeralContainer) else ""
    )


def _seccomp(profile: SeccompProfile | None, folder: Path) -> SecurityProfile:
    if profile is None or not profile.type:
        return SecurityProfile()
    if profile.type != _LOCALHOST:
        return SecurityProfile(profile.type)
    if not profile.localhost_profile:
        raise ContainerConfigError(
            "localhostProfile must be set if seccompProfile type is Localhost."
        )
    return SecurityProfile(_LOCALHOST, str(folder / profile.localhost_profile))


def _app_armor(profile: AppArmorProfile | None) -> SecurityProfile | None:
    if profile is None or not profile.type:
        return None
    return SecurityProfile(profile.type, profile.localhost_profile or "")


def _label(options: SELinuxOptions | None) -> SELinuxLabel | None:
    if options is None:
        return None
    return SELinuxLabel(
        options.user or "", options.role or "", options.type or "", options.level or ""
    )


@cache
def _list_throttles() -> tuple[str, ...]:
    folder = Path("/sys/devices/system/cpu")
    return tuple(sorted(str(path) for path in folder.glob("cpu[0-9]*/thermal_throttle")))
