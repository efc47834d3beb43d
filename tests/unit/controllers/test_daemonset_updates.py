"""Tests how many pods each sync of a DaemonSet's update creates and deletes."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from kcm.api.apps_v1 import DaemonSet, DaemonSetSpec
from kcm.api.core_v1 import Pod, Toleration
from kcm.controllers.daemonset import DaemonSetController
from kcm.controllers.daemonset.daemons import max_surge, max_unavailable
from kcm.controllers.daemonset.placement import node_of
from kcm.helpers.history import REVISION_HASH
from kcm.helpers.pods import is_ready
from kcm.kinds.defaults import apply
from kcm.reconcile.plan import Create, Delete
from kcm.testing import builders
from kcm.testing.views import FakeView
from kcm.testing.world import World
from tests.set_builders import daemon_set, pods_of, template
from tests.unit.controllers.daemonsets import LABELS, build_rolling_update, taint

CONTROL_PLANE = "node-role.kubernetes.io/control-plane"


class Rollout:
    """A DaemonSet in a World whose pods become ready only when a test calls `mark`."""

    def __init__(self, nodes: int, **spec: Any) -> None:
        owner = daemon_set(**spec)
        self.key = owner.key
        names = [f"node-{number:03}" for number in range(nodes)]
        self.world = World(owner, *map(builders.node, names))

    def change(self, image: str | None = None, **spec: Any) -> None:
        obj = self.world.objects["daemonsets.apps", self.key]
        assert isinstance(obj, DaemonSet)
        if image is not None:
            spec["template"] = template(LABELS, image)
        changed: DaemonSetSpec = obj.spec.replace(**spec)
        self.world.put(apply(obj.with_spec(changed)))

    def sync(self) -> tuple[int, int]:
        """Syncs once, and returns how many pods were created and deleted. Deleted pods vanish at
        once.
        """
        view = FakeView(*self.world.objects.values(), now=self.world.now)
        plan = DaemonSetController().reconcile(self.key, view)
        self.world.carry_out(plan)
        for pod in self.pods():
            if pod.deleting and not pod.metadata.finalizers:
                self.world.remove(self.world.objects["pods", pod.key])
            elif not pod.deleting and not pod.spec.node_name:
                self.world.put(pod.with_spec(pod.spec.replace(node_name=node_of(pod))))
        created = [w for w in plan.writes if isinstance(w, Create) and isinstance(w.obj, Pod)]
        deleted = [w for w in plan.writes if isinstance(w, Delete) and isinstance(w.old, Pod)]
        return len(created), len(deleted)

    def settle(self) -> tuple[int, int]:
        """Syncs until nothing changes, and returns how many pods were created and deleted.

        Upstream's tests count both in one sync, because their fake cache shows deletions at once.
        In a cluster, and here, the update continues in the next sync.
        """
        created, deleted = 0, 0
        while (counts := self.sync()) != (0, 0):
            created, deleted = created + counts[0], deleted + counts[1]
        return created, deleted

    def pods(self) -> list[Pod]:
        return pods_of(self.world)

    def mark(
        self,
        ready: bool = True,
        count: int | None = None,
        which: Callable[[Pod], bool] = lambda pod: True,
    ) -> None:
        """Makes up to `count` pods that are not so yet ready, or unready; `which` selects among
        them.
        """
        others = [pod for pod in self.pods() if is_ready(pod) is not ready and which(pod)]
        for pod in others[:count]:
            condition = builders.condition("Ready", str(ready), since=self.world.now)
            status = pod.status.replace(phase="Running", conditions=[condition])
            self.world.put(pod.with_status(status))

    def hash_of_newest(self) -> str:
        return max(self.pods(), key=lambda pod: pod.name).labels[REVISION_HASH]


def start_rollout(nodes: int, *, ready: bool = True, **spec: Any) -> Rollout:
    rollout = Rollout(nodes, **spec)
    assert rollout.sync() == (nodes, 0)
    if ready:
        rollout.mark()
    return rollout


READY = "ready"  # in the tables: all pods get ready
Steps = list[tuple[int, int] | str]


@pytest.mark.parametrize(
    ("nodes", "ready", "update", "steps"),
    [
        pytest.param(
            5,
            True,
            build_rolling_update(2),
            [(0, 2), (2, 0), READY, (0, 2), (2, 0), READY, (0, 1), (1, 0), READY, (0, 0)],
            id="TestDaemonSetUpdatesPods",
        ),
        pytest.param(
            5,
            True,
            build_rolling_update(3),
            [(0, 3), (3, 0), (0, 0)],
            id="TestDaemonSetUpdatesWhenNewPodIsNotReady",
        ),
        pytest.param(
            5,
            True,
            build_rolling_update(2),
            [(0, 2), (2, 0), (0, 0), "next:3", (0, 2), (2, 0), (0, 0)],
            id="TestDaemonSetUpdatesSomeOldPodsNotReady",
        ),
        pytest.param(
            3,
            True,
            build_rolling_update(1),
            [(0, 1), (1, 0), (0, 0), "bad:3", (0, 1), (1, 0), (0, 0), "bad:4", (0, 1), (1, 0)],
            id="three bad templates in a row (issue 123232)",
        ),
        pytest.param(
            5,
            False,
            build_rolling_update(3),
            [(0, 5), (5, 0), (0, 0)],
            id="TestDaemonSetUpdatesAllOldPodsNotReady",
        ),
    ],
)
def test_an_update_goes_by_these_steps(
    nodes: int, ready: bool, update: dict[str, Any], steps: Steps
) -> None:
    """The cases are upstream's functions of these names in pkg/controller/daemon/update_test.go."""
    rollout = start_rollout(nodes, ready=ready)
    rollout.change("foo2/bar2", **update)
    done: Steps = []
    for step in steps:
        if step == READY:
            rollout.mark()
        elif isinstance(step, str):
            rollout.change(step)
        done.append(step if isinstance(step, str) else rollout.sync())
    assert done == steps


def test_a_template_that_does_not_change_changes_no_pods() -> None:
    """Upstream's TestDaemonSetUpdatesNoTemplateChanged."""
    rollout = start_rollout(5)
    rollout.change(**build_rolling_update(3))
    assert rollout.sync() == (0, 0)


def test_pods_of_nodes_that_no_longer_fit_cost_no_surge() -> None:
    """Upstream's TestDaemonSetUpdatesPodsNotMatchTainstWithMaxSurge."""
    tolerant = template(LABELS, tolerations=[Toleration(key=CONTROL_PLANE, operator="Exists")])
    rollout = Rollout(5, template=tolerant, **build_rolling_update(0, 1))
    rollout.world.put(builders.node("node-000", taints=[taint("NoSchedule", CONTROL_PLANE)]))
    assert rollout.sync() == (5, 0)
    rollout.mark()
    rollout.change(template=template(LABELS))
    done = []
    for _ in range(5):
        done.append(rollout.settle())
        rollout.mark()
    assert done == [(1, 1), (1, 1), (1, 1), (1, 1), (0, 1)]


def test_with_a_surge_new_pods_come_first() -> None:
    """Upstream's TestDaemonSetUpdatesPodsWithMaxSurge."""
    rollout = start_rollout(5)
    rollout.change("foo2/bar2", **build_rolling_update(0, 2))
    done = []
    for _ in range(4):
        done.append(rollout.settle())
        rollout.mark()
    assert done == [(2, 0), (2, 2), (1, 2), (0, 1)]


@pytest.mark.parametrize(
    ("unfit", "ready", "expected"),
    [
        pytest.param(1, True, (0, 1), id="the only node, and its pod, go at once"),
        pytest.param(4, True, (0, 4), id="several go together"),
        pytest.param(4, False, (0, 4), id="those that are not available, too"),
    ],
)
def test_where_no_node_fits_any_more_all_pods_go(
    unfit: int, ready: bool, expected: tuple[int, int]
) -> None:
    rollout = start_rollout(unfit, ready=ready, **build_rolling_update(0, 1))
    for name in [name for kind, name in rollout.world.objects if kind == "nodes"]:
        rollout.world.put(builders.node(name, taints=[taint("NoSchedule")]))
    rollout.change("foo2/bar2")
    assert rollout.sync() == expected


def test_the_last_available_pod_of_an_unfit_node_stays_until_another_is_available() -> None:
    rollout = start_rollout(1, **build_rolling_update(0, 1))
    rollout.world.put(builders.node("node-000", taints=[taint("NoSchedule")]))
    rollout.world.put(builders.node("node-001"))
    rollout.change("foo2/bar2")
    assert rollout.sync() == (1, 0)
    assert rollout.sync() == (0, 0)
    rollout.mark()
    assert rollout.sync() == (0, 1)


def test_healthy_pods_survive_one_bad_update_after_the_other() -> None:
    """Upstream's TestDaemonSetUpdatesSaveOldHealthyPods."""
    rollout = start_rollout(20)
    rollout.change("foo2/bar2", **build_rolling_update(10))
    assert [rollout.sync() for _ in range(3)] == [(0, 10), (10, 0), (0, 0)]
    healthy = {pod.name for pod in rollout.pods() if is_ready(pod)}
    for bound in range(10):
        rollout.change(f"foo2/bar3-{bound}", **build_rolling_update(bound))
        assert [rollout.sync() for _ in range(3)] == [(0, 10), (10, 0), (0, 0)]
        assert {pod.name for pod in rollout.pods() if is_ready(pod)} == healthy
    rollout.change("foo2/bar4", **build_rolling_update(11))
    assert [rollout.sync() for _ in range(3)] == [(0, 11), (11, 0), (0, 0)]
    assert sum(map(is_ready, rollout.pods())) == 9


def test_old_pods_that_are_not_ready_go_though_many_new_ones_are_not_either() -> None:
    """Upstream's TestDaemonSetUpdatesAllOldNotReadyPodsAndNewNotReadyPods."""
    rollout = start_rollout(100)
    before = rollout.hash_of_newest()
    rollout.change("foo2/bar2", **build_rolling_update(10))
    for _ in range(10):
        assert [rollout.sync(), rollout.sync()] == [(0, 10), (10, 0)]
        rollout.mark()
    assert rollout.sync() == (0, 0)
    pods = rollout.pods()
    unready = {pod.name for pod in pods[10:]}
    rollout.mark(ready=False, which=lambda pod: pod.name in unready)
    for pod in rollout.pods()[:12]:
        rollout.world.put(pod.with_metadata(labels={**pod.labels, REVISION_HASH: before}))
    assert [rollout.sync() for _ in range(3)] == [(0, 2), (2, 0), (0, 0)]
    assert not {pod.name for pod in pods[10:12]} & {pod.name for pod in rollout.pods()}


def test_a_surge_replaces_old_pods_that_are_not_ready_at_once() -> None:
    """Upstream's TestDaemonSetUpdatesAllOldPodsNotReadyMaxSurge."""
    rollout = start_rollout(5, ready=False)
    rollout.change("foo2/bar2", **build_rolling_update(0, 3))
    assert [rollout.sync(), rollout.sync()] == [(5, 0), (0, 5)]
    rollout.mark()
    rollout.world.now += timedelta(seconds=100)
    rollout.change("foo3/bar3", min_ready_seconds=15)
    assert rollout.sync() == (3, 0)
    newest = next(p.labels[REVISION_HASH] for p in rollout.pods() if not is_ready(p))
    rollout.mark(count=2, which=lambda pod: pod.labels[REVISION_HASH] == newest)
    served = {node_of(p) for p in rollout.pods() if p.labels[REVISION_HASH] == newest}
    rollout.mark(ready=False, count=1, which=lambda pod: node_of(pod) not in served)
    done = []
    for seconds in (10, 10, 20, 10):
        rollout.world.now += timedelta(seconds=seconds)
        done.append(rollout.settle())
        if len(done) == 2:  # all new pods are ready from here on
            rollout.mark(which=lambda pod: pod.labels[REVISION_HASH] == newest)
    # Upstream's second round deletes three: the pod that is replaced at 310 goes a sync later.
    assert done == [(1, 1), (1, 2), (0, 2), (0, 0)]


@pytest.mark.parametrize(
    ("nodes", "update", "surge", "unavailable"),
    [
        pytest.param(2, build_rolling_update(1), 0, 1, id="Two nodes with ready pods"),
        pytest.param(2, build_rolling_update(0), 0, 1, id="Two nodes, one node without pods"),
        pytest.param(
            2, build_rolling_update(0, 0), 0, 1, id="Two nodes, one node without pods, surge"
        ),
        pytest.param(
            2,
            build_rolling_update("50%"),
            0,
            1,
            id="Two nodes with pods, MaxUnavailable in percents",
        ),
        pytest.param(
            2, build_rolling_update(0, "50%"), 1, 0, id="MaxUnavailable in percents, surge"
        ),
        pytest.param(2, build_rolling_update(0, "100%"), 2, 0, id="MaxUnavailable is 100%, surge"),
        pytest.param(3, build_rolling_update("50%"), 0, 2, id="in percents, pod terminating"),
    ],
)
def test_bounds_come_of_the_number_of_nodes(
    nodes: int, update: dict[str, Any], surge: int, unavailable: int
) -> None:
    """Upstream's TestGetUnavailableNumbers."""
    owner = daemon_set(**update)
    assert (max_surge(owner, nodes), max_unavailable(owner, nodes)) == (surge, unavailable)


@pytest.mark.parametrize(
    ("phase", "deleted", "replaced", "surged"),
    [
        pytest.param("Succeeded", False, (0, 1), (1, 1), id="succeeded"),
        pytest.param("Failed", False, (0, 1), (1, 1), id="failed"),
        pytest.param("Succeeded", True, (1, 0), (1, 0), id="succeeded, kept by a finalizer"),
        pytest.param("Failed", True, (1, 0), (1, 0), id="failed, kept by a finalizer"),
        pytest.param("Running", True, (0, 0), (1, 0), id="still ending"),
    ],
)
def test_a_pod_that_has_ended_blocks_its_node_only_until_it_is_deleted(
    phase: str, deleted: bool, replaced: tuple[int, int], surged: tuple[int, int]
) -> None:
    """Upstream's TestGetNodesToDaemonPods: terminal pods that are being deleted count for no
    node.
    """
    for update, expected in (
        (build_rolling_update(1), replaced),
        (build_rolling_update(0, 1), surged),
    ):
        rollout = start_rollout(1, **update)
        (pod,) = rollout.pods()
        stamp = rollout.world.now if deleted else None
        kept = pod.with_metadata(deletion_timestamp=stamp, finalizers=["example.com/hold"])
        rollout.world.put(kept.with_status(pod.status.replace(phase=phase)))
        assert rollout.sync() == expected
