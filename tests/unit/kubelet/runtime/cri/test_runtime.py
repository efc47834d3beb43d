"""The adapter of CRI v1 against a server that errs, hangs and forgets on order."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import grpc
import pytest

from kcm import errors
from kcm.kubelet import cri
from kcm.kubelet.images.store import Credentials
from kcm.kubelet.runtime.cri.channel import CallFailed, RuntimeChannel
from kcm.kubelet.runtime.cri.images import CRIImages
from kcm.kubelet.runtime.cri.runtime import LOG_DIRECTORY, OWNER, CRIRuntime, check_image_mounts
from kcm.kubelet.runtime.pod_cgroups import PodCgroups
from tests.unit.kubelet.runtime.cri.fake_server import Answer, serve

OURS = {OWNER: "me"}
POD = {"name": "web", "namespace": "shop", "uid": "u1", "attempt": 1}


class NoCgroups(PodCgroups):
    """Groups that exist in the runtime only."""

    def __init__(self) -> None:
        self.removed: list[str] = []

    @property
    def kind(self) -> str:
        return "cgroup-v2"

    def parent(self, uid: str, qos_class: str) -> str:
        return f"/kcm/{qos_class}/pod{uid}"

    def make(self, uid: str, qos_class: str, resources: cri.Resources) -> None: ...

    def list_uids(self) -> set[str]:
        return {"u1", "gone"}

    def remove(self, uid: str) -> None:
        self.removed.append(uid)


def runtime_at(channel: RuntimeChannel) -> CRIRuntime:
    return CRIRuntime(channel, owner="me", host_ip="10.0.0.1", cgroups=NoCgroups())


def fail(code: grpc.StatusCode, details: str = "") -> Answer:
    def answer(_: Any, context: grpc.ServicerContext) -> None:
        context.abort(code, details)

    return answer


def give(**fields: Any) -> Answer:
    return lambda *_: fields


def sandbox(state: str = "SANDBOX_READY", **fields: Any) -> Mapping[str, Any]:
    return {"id": "s1", "metadata": POD, "state": state, "labels": OURS, **fields}


def test_errors_have_gos_words_and_their_own_types(tmp_path: Path) -> None:
    gone = fail(grpc.StatusCode.NOT_FOUND, 'an error occurred when try to find container "c1"')
    answers = {
        "ContainerStatus": gone,
        "StopContainer": gone,
        "RemovePodSandbox": fail(grpc.StatusCode.UNKNOWN, "still busy"),
        "StopPodSandbox": give(),
        "ListPodSandbox": give(),
        "ListContainers": give(),
        "ExecSync": fail(grpc.StatusCode.DEADLINE_EXCEEDED, "timeout 1s exceeded"),
    }
    with serve(tmp_path, answers) as channel:
        runtime = runtime_at(channel)
        with pytest.raises(errors.ContainerNotFound, match="code = NotFound desc = an error"):
            runtime.container_status("c1")
        runtime.stop_container("c1", 0)
        runtime.remove_container("c1")
        with pytest.raises(CallFailed, match="rpc error: code = Unknown desc = still busy"):
            runtime.remove_pod_sandbox("s1")
        with pytest.raises(errors.ExecTimeout):
            runtime.exec_sync("c1", ["true"], 1)
        with pytest.raises(errors.ContainerRuntimeError, match="code = Unimplemented"):
            runtime.reopen_container_log("c1")


def test_text_that_cannot_be_sent_fails_the_call(tmp_path: Path) -> None:
    with serve(tmp_path, {}) as channel:
        images = CRIImages(channel)
        with pytest.raises(errors.ImagePullFailed, match="code = InvalidArgument desc = 'utf-8'"):
            images.pull("busybox", Credentials("me", "\ud800"))


def test_a_runtime_that_hangs_ends_a_call_at_its_deadline(tmp_path: Path) -> None:
    goes_on = threading.Event()

    def hang(*_: Any) -> None:
        goes_on.wait()

    with serve(tmp_path, {"Version": hang}) as channel:
        with pytest.raises(CallFailed) as caught:
            channel.call("Version", 0.2)
        assert caught.value.code is grpc.StatusCode.DEADLINE_EXCEEDED
        goes_on.set()


def test_only_what_this_kubelet_has_made_is_asked_for(tmp_path: Path) -> None:
    asked: list[Mapping[str, str]] = []

    def list_(request: Any, _: grpc.ServicerContext) -> Mapping[str, Any]:
        asked.append(dict(request.filter.label_selector))
        return {}

    with serve(tmp_path, {"ListPodSandbox": list_, "ListContainers": list_}) as channel:
        runtime = runtime_at(channel)
        assert (runtime.list_pod_sandboxes(), runtime.list_containers()) == ([], [])
    assert asked == [OURS, OURS]


def test_a_sandbox_is_removed_after_its_containers_and_no_other_is_asked_for(
    tmp_path: Path,
) -> None:
    calls: list[tuple[str, str]] = []

    def note(name: str, field: str, **fields: Any) -> Answer:
        def answer(request: Any, _: grpc.ServicerContext) -> Mapping[str, Any]:
            calls.append((name, getattr(getattr(request, "filter", request), field)))
            return fields

        return answer

    container = {"id": "c1", "pod_sandbox_id": "s1", "labels": OURS}
    answers: dict[str, Answer] = {
        "StopPodSandbox": note("stop", "pod_sandbox_id"),
        "ListPodSandbox": note("sandboxes", "id"),
        "ListContainers": note("containers", "pod_sandbox_id", containers=[container]),
        "ContainerStatus": give(status={"id": "c1"}),
        "RemoveContainer": note("remove container", "container_id"),
        "RemovePodSandbox": note("remove", "pod_sandbox_id"),
    }
    with serve(tmp_path, answers) as channel:
        runtime_at(channel).remove_pod_sandbox("s1")
    assert calls == [
        ("stop", "s1"), ("sandboxes", "s1"), ("containers", "s1"), ("remove container", "c1"),
        ("remove", "s1"),
    ]  # fmt: skip


def test_a_sandbox_whose_log_folder_cannot_be_made_is_a_failure_of_the_runtime(
    tmp_path: Path,
) -> None:
    (tmp_path / "file").touch()
    config = cri.SandboxConfig("web", "shop", "u1", log_directory=str(tmp_path / "file" / "logs"))
    with (
        serve(tmp_path, {}) as channel,
        pytest.raises(errors.ContainerRuntimeError, match=r"failed to create .*/file/logs"),
    ):
        runtime_at(channel).run_pod_sandbox(config)


def test_the_address_of_a_ready_sandbox_is_asked_for_once_it_has_one(tmp_path: Path) -> None:
    addresses = ["", "10.1.0.2"]
    state = ["SANDBOX_READY"]

    def describe(*_: Any) -> Mapping[str, Any]:
        return {"status": {"network": {"ip": addresses.pop(0)}}}

    def list_(*_: Any) -> Mapping[str, Any]:
        return {"items": [sandbox(state[0])]}

    with serve(tmp_path, {"ListPodSandbox": list_, "PodSandboxStatus": describe}) as channel:
        runtime = runtime_at(channel)
        seen = [runtime.list_pod_sandboxes()[0].ip for _ in range(3)]
        assert seen == ["", "10.1.0.2", "10.1.0.2"]
        state[0] = "SANDBOX_NOTREADY"
        (listed,) = runtime.list_pod_sandboxes()
    assert (listed.ip, listed.state) == ("", cri.SandboxState.NOT_READY)


def test_a_sandbox_in_the_nodes_network_has_the_nodes_address(tmp_path: Path) -> None:
    status = {"linux": {"namespaces": {"options": {"network": "NODE"}}}}
    answers = {
        "ListPodSandbox": give(items=[sandbox()]),
        "PodSandboxStatus": give(status=status),
    }
    with serve(tmp_path, answers) as channel:
        (listed,) = runtime_at(channel).list_pod_sandboxes()
    assert (listed.ip, listed.config.host_network) == ("10.0.0.1", True)
    assert (listed.config.uid, listed.config.attempt) == ("u1", 1)


def test_a_sandbox_that_goes_while_it_is_looked_at_is_left_out(tmp_path: Path) -> None:
    answers = {
        "ListPodSandbox": give(items=[sandbox()]),
        "PodSandboxStatus": fail(grpc.StatusCode.NOT_FOUND),
    }
    with serve(tmp_path, answers) as channel:
        assert runtime_at(channel).list_pod_sandboxes() == []


def test_a_container_is_made_with_the_whole_configuration_of_its_sandbox(tmp_path: Path) -> None:
    requests: list[Any] = []

    def create(request: Any, _: grpc.ServicerContext) -> Mapping[str, Any]:
        requests.append(request)
        return {"container_id": "c1"}

    pod = cri.SandboxConfig(
        "web", "shop", "u1", log_directory=str(tmp_path / "logs"), cgroup_parent="burstable"
    )
    wanted = cri.Resources(memory_bytes=5, cpu_quota=2000)
    config = cri.ContainerConfig("main", log_path="main/0.log", resources=wanted)
    with serve(tmp_path, {"CreateContainer": create}) as channel:
        assert runtime_at(channel).create_container("s1", config, pod) == "c1"
    sent = requests[0].sandbox_config
    assert sent.metadata.uid == "u1"
    assert sent.linux.cgroup_parent == "/kcm/burstable/podu1"
    assert dict(sent.labels) == OURS
    assert (tmp_path / "logs" / "main").is_dir()
    annotations = dict(requests[0].config.annotations)
    status = {"id": "c1", "annotations": annotations, "metadata": {"name": "main"}}
    updates: list[Any] = []
    answers: dict[str, Answer] = {
        "ContainerStatus": give(status=status),
        "UpdateContainerResources": lambda request, _: updates.append(request.linux),
    }
    with serve(tmp_path, answers) as channel:
        runtime = runtime_at(channel)
        assert runtime.container_status("c1").config.resources == wanted
        more = cri.Resources(memory_bytes=7)
        runtime.update_container_resources("c1", more)
        assert runtime.container_status("c1").config.resources == more
        runtime.update_container_resources("c1", cri.Resources(cpu_quota=3000))
    sent = [(each.cpu_quota, each.memory_limit_in_bytes) for each in updates]
    assert sent == [(-1, 7), (3000, -1)]  # a limit that is taken away is -1, 0 would leave it


@pytest.mark.parametrize(
    ("name", "version", "can"),
    [
        ("containerd", "1.6.20~ds1", False),
        ("containerd", "v2.0.9", False),
        ("containerd", "2.1.9+unknown", True),
        ("containerd", "10.0.0", True),
        ("containerd", "odd", True),
        ("cri-o", "1.20.0", True),
    ],
)
def test_a_containerd_that_mounts_no_images_is_named(name: str, version: str, can: bool) -> None:
    said = nullcontext() if can else pytest.raises(errors.ContainerConfigError, match=version)
    with said:
        check_image_mounts(cri.RuntimeVersion(name, version))


def test_the_group_of_a_pod_goes_with_its_last_sandbox(tmp_path: Path) -> None:
    logs = tmp_path / "logs"
    logs.mkdir()
    annotated = {"annotations": {LOG_DIRECTORY: str(logs)}}
    listed = {name: {**sandbox(), **annotated, "id": name} for name in ("s1", "s2")}

    def remove(request: Any, _: grpc.ServicerContext) -> None:
        del listed[request.pod_sandbox_id]

    def list_(request: Any, _: grpc.ServicerContext) -> Mapping[str, Any]:
        chosen = request.filter.id
        return {"items": [each for name, each in listed.items() if chosen in ("", name)]}

    answers: dict[str, Answer] = {
        "ListPodSandbox": list_,
        "ListContainers": give(),
        "StopPodSandbox": give(),
        "RemovePodSandbox": remove,
    }
    with serve(tmp_path, answers) as channel:
        groups = NoCgroups()
        runtime = CRIRuntime(channel, owner="me", host_ip="", cgroups=groups)
        runtime.remove_pod_sandbox("s1")
        assert groups.removed == []
        runtime.remove_pod_sandbox("s2")
    assert groups.removed == ["u1"]
    assert not logs.exists()


@pytest.mark.parametrize(("listed", "removed"), [([], ["u1"]), ([sandbox()], [])])
def test_a_sandbox_that_cannot_be_made_leaves_no_group_and_no_folder(
    tmp_path: Path, listed: list[Any], removed: list[str]
) -> None:
    answers = {
        "RunPodSandbox": fail(grpc.StatusCode.UNKNOWN, "no network"),
        "ListPodSandbox": give(items=listed),
    }
    logs = tmp_path / "logs"
    with serve(tmp_path, answers) as channel:
        groups = NoCgroups()
        runtime = CRIRuntime(channel, owner="me", host_ip="", cgroups=groups)
        with pytest.raises(errors.ContainerRuntimeError, match="no network"):
            runtime.run_pod_sandbox(cri.SandboxConfig("web", "shop", "u1", log_directory=str(logs)))
    assert groups.removed == removed
    assert logs.exists() is not bool(removed)


def test_groups_of_pods_without_a_sandbox_go(tmp_path: Path) -> None:
    with serve(tmp_path, {"ListPodSandbox": give(items=[sandbox()])}) as channel:
        groups = NoCgroups()
        CRIRuntime(channel, owner="me", host_ip="", cgroups=groups).clean_up_groups()
    assert groups.removed == ["gone"]


@pytest.mark.parametrize(
    ("conditions", "ready", "words"),
    [
        ([("RuntimeReady", True), ("NetworkReady", True)], True, ""),
        ([("RuntimeReady", True), ("NetworkReady", False)], True, "NetworkReady=false reason:why"),
        ([("RuntimeReady", False), ("NetworkReady", True)], False, "RuntimeReady=false reason:why"),
        ([], False, "RuntimeReady condition is not set"),
    ],
)
def test_a_runtime_says_why_it_is_not_ready(
    tmp_path: Path, conditions: list[tuple[str, bool]], ready: bool, words: str
) -> None:
    listed = [{"type": name, "status": good, "reason": "why"} for name, good in conditions]
    with serve(tmp_path, {"Status": give(status={"conditions": listed})}) as channel:
        status = runtime_at(channel).status()
    assert status.ready is ready
    assert words in status.message + status.network_fault
    assert status.limits == "cgroup-v2"
    assert status.user_namespaces == frozenset()


def test_a_runtime_says_which_handlers_give_pods_users_of_their_own(tmp_path: Path) -> None:
    handlers = [
        {"name": "", "features": {"user_namespaces": True}},
        {"name": "runsc", "features": {"recursive_read_only_mounts": True}},
        {"name": "runc", "features": {"user_namespaces": True}},
        {"name": "old"},
    ]
    with serve(tmp_path, {"Status": give(runtime_handlers=handlers)}) as channel:
        assert runtime_at(channel).status().user_namespaces == {"", "runc"}


def test_the_group_of_a_pod_stays_while_a_new_sandbox_of_it_is_made(tmp_path: Path) -> None:
    """The old sandbox is removed before the runtime lists the new one."""
    groups = NoCgroups()
    listed = [sandbox()]

    def run(*_: Any) -> Mapping[str, Any]:
        runtime.remove_pod_sandbox("s1")
        return {"pod_sandbox_id": "s2"}

    answers: dict[str, Answer] = {
        "RunPodSandbox": run,
        "ListPodSandbox": lambda *_: {"items": listed},
        "ListContainers": give(),
        "StopPodSandbox": give(),
        "RemovePodSandbox": lambda *_: listed.clear(),
    }
    with serve(tmp_path, answers) as channel:
        runtime = CRIRuntime(channel, owner="me", host_ip="", cgroups=groups)
        assert runtime.run_pod_sandbox(cri.SandboxConfig("web", "shop", "u1")) == "s2"
    assert groups.removed == []
