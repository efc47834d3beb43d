"""AppArmor profiles in annotations, from which new pods get the fields that have replaced them.

Source: applyAppArmorVersionSkew in pkg/registry/core/pod/strategy.go, Kubernetes 1.36.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeVar

from kcm.api.core_v1 import Container, Pod
from kcm.api.core_v1.security import AppArmorProfile, SecurityContext

ANNOTATION = "container.apparmor.security.beta.kubernetes.io/"  # and the name of a container
LOCALHOST = "localhost/"
TEXTS = {"RuntimeDefault": "runtime/default", "Unconfined": "unconfined"}
_BY_TEXT = {text: kind for kind, text in TEXTS.items()}

ContainerT = TypeVar("ContainerT", bound=Container)


def with_profiles(pod: Pod) -> Pod:
    """Returns the pod, whose containers have the profiles that its annotations name.

    A profile in a container's fields stays. Annotations without a valid profile are left out.
    """
    named = {
        key.removeprefix(ANNOTATION): text
        for key, text in pod.annotations.items()
        if key.startswith(ANNOTATION)
    }
    if not named or (pod.spec.os is not None and pod.spec.os.name == "windows"):
        return pod
    context = pod.spec.security_context
    of_pod = context.app_armor_profile if context is not None else None
    spec = pod.spec.replace(
        containers=_fill(pod.spec.containers, named, of_pod),
        init_containers=_fill(pod.spec.init_containers, named, of_pod),
    )
    return pod.with_spec(spec)


def _fill(
    containers: Sequence[ContainerT] | None,
    named: Mapping[str, str],
    of_pod: AppArmorProfile | None,
) -> list[ContainerT] | None:
    if containers is None:
        return None
    return [_with_profile(container, named, of_pod) for container in containers]


def _with_profile(
    container: ContainerT, named: Mapping[str, str], of_pod: AppArmorProfile | None
) -> ContainerT:
    context = container.security_context or SecurityContext()
    profile = _parse(named.get(container.name, ""))
    if profile is None or profile == of_pod or context.app_armor_profile is not None:
        return container
    return container.replace(security_context=context.replace(app_armor_profile=profile))


def _parse(text: str) -> AppArmorProfile | None:
    if kind := _BY_TEXT.get(text):
        return AppArmorProfile(type=kind)
    name = text.removeprefix(LOCALHOST)
    if not text.startswith(LOCALHOST) or not name or name != name.strip():
        return None
    return AppArmorProfile(type="Localhost", localhost_profile=name)
