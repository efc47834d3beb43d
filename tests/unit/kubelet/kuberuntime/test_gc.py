"""The dead containers and sandboxes that garbage collection removes."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path

from kcm.kubelet.cri import RuntimeContainer, RuntimeContainerState
from kcm.kubelet.kuberuntime.gc import (
    find_deletable_containers,
    find_evictable_containers,
    find_evictable_logs,
    find_evictable_sandboxes,
)
from kcm.kubelet.kuberuntime.labels import POD_UID
from tests.unit.kubelet.views import NOW, container_view, sandbox, view


@dataclass(frozen=True)
class Pods:
    """Pods that are all gone, or all known."""

    gone: bool

    def should_content_be_removed(self, uid: str) -> bool:
        return self.gone

    def should_runtime_be_removed(self, uid: str) -> bool:
        return self.gone


KNOWN, GONE = Pods(gone=False), Pods(gone=True)


def build_container(
    name: str, attempt: int, state: RuntimeContainerState = RuntimeContainerState.EXITED
) -> RuntimeContainer:
    at = NOW + timedelta(seconds=attempt)
    return RuntimeContainer(
        f"{name}{attempt}", "box-0", name, attempt, "x", state, at, {POD_UID: "u"}
    )


def test_the_newest_dead_container_of_each_name_stays() -> None:
    dead = [
        build_container("a", 0),
        build_container("a", 1),
        build_container("b", 0),
        build_container("a", 2, RuntimeContainerState.RUNNING),
    ]
    assert [container.id for container in find_evictable_containers(dead, KNOWN)] == ["a0"]


def test_of_a_pod_that_is_gone_all_dead_containers_go() -> None:
    assert (
        len(find_evictable_containers([build_container("a", 0), build_container("b", 0)], GONE))
        == 2
    )


def test_a_container_that_was_never_started_goes_with_its_pod_only() -> None:
    """A kubelet that is killed between the two leaves one."""
    created = [build_container("a", attempt, RuntimeContainerState.CREATED) for attempt in (0, 1)]
    assert find_evictable_containers(created, KNOWN) == []
    assert len(find_evictable_containers(created, GONE)) == 2


def test_when_a_container_ends_the_one_before_it_goes() -> None:
    seen = replace(
        view(),
        containers=[
            container_view("main", "1", at=1),
            container_view("main", "1"),
            container_view("b", "0"),
        ],
    )
    assert len(find_deletable_containers(seen, "main-id", remove_all=False)) == 1
    assert len(find_deletable_containers(seen, "", remove_all=True)) == 3


def test_sandboxes_stay_while_they_are_the_newest_or_used() -> None:
    boxes = [sandbox(ready=False, attempt=0), sandbox(ready=False, attempt=1)]
    assert len(find_evictable_sandboxes(boxes, [], KNOWN)) == 1
    assert len(find_evictable_sandboxes(boxes, [], GONE)) == 2
    assert find_evictable_sandboxes(boxes, [build_container("a", 0)], GONE) == [boxes[1]]
    assert find_evictable_sandboxes([sandbox()], [], GONE) == []


def test_logs_go_with_their_pod(tmp_path: Path) -> None:
    for name in ("shop_web_u1", "other", "shop_web"):
        (tmp_path / name).mkdir()
    assert find_evictable_logs(tmp_path, KNOWN) == []
    assert [folder.name for folder in find_evictable_logs(tmp_path, GONE)] == ["shop_web_u1"]
    assert find_evictable_logs(tmp_path / "missing", GONE) == []
