"""What a pod's security contexts mean for one of its containers. Pure functions.

Source: pkg/securitycontext/util.go (DetermineEffectiveSecurityContext, AddNoNewPrivileges) and
pkg/kubelet/kuberuntime/security_context_others.go (verifyRunAsNonRoot), Kubernetes 1.36.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from kcm.api.core_v1 import Container, Pod
from kcm.api.core_v1.security import PodSecurityContext, SecurityContext
from kcm.errors import ContainerConfigError
from kcm.helpers.pods import list_containers
from kcm.kubelet.images.store import ImageUser
from kcm.kubelet.types import format_pod

IGNORE, WARN, REFUSE = "ignore", "warn", "refuse"

_INHERITED = (
    "run_as_user",
    "run_as_group",
    "run_as_non_root",
    "se_linux_options",
    "seccomp_profile",
    "app_armor_profile",
)
_UNCONFINED = "Unconfined"


@dataclass(frozen=True)
class RuntimeSecurity:
    """What a runtime makes of security settings.

    `default_user` is the user of a container whose pod and image name none. `unenforced` says what
    happens to pods that ask for something that the runtime cannot enforce: IGNORE, WARN or REFUSE.
    """

    default_user: ImageUser = field(default_factory=ImageUser)
    unenforced: str = IGNORE


NOTHING_CHECKED = RuntimeSecurity()
"""For a runtime that runs no programs."""


def determine_effective_security_context(pod: Pod, container: Container) -> SecurityContext:
    """Returns the container's security context, with the pod's settings where it has none."""
    of_pod = pod.spec.security_context or PodSecurityContext()
    own = container.security_context or SecurityContext()
    inherited = {name: getattr(of_pod, name) for name in _INHERITED if getattr(own, name) is None}
    return own.replace(**inherited)


def verify_run_as_non_root(pod: Pod, container: Container, user: ImageUser) -> None:
    """Checks that a container with runAsNonRoot does not run as root.

    `user` is the user where runAsUser is not set; an unknown one is accepted. Raises
    ContainerConfigError.
    """
    context = determine_effective_security_context(pod, container)
    if not context.run_as_non_root:
        return
    where = f'(pod: "{format_pod(pod)}", container: {container.name})'
    if context.run_as_user == 0:
        raise ContainerConfigError(f"container's runAsUser breaks non-root policy {where}")
    if context.run_as_user is None and user.uid == 0:
        raise ContainerConfigError(f"container has runAsNonRoot and image will run as root {where}")
    if context.run_as_user is None and user.uid is None and user.name:
        raise ContainerConfigError(
            f"container has runAsNonRoot and image has non-numeric user ({user.name}), cannot "
            f"verify user is non-root {where}"
        )


def find_unenforced(pod: Pod) -> list[str]:
    """Returns the security settings of a pod that a process of the machine cannot have, by name."""
    settings = find_unenforced_by_pod(pod)
    for container in list_containers(pod.spec):
        settings += find_unenforced_by_container(pod, container)
    return list(dict.fromkeys(settings))


def find_unenforced_by_pod(pod: Pod) -> list[str]:
    """Returns those settings of a pod that are not of one container."""
    context = pod.spec.security_context or PodSecurityContext()
    settings = ["hostUsers: false"] if pod.spec.host_users is False else []
    return [*settings, *(f"sysctl {sysctl.name}" for sysctl in context.sysctls or ())]


def find_unenforced_by_container(pod: Pod, container: Container) -> list[str]:
    """Returns those settings of a container, with what it inherits from its pod."""
    context = determine_effective_security_context(pod, container)
    settings = ["readOnlyRootFilesystem"] if context.read_only_root_filesystem else []
    for name, profile in (
        ("seccompProfile", context.seccomp_profile),
        ("appArmorProfile", context.app_armor_profile),
    ):
        if profile is not None and profile.type not in ("", _UNCONFINED):
            settings.append(f"{name} {profile.type}")
    return [*settings, "seLinuxOptions"] if context.se_linux_options is not None else settings
