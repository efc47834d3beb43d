"""The files that the kubelet prepares for containers, and what is read from them."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from kcm import errors
from kcm.api.core_v1 import Pod
from kcm.api.node_v1 import RuntimeClass
from kcm.kubelet import cri
from kcm.kubelet.containers import hosts
from kcm.kubelet.containers.dns import PodDNS
from kcm.kubelet.containers.user_namespaces import LENGTH, UserNamespaces
from kcm.kubelet.isolation import ClusterDNS
from kcm.kubelet.kuberuntime import labels
from kcm.kubelet.kuberuntime.preparation import ContainerPreparation
from kcm.kubelet.recorder import KubeletEventRecorder
from tests.lookups import FakeLookups

AT = datetime(2026, 1, 1, tzinfo=UTC)


SANDBOXED = RuntimeClass.model_validate({"metadata": {"name": "sandboxed"}, "handler": "runsc"})


def pod_with(container: dict[str, Any] | None = None, **spec: Any) -> Pod:
    main = {"name": "main", "terminationMessagePath": "/dev/termination-log", **(container or {})}
    return Pod.model_validate(
        {
            "metadata": {"name": "web", "namespace": "shop", "uid": "u1"},
            "spec": {"containers": [main], **spec},
        }
    )


def prepare(folder: Path, *handlers: str) -> ContainerPreparation:
    """Returns the preparation on a runtime whose `handlers` give pods users of their own."""
    dns = PodDNS(ClusterDNS(), KubeletEventRecorder(None, "n1"))
    return ContainerPreparation(
        lambda uid: folder / uid,
        dns,
        FakeLookups(runtime_classes=(SANDBOXED,)),
        users=UserNamespaces(folder),
        get_status=lambda: cri.RuntimeStatus(ready=True, user_namespaces=frozenset(handlers)),
        cluster_domain="cluster.local",
    )


def add(folder: Path, pod: Pod, *mounts: cri.Mount) -> dict[str, Path]:
    """Returns the prepared mounts: files by their paths in the container."""
    added = prepare(folder).add_mounts(pod, pod.spec.containers[0], ("10.1.0.2",), mounts)
    return {m.container_path: Path(m.host_path) for m in added[len(mounts) :]}


def status(pod: Pod, files: dict[str, Path], **fields: Any) -> cri.RuntimeContainerStatus:
    """Returns the status of a container that has exited with these files mounted."""
    container = pod.spec.containers[0]
    config = cri.ContainerConfig(
        "main",
        labels=labels.container_labels(pod, container),
        annotations=labels.container_annotations(pod, container, 0),
        mounts=[cri.Mount(str(file), path) for path, file in files.items()],
    )
    ended = cri.RuntimeContainerStatus(
        "c1", config, cri.RuntimeContainerState.EXITED, AT, exit_code=1
    )
    return replace(ended, **fields)


def test_each_attempt_has_a_file_of_its_own_that_its_user_may_write(tmp_path: Path) -> None:
    pod = pod_with()
    first, second = (add(tmp_path, pod)["/dev/termination-log"] for _ in range(2))
    assert first != second
    assert first.stat().st_mode & 0o777 == 0o666
    assert first.parent.stat().st_mode & 0o777 == 0o700


def test_a_volume_at_the_same_path_comes_before_what_is_prepared(tmp_path: Path) -> None:
    taken = (cri.Mount("/a", "/etc/hosts/"), cri.Mount("/b", "/dev/../dev/termination-log"))
    assert add(tmp_path, pod_with(), *taken) == {}
    assert add(tmp_path, pod_with({"terminationMessagePath": ""}), taken[0]) == {}


def test_a_message_is_read_after_the_runtimes_own(tmp_path: Path) -> None:
    pod = pod_with()
    files = add(tmp_path, pod)
    files["/dev/termination-log"].write_text("w" * 5000)
    read = prepare(tmp_path).read_message
    assert read(status(pod, files)) == "w" * 4096
    assert read(status(pod, files, message="killed")) == "killed: " + "w" * 4096
    running = status(pod, files, state=cri.RuntimeContainerState.RUNNING)
    assert read(running) == ""


@pytest.mark.parametrize(
    ("policy", "code", "message", "wanted"),
    [
        ("FallbackToLogsOnError", 1, "", "from the log\n"),
        ("FallbackToLogsOnError", 0, "", ""),
        ("FallbackToLogsOnError", 1, "own", "own"),
        ("File", 1, "", ""),
    ],
)
def test_the_log_speaks_for_a_container_that_failed_and_said_nothing(
    tmp_path: Path, policy: str, code: int, message: str, wanted: str
) -> None:
    pod = pod_with({"terminationMessagePolicy": policy})
    files = add(tmp_path, pod)
    files["/dev/termination-log"].write_text(message)
    log = tmp_path / "0.log"
    log.write_text("2026-01-01T00:00:00.000000000Z stdout F from the log\n")
    ended = status(pod, files, exit_code=code, log_path=str(log))
    assert prepare(tmp_path).read_message(ended) == wanted


def test_no_file_of_the_node_is_read_as_a_message(tmp_path: Path) -> None:
    pod = pod_with()
    secret = tmp_path / "secret"
    secret.write_text("of the node")
    files = add(tmp_path, pod)
    other = {"/dev/termination-log": secret}
    assert prepare(tmp_path).read_message(status(pod, other)) == ""
    own = files["/dev/termination-log"]
    own.unlink()
    own.symlink_to(secret)
    assert prepare(tmp_path).read_message(status(pod, files)) == ""


def test_the_hosts_file_of_the_node_begins_that_of_its_own_pods(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    node = tmp_path / "hosts"
    node.write_text("192.0.2.1 node\n")
    monkeypatch.setattr(hosts, "NODE_HOSTS", node)
    aliases = [{"ip": "192.0.2.7", "hostnames": ["db"]}]
    pod = pod_with(hostNetwork=True, hostAliases=aliases)
    text = add(tmp_path, pod)["/etc/hosts"].read_text()
    assert text.startswith("# Kubernetes-managed hosts file (host network).\n192.0.2.1 node\n")
    assert text.endswith("192.0.2.7\tdb\n")


@pytest.mark.parametrize(("name", "handler"), [(None, ""), ("sandboxed", "runsc")])
def test_a_pod_has_the_handler_of_its_class(tmp_path: Path, name: str | None, handler: str) -> None:
    config = cri.SandboxConfig("web", "shop", "u1")
    pod = pod_with(runtimeClassName=name, dnsPolicy="None")
    assert prepare(tmp_path).complete_sandbox(pod, config).runtime_handler == handler


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        ({"runtimeClassName": "gone"}, 'RuntimeClass.node.k8s.io "gone" not found'),
        ({"hostUsers": False}, "runtime does not support user namespaces"),
        (
            {"hostUsers": False, "runtimeClassName": "sandboxed"},
            'RuntimeClass handler "runsc" does',
        ),
    ],
)
def test_what_the_node_cannot_give_is_said(
    tmp_path: Path, spec: dict[str, Any], words: str
) -> None:
    with pytest.raises(errors.ContainerRuntimeError, match=words):
        prepare(tmp_path).complete_sandbox(pod_with(**spec), cri.SandboxConfig("w", "s", "u1"))


def test_a_pod_has_users_of_its_own_where_its_handler_gives_them(tmp_path: Path) -> None:
    pod, config = pod_with(hostUsers=False), cri.SandboxConfig("web", "shop", "u1")
    made = prepare(tmp_path, "").complete_sandbox(pod, config)
    users = made.isolation.namespaces.userns_options
    assert users is not None
    assert [each.host_id for each in users.uids] == [LENGTH]
    # It keeps them, also where the runtime does not say that it can.
    assert prepare(tmp_path).complete_sandbox(pod, config) == made
    hosts_users = prepare(tmp_path).complete_sandbox(pod_with(hostUsers=True), config)
    assert hosts_users.isolation.namespaces.userns_options is None
