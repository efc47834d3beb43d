"""What a pod's spec says about isolation. Cases: TestNamespacesForPod of
pkg/kubelet/kuberuntime/util, TestGetSeccompProfile of pkg/kubelet/kuberuntime, Kubernetes 1.36.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from kcm.api.core_v1 import Pod
from kcm.errors import ContainerConfigError
from kcm.kubelet.isolation import ContainerIsolation, NamespaceMode, Namespaces, SecurityProfile
from kcm.kubelet.kuberuntime.isolation import (
    build_container_isolation,
    build_namespaces,
    build_sandbox_isolation,
    name_target,
)

PROFILES = Path("/profiles")
POD, CONTAINER, NODE, TARGET = NamespaceMode


def pod_with(context: dict[str, Any] | None = None, **spec: Any) -> Pod:
    containers = [{"name": "main", "securityContext": context}, {"name": "other"}]
    return Pod.model_validate({"spec": {"containers": containers, **spec}})


def isolate(pod: Pod) -> ContainerIsolation:
    return build_container_isolation(pod, pod.spec.containers[0], seccomp_dir=PROFILES)


@pytest.mark.parametrize(
    ("spec", "wanted"),
    [
        ({}, Namespaces(POD, CONTAINER, POD)),
        ({"hostNetwork": True}, Namespaces(NODE, CONTAINER, POD)),
        ({"hostPID": True}, Namespaces(POD, NODE, POD)),
        ({"hostIPC": True}, Namespaces(POD, CONTAINER, NODE)),
        ({"shareProcessNamespace": True}, Namespaces(POD, POD, POD)),
        ({"shareProcessNamespace": True, "hostPID": True}, Namespaces(POD, NODE, POD)),
    ],
)
def test_namespaces_are_those_of_the_spec(spec: dict[str, Any], wanted: Namespaces) -> None:
    assert build_namespaces(pod_with(**spec)) == wanted
    assert build_sandbox_isolation(pod_with(**spec)).namespaces == wanted


@pytest.mark.parametrize(
    ("spec", "pid", "target"),
    [
        ({}, TARGET, "c1"),
        ({"shareProcessNamespace": True}, POD, ""),
        ({"hostPID": True}, NODE, ""),
    ],
)
def test_a_target_matters_where_processes_are_a_containers_own(
    spec: dict[str, Any], pid: NamespaceMode, target: str
) -> None:
    namespaces = build_namespaces(pod_with(**spec), "c1")
    assert (namespaces.pid, namespaces.target_id) == (pid, target)


def test_only_ephemeral_containers_have_a_target() -> None:
    pod = pod_with(ephemeralContainers=[{"name": "debug", "targetContainerName": "main"}])
    assert name_target(pod.spec.containers[0]) == ""
    assert name_target((pod.spec.ephemeral_containers or [])[0]) == "main"


@pytest.mark.parametrize(
    ("pod", "container", "wanted"),
    [
        (None, None, SecurityProfile("Unconfined")),
        ({"type": "RuntimeDefault"}, None, SecurityProfile("RuntimeDefault")),
        ({"type": "RuntimeDefault"}, {"type": "Unconfined"}, SecurityProfile("Unconfined")),
        (
            None,
            {"type": "Localhost", "localhostProfile": "a/b.json"},
            SecurityProfile("Localhost", "/profiles/a/b.json"),
        ),
    ],
)
def test_the_seccomp_profile_is_the_containers_or_its_pods(
    pod: dict[str, Any] | None, container: dict[str, Any] | None, wanted: SecurityProfile
) -> None:
    whole = pod_with({"seccompProfile": container}, securityContext={"seccompProfile": pod})
    assert isolate(whole).seccomp == wanted
    assert build_sandbox_isolation(whole).seccomp == SecurityProfile("RuntimeDefault")


def test_a_profile_of_the_node_needs_a_name() -> None:
    with pytest.raises(ContainerConfigError, match="localhostProfile must be set"):
        isolate(pod_with({"seccompProfile": {"type": "Localhost"}}))


def test_parts_of_proc_are_hidden_unless_the_container_may_see_them() -> None:
    hidden = isolate(pod_with())
    assert {"/proc/kcore", "/sys/firmware"} <= {*hidden.masked_paths}
    assert "/proc/sys" in hidden.read_only_paths
    shown = isolate(pod_with({"procMount": "Unmasked"}))
    assert (shown.masked_paths, shown.read_only_paths) == ((), ())


def test_groups_and_labels_are_the_pods() -> None:
    context = {
        "fsGroup": 7,
        "supplementalGroups": [8],
        "supplementalGroupsPolicy": "Strict",
        "seLinuxOptions": {"level": "s0"},
        "sysctls": [{"name": "net.x", "value": "1"}],
    }
    pod = pod_with({"privileged": True, "readOnlyRootFilesystem": True}, securityContext=context)
    box, container = build_sandbox_isolation(pod), isolate(pod)
    assert (list(box.supplemental_groups), box.strict_groups, box.privileged) == (
        [7, 8], True, True,
    )  # fmt: skip
    assert dict(box.sysctls) == {"net.x": "1"}
    assert (container.fs_group, container.strict_groups, container.read_only_root) == (
        7, True, True,
    )  # fmt: skip
    assert container.se_linux is not None
    assert container.se_linux.level == "s0"
    assert build_sandbox_isolation(pod_with()).privileged is False
