"""Writing statuses to the API: versions, batches, never backwards, only to the right pod."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any, cast

import pytest

from kcm import errors
from kcm.api.core_v1 import ContainerState, ContainerStatus, Pod, PodCondition, PodStatus
from kcm.api.core_v1.container_statuses import ContainerStateRunning, ContainerStateTerminated
from kcm.kubelet.pods.pod_manager import PodManager
from kcm.kubelet.status.manager import StatusManager
from kcm.store.objects import ObjectStore
from kcm.testing.clock import FakeClock
from tests.unit.kubelet.views import NOW, pod


class Api:
    """A store in memory, which counts batches and can be unavailable."""

    def __init__(self, *pods: Pod) -> None:
        self.pods = {stored.key: stored for stored in pods}
        self.pod_manager = PodManager()  # what a kubelet knows of the pods
        self.batches = 0
        self.away = False

    def get_all(self, wanted: Sequence[tuple[Any, str]]) -> list[Pod | None]:
        if self.away:
            raise errors.StoreUnavailable
        return [self.pods.get(key) for _, key in wanted]

    def build_update(self, new: Any, old: Any, **_: Any) -> Any:
        return None if new == old else _Item("update", new)

    def build_delete(self, old: Any, options: Any) -> Any:
        return _Item("delete", old)

    def write(self, items: Sequence[Any]) -> list[Any]:
        self.batches += bool(items)
        for item in items:
            if item.op == "delete":
                del self.pods[item.obj.key]
            else:
                self.pods[item.obj.key] = item.obj
        return [_Result(item.obj) for item in items]


class _Item:
    def __init__(self, op: str, obj: Pod) -> None:
        self.op, self.obj = op, obj


class _Result:
    ok, status = True, "ok"

    def __init__(self, obj: Pod) -> None:
        self._obj = obj

    def get_stored(self) -> Pod:
        return self._obj


def build_manager(*pods: Pod, running: Collection[str] = ()) -> tuple[Api, StatusManager]:
    api = Api(*pods)
    for one in pods:
        api.pod_manager.add(one)
    statuses = StatusManager(
        cast("ObjectStore", api),  # what is asked of it
        api.pod_manager,
        FakeClock(NOW),
        could_have_running_containers=lambda uid: uid in running,
    )
    return api, statuses


def build_ended_status(code: int) -> ContainerStatus:
    state = ContainerState(terminated=ContainerStateTerminated(exit_code=code))
    return ContainerStatus(name="main", state=state)


RUNS = ContainerStatus(name="main", state=ContainerState(running=ContainerStateRunning()))


def test_many_statuses_go_out_in_one_batch_and_once() -> None:
    pods = [pod(metadata={"name": f"p{n}", "uid": f"u{n}"}) for n in range(5)]
    api, statuses = build_manager(*pods)
    for one in pods:
        statuses.set(one, PodStatus(phase="Running"))
    assert statuses.sync_batch()
    assert api.batches == 1
    assert statuses.sync_batch()
    assert api.batches == 1
    assert {one.status.phase for one in api.pods.values()} == {"Running"}


def test_while_the_store_is_away_the_last_status_is_kept() -> None:
    asked = pod()
    api, statuses = build_manager(asked)
    api.away = True
    for phase in ("Pending", "Running"):
        statuses.set(asked, PodStatus(phase=phase))
        try:
            statuses.sync_batch()
        except errors.StoreUnavailable:
            continue
    api.away = False
    assert statuses.sync_batch()
    assert api.pods[asked.key].status.phase == "Running"
    assert api.batches == 1


def test_the_status_of_another_pod_of_the_same_name_is_not_touched() -> None:
    asked = pod()
    api, statuses = build_manager(asked)
    statuses.set(asked, PodStatus(phase="Running"))
    api.pods[asked.key] = asked.with_metadata(uid="another")
    assert statuses.sync_batch()
    assert api.batches == 0
    assert statuses.get(asked.uid or "") is None


def test_a_container_that_ended_for_good_does_not_run_again() -> None:
    asked = pod(policy="Never")
    _, statuses = build_manager(asked)
    statuses.set(asked, PodStatus(phase="Running", container_statuses=[build_ended_status(1)]))
    statuses.set(asked, PodStatus(phase="Running", container_statuses=[RUNS]))
    kept = statuses.last(asked).container_statuses
    assert kept == [build_ended_status(1)]


@pytest.mark.parametrize(
    ("policy", "sidecar", "before", "after", "dropped"),
    [
        ("Never", False, build_ended_status(1), RUNS, True),
        ("Never", False, build_ended_status(0), RUNS, True),
        ("OnFailure", False, build_ended_status(0), RUNS, True),
        ("OnFailure", False, build_ended_status(1), RUNS, False),
        ("Always", False, build_ended_status(0), RUNS, False),
        ("Never", True, build_ended_status(1), RUNS, False),
        ("Never", False, RUNS, build_ended_status(0), False),
    ],
)
def test_an_init_container_that_ended_for_good_does_not_run_again(
    policy: str, sidecar: bool, before: ContainerStatus, after: ContainerStatus, dropped: bool
) -> None:
    """TestCheckContainerStateTransition (status_manager_test.go)."""
    asked = pod("other", init="main*" if sidecar else "main", policy=policy)
    _, statuses = build_manager(asked)
    for status in (before, after):
        statuses.set(asked, PodStatus(phase="Running", init_container_statuses=[status]))
    assert statuses.last(asked).init_container_statuses == [before if dropped else after]


@pytest.mark.parametrize(
    ("ready", "expected"),
    [
        ({"one": True}, ("False", "False")),
        ({"one": True, "other": True}, ("True", "True")),
        ({"one": True, "other": True, "none": True}, ("True", "True")),
    ],
)
def test_a_containers_readiness_is_that_of_its_pod_at_once(
    ready: dict[str, bool], expected: tuple[str, str]
) -> None:
    """TestSetContainerReadiness (status_manager_test.go)."""
    asked = pod("one", "other")
    _, statuses = build_manager(asked)
    readiness = [
        RUNS.replace(name=name, container_id=f"process://{name}", ready=False)
        for name in ("one", "other")
    ]
    statuses.set(asked, PodStatus(phase="Running", container_statuses=readiness))

    def conditions() -> tuple[str, ...]:
        known = {one.type: one.status for one in statuses.last(asked).conditions or ()}
        return known.get("Ready", ""), known.get("ContainersReady", "")

    for name in ready:
        statuses.set_container_ready(asked.uid or "", name, True)
    assert conditions() == expected
    statuses.set_container_ready(asked.uid or "", "one", False)
    assert conditions() == ("False", "False")


def test_the_phase_is_not_final_while_containers_may_run() -> None:
    asked = pod(policy="Never", phase="Running")
    running = {asked.uid or ""}
    api, statuses = build_manager(asked, running=running)
    statuses.set(asked, PodStatus(phase="Succeeded", container_statuses=[build_ended_status(0)]))
    statuses.sync_batch()
    assert api.pods[asked.key].status.phase == "Running"
    running.clear()
    statuses.terminate(asked)
    statuses.sync_batch()
    assert api.pods[asked.key].status.phase == "Succeeded"


def test_a_deleted_pod_goes_only_when_nothing_is_left_of_it() -> None:
    asked = pod(deleting=NOW, phase="Running")
    api, statuses = build_manager(asked)
    statuses.set(asked, PodStatus(phase="Running", container_statuses=[RUNS]))
    statuses.sync_batch()
    assert asked.key in api.pods
    statuses.terminate(asked)
    statuses.sync_batch()
    assert asked.key not in api.pods


def test_what_is_lost_at_the_end_counts_as_failed() -> None:
    asked = pod(phase="Running")
    _, statuses = build_manager(asked)
    statuses.set(asked, PodStatus(phase="Running", container_statuses=[RUNS]))
    statuses.terminate(asked)
    last = statuses.last(asked)
    assert last.phase == "Failed"
    assert last.container_statuses is not None
    state = last.container_statuses[0].state
    assert state is not None
    assert state.terminated is not None
    assert state.terminated.exit_code == 137


def test_conditions_of_others_and_times_of_transitions_are_kept() -> None:
    gate = PodCondition(type="example.com/gate", status="True")
    ready = PodCondition(type="Ready", status="True", last_transition_time=NOW)
    asked = pod(status={"conditions": [gate, ready]})
    api, statuses = build_manager(asked)
    again = PodCondition(type="Ready", status="True")
    statuses.set(asked, PodStatus(phase="Running", conditions=[again]))
    statuses.sync_batch()
    assert api.pods[asked.key].status.conditions == [gate, ready]


def test_what_others_wrote_over_a_status_is_put_right() -> None:
    asked = pod()
    api, statuses = build_manager(asked)
    statuses.set(asked, PodStatus(phase="Running"))
    statuses.sync_batch()
    wrong = api.pods[asked.key].with_status(PodStatus(phase="Pending"))
    api.pods[asked.key] = wrong
    api.pod_manager.update(wrong)
    assert statuses.sync_batch(compare=True)
    assert api.pods[asked.key].status.phase == "Running"


def test_one_can_wait_until_all_statuses_are_written() -> None:
    asked = pod()
    api, statuses = build_manager(asked)
    statuses.set(asked, PodStatus(phase="Running"))
    assert not statuses.wait_until_written(0)
    api.away = True
    with pytest.raises(errors.StoreUnavailable):
        statuses.sync_batch()
    assert not statuses.wait_until_written(0)
    api.away = False
    statuses.sync_batch()
    assert statuses.wait_until_written(0)
