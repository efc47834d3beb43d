"""What a pod's security contexts mean for one of its containers. Pure functions.

Source: pkg/securitycontext/util.go (DetermineEffectiveSecurityContext, AddNoNewPrivileges) and
pkg/kubelet/kuberuntime/security_context_others.go (verifyRunAsNonRoot), Kubernetes 1.36.
"""

from __future__ import annotations

from dataclasses import dataclass

from kcm.api.core_v1 import Container, Pod
from kcm.api.core_v1.security import PodSecurityContext, SecurityContext
from kcm.errors import ContainerConfigError
from kcm.kubelet.types import format_pod

_INHERITED = (
    "run_as_user",
    "run_as_group",
    "run_as_non_root",
    "se_linux_options",
    "seccomp_profile",
    "app_armor_profile",
)


@dataclass(frozen=True)
class RuntimeSecurity:
    """What a runtime makes of security settings.

    `default_user` is the user of a container whose pod names none; None if that is unknown.
    """

    default_user: int | None = None


NOTHING_CHECKED = RuntimeSecurity()
"""For a runtime that runs no programs."""


def effective_security_context(pod: Pod, container: Container) -> SecurityContext:
    """Returns the container's security context, with the pod's settings where it has none."""
    of_pod = pod.spec.security_context or PodSecurityContext()
    own = container.security_context or SecurityContext()
    inherited = {name: getattr(of_pod, name) for name in _INHERITED if getattr(own, name) is None}
    return own.replace(**inherited)


def verify_run_as_non_root(pod: Pod, container: Container, default_user: int | None) -> None:
    """Checks that a container with runAsNonRoot does not run as root.

    `default_user` is the user where runAsUser is not set; an unknown one (None) is accepted. Raises
    ContainerConfigError.
    """
    context = effective_security_context(pod, container)
    if not context.run_as_non_root:
        return
    where = f'(pod: "{format_pod(pod)}", container: {container.name})'
    if context.run_as_user == 0:
        raise ContainerConfigError(f"container's runAsUser breaks non-root policy {where}")
    if context.run_as_user is None and default_user == 0:
        raise ContainerConfigError(f"container has runAsNonRoot and image will run as root {where}")
