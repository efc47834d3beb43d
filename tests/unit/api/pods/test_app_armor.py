from __future__ import annotations

import pytest

from kcm.api.core_v1 import Pod
from kcm.api.core_v1.security import AppArmorProfile, SecurityContext
from kcm.api.pods.app_armor import ANNOTATION, with_profiles
from kcm.testing import builders


def build_pod(text: str) -> Pod:
    return builders.pod(metadata={"annotations": {f"{ANNOTATION}c": text}})


def find_profile(pod: Pod) -> AppArmorProfile | None:
    context = pod.spec.containers[0].security_context
    return context.app_armor_profile if context is not None else None


@pytest.mark.parametrize(
    ("text", "profile"),
    [
        ("runtime/default", AppArmorProfile(type="RuntimeDefault")),
        ("unconfined", AppArmorProfile(type="Unconfined")),
        ("localhost/a", AppArmorProfile(type="Localhost", localhost_profile="a")),
        ("localhost/", None),
        ("localhost/ a", None),
        ("nonsense", None),
    ],
)
def test_a_profile_in_an_annotation_becomes_the_field(
    text: str, profile: AppArmorProfile | None
) -> None:
    assert find_profile(with_profiles(build_pod(text))) == profile


def test_the_profile_of_a_container_stays() -> None:
    own = AppArmorProfile(type="Unconfined")
    pod = build_pod("runtime/default")
    [container] = pod.spec.containers
    container = container.replace(security_context=SecurityContext(app_armor_profile=own))
    pod = pod.with_spec(pod.spec.replace(containers=[container]))
    assert find_profile(with_profiles(pod)) == own
