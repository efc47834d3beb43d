"""What security contexts mean for a container: its user, its privileges, and what is not enforced.

Cases of the first tables: TestVerifyRunAsNonRoot of pkg/kubelet/kuberuntime, Kubernetes 1.36.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from kcm.api.core_v1 import Pod
from kcm.api.core_v1.security import PodSecurityContext, SecurityContext
from kcm.errors import ContainerConfigError
from kcm.kubelet.cri import ContainerConfig
from kcm.kubelet.images.store import ImageUser
from kcm.kubelet.kuberuntime.configs import ContainerContext, build_container_config
from kcm.kubelet.kuberuntime.security_context import (
    determine_effective_security_context,
    find_unenforced,
)

Fields = dict[str, Any]


def pod_with(pod: Fields, container: Fields, **spec: Any) -> Pod:
    whole = {"name": "web", "command": ["true"], "securityContext": container}
    return Pod.model_validate(
        {
            "metadata": {"name": "shop", "namespace": "default", "uid": "12345678"},
            "spec": {"securityContext": pod, "containers": [whole], **spec},
        }
    )


def build(pod: Pod, default_user: int | None) -> ContainerConfig:
    context = ContainerContext(memory_capacity=2**33, user=ImageUser(default_user))
    return build_container_config(pod, pod.spec.containers[0], 0, {}, (), context=context)


@pytest.mark.parametrize(
    ("pod", "container", "user"),
    [
        ({}, {}, 0),
        ({"runAsNonRoot": False}, {}, 0),
        ({"runAsNonRoot": True}, {"runAsNonRoot": False}, 0),
        ({"runAsNonRoot": True}, {}, 1000),
        ({"runAsNonRoot": True}, {}, None),  # a runtime that does not know its images' users
        ({"runAsNonRoot": True, "runAsUser": 1000}, {}, 0),
        ({"runAsNonRoot": True, "runAsUser": 0}, {"runAsUser": 1000}, 0),
    ],
)
def test_a_container_that_is_not_root_may_run(
    pod: Fields, container: Fields, user: int | None
) -> None:
    build(pod_with(pod, container), user)


@pytest.mark.parametrize(
    ("pod", "container", "user", "words"),
    [
        ({"runAsNonRoot": True}, {}, 0, "container has runAsNonRoot and image will run as root"),
        ({}, {"runAsNonRoot": True}, 0, "container has runAsNonRoot and image will run as root"),
        ({"runAsUser": 0}, {"runAsNonRoot": True}, 1000, "runAsUser breaks non-root policy"),
        (
            {"runAsNonRoot": True, "runAsUser": 1000},
            {"runAsUser": 0},
            1000,
            "container's runAsUser breaks non-root policy",
        ),
    ],
)
def test_a_container_that_would_be_root_against_its_word_may_not(
    pod: Fields, container: Fields, user: int, words: str
) -> None:
    with pytest.raises(ContainerConfigError) as caught:
        build(pod_with(pod, container), user)
    assert words in str(caught.value)
    assert '(pod: "shop_default(12345678)", container: web)' in str(caught.value)


@pytest.mark.parametrize(
    ("container", "forbidden"),
    [
        ({}, False),
        ({"allowPrivilegeEscalation": True}, False),
        ({"allowPrivilegeEscalation": False}, True),
        ({"privileged": True}, False),
    ],
)
def test_only_a_refused_escalation_forbids_new_privileges(
    container: Fields, forbidden: bool
) -> None:
    assert build(pod_with({}, container), 0).no_new_privileges is forbidden


def test_a_container_has_its_pods_settings_where_it_has_none_of_its_own() -> None:
    pod = pod_with(
        {"runAsUser": 1, "runAsGroup": 2, "seccompProfile": {"type": "RuntimeDefault"}},
        {"runAsUser": 7, "capabilities": {"drop": ["ALL"]}},
    )
    context = determine_effective_security_context(pod, pod.spec.containers[0])
    assert (context.run_as_user, context.run_as_group) == (7, 2)
    assert context.seccomp_profile is not None
    config = build(pod, 0)
    assert (config.run_as_user, config.run_as_group) == (7, 2)
    assert (config.drop_capabilities, config.add_capabilities) == (["ALL"], ())


@pytest.mark.parametrize(
    ("pod", "container", "spec", "found"),
    [
        ({}, {}, {}, []),
        ({"seccompProfile": {"type": "Unconfined"}}, {"privileged": True}, {"hostUsers": True}, []),
        ({"seccompProfile": {"type": "RuntimeDefault"}}, {}, {}, ["seccompProfile RuntimeDefault"]),
        (
            {"seccompProfile": {"type": "RuntimeDefault"}},
            {"seccompProfile": {"type": "Unconfined"}},
            {},
            [],
        ),
        (
            {},
            {"seccompProfile": {"type": "Localhost", "localhostProfile": "a.json"}},
            {},
            ["seccompProfile Localhost"],
        ),
        ({"appArmorProfile": {"type": "Localhost"}}, {}, {}, ["appArmorProfile Localhost"]),
        ({}, {"readOnlyRootFilesystem": True}, {}, ["readOnlyRootFilesystem"]),
        ({}, {"readOnlyRootFilesystem": False}, {}, []),
        ({}, {"seLinuxOptions": {"level": "s0"}}, {}, ["seLinuxOptions"]),
        ({"sysctls": [{"name": "net.core.somaxconn", "value": "1"}]}, {}, {},
         ["sysctl net.core.somaxconn"]),
        ({}, {}, {"hostUsers": False}, ["hostUsers: false"]),
        ({}, {"procMount": "Default"}, {}, []),
    ],
)  # fmt: skip
def test_settings_that_processes_cannot_have_are_found(
    pod: Fields, container: Fields, spec: Fields, found: list[str]
) -> None:
    assert find_unenforced(pod_with(pod, container, **spec)) == found


def test_a_setting_of_several_containers_is_named_once() -> None:
    fixed = {"readOnlyRootFilesystem": True}
    inits = [{"name": "init", "command": ["true"], "securityContext": fixed}]
    pod = pod_with({}, fixed, initContainers=inits)
    assert find_unenforced(pod) == ["readOnlyRootFilesystem"]


def test_the_documents_say_of_every_field_what_comes_of_it() -> None:
    page = (Path(__file__).parents[4] / "docs" / "kubelet.md").read_text()
    table = page[page.index("| field, of a container or its pod |") :].split("\n\n")[0]
    names = {
        field.alias or name
        for model in (SecurityContext, PodSecurityContext)
        for name, field in model.model_fields.items()
    }
    assert {name for name in names if f"`{name}`" not in table} == set()
