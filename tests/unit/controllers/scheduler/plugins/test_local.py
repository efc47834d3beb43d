"""Filters and scores of single nodes, plugin by plugin."""

from __future__ import annotations

from typing import Any

import pytest

from kcm.api.core_v1 import ContainerPort, Taint, Toleration, Volume
from kcm.api.core_v1.volume_sources import ImageVolumeSource
from kcm.controllers.scheduler.nodeinfo import NodeInfo
from kcm.controllers.scheduler.plugins.local import (
    WantedImages,
    list_images,
    normalize_image,
    score_balanced_allocation,
    score_images,
    score_least_allocated,
)
from kcm.controllers.scheduler.resources import PodRequests
from kcm.controllers.scheduler.status import UNRESOLVABLE, UNSCHEDULABLE
from tests.unit.controllers.scheduler.world import (
    Scene,
    build_container,
    node,
    pod,
    quantities,
    taint,
)

REFUSED = "node(s) had untolerated taint(s)"
MISMATCH = ("node(s) didn't match Pod's node affinity/selector",)


def refusal(where: Any, what: Any, *others: Any) -> tuple[str, ...]:
    return Scene(where, *others).refusals(what).get(where.name, ())


class TestNodeUnschedulable:
    def test_refuses_a_cordoned_node(self) -> None:
        assert refusal(node("n", unschedulable=True), pod()) == ("node(s) were unschedulable",)

    def test_lets_a_pod_on_that_tolerates_it(self) -> None:
        toleration = Toleration(key="node.kubernetes.io/unschedulable", operator="Exists")
        assert refusal(node("n", unschedulable=True), pod(tolerations=[toleration])) == ()


class TestTaintToleration:
    @pytest.mark.parametrize(
        ("toleration", "taints", "refused"),
        [
            (None, [], False),
            (None, [taint()], True),
            (None, [taint(effect="NoExecute")], True),
            (None, [taint(effect="PreferNoSchedule")], False),
            (Toleration(key="k", value="v", effect="NoSchedule"), [taint()], False),
            (Toleration(key="k", operator="Equal", value="v"), [taint()], False),
            (Toleration(key="k", operator="Equal", value="w"), [taint()], True),
            (Toleration(key="k", operator="Exists"), [taint()], False),
            (Toleration(operator="Exists"), [taint()], False),
            (Toleration(key="j", operator="Exists"), [taint()], True),
            (Toleration(key="k", operator="Exists", effect="NoExecute"), [taint()], True),
        ],
    )
    def test_wants_every_hard_taint_tolerated(
        self, toleration: Toleration | None, taints: list[Taint], refused: bool
    ) -> None:
        what = pod(tolerations=[toleration] if toleration else [])
        assert refusal(node("n", taints=taints), what) == ((REFUSED,) if refused else ())

    def test_scores_nodes_by_the_taints_that_would_rather_not(self) -> None:
        soft = [taint("a", effect="PreferNoSchedule"), taint("b", effect="PreferNoSchedule")]
        scores = Scene(node("n0"), node("n1", taints=soft[:1]), node("n2", taints=soft)).scores(
            pod()
        )
        assert scores["n0"] - scores["n2"] == 300
        assert scores["n0"] - scores["n1"] == 150


def build_node_affinity(*terms: dict[str, Any]) -> dict[str, Any]:
    return {
        "nodeAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": list(terms)}
        }
    }


def expression(key: str, operator: str, *values: str) -> dict[str, Any]:
    return {"matchExpressions": [{"key": key, "operator": operator, "values": list(values)}]}


class TestNodeAffinity:
    @pytest.mark.parametrize(
        ("affinity", "fits"),
        [
            (build_node_affinity(expression("zone", "In", "a", "b")), True),
            (build_node_affinity(expression("zone", "In", "b")), False),
            (build_node_affinity(expression("zone", "NotIn", "b")), True),
            (build_node_affinity(expression("other", "NotIn", "b")), True),
            (build_node_affinity(expression("zone", "Exists")), True),
            (build_node_affinity(expression("other", "Exists")), False),
            (build_node_affinity(expression("other", "DoesNotExist")), True),
            (build_node_affinity(expression("size", "Gt", "4")), True),
            (build_node_affinity(expression("size", "Gt", "5")), False),
            (build_node_affinity(expression("size", "Lt", "6")), True),
            (build_node_affinity(expression("zone", "Gt", "4")), False),
            (
                build_node_affinity(expression("zone", "In", "b"), expression("size", "In", "5")),
                True,
            ),
            (build_node_affinity(), False),
            (build_node_affinity({}), False),
            (build_node_affinity({"matchExpressions": []}), False),
        ],
    )
    def test_matches_labels(self, affinity: dict[str, Any], fits: bool) -> None:
        where = node("n", labels={"zone": "a", "size": "5"})
        assert refusal(where, pod(affinity=affinity)) == (() if fits else MISMATCH)

    def test_wants_the_node_selector_and_the_affinity(self) -> None:
        where = node("n", labels={"zone": "a"})
        affinity = build_node_affinity(expression("zone", "In", "a"))
        both = pod(affinity=affinity, node_selector={"zone": "b"})
        assert refusal(where, pod(node_selector={"zone": "a"})) == ()
        assert refusal(where, both) == MISMATCH

    def test_a_pod_that_names_its_node_is_not_tried_elsewhere(self) -> None:
        fields = [{"key": "metadata.name", "operator": "In", "values": ["n2"]}]
        what = pod(affinity=build_node_affinity({"matchFields": fields}), cpu="8")
        scene = Scene(node("n1", cpu="16"), node("n2"))
        assert scene.why(what) == (
            "0/2 nodes are available: 1 Insufficient cpu, "
            "1 node(s) didn't satisfy plugin(s) [NodeAffinity]."
        )

    def test_preferences_count_by_weight_of_the_best(self) -> None:
        wishes = [
            {"weight": 10, "preference": expression("a", "Exists")},
            {"weight": 40, "preference": expression("b", "Exists")},
            {"weight": 50, "preference": {}},
        ]
        affinity = {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": wishes}}
        scene = Scene(
            node("n0"), node("na", labels={"a": ""}), node("nb", labels={"a": "", "b": ""})
        )
        scores = scene.scores(pod(affinity=affinity))
        assert scores["nb"] - scores["n0"] == 200
        assert scores["na"] - scores["n0"] == 40


class TestNodePorts:
    @pytest.mark.parametrize(
        ("mine", "theirs", "fits"),
        [
            (("", "TCP", 80), ("", "TCP", 81), True),
            (("", "TCP", 80), ("", "TCP", 80), False),
            (("", "TCP", 80), ("", "UDP", 80), True),
            (("127.0.0.1", "TCP", 80), ("127.0.0.2", "TCP", 80), True),
            (("127.0.0.1", "TCP", 80), ("127.0.0.1", "TCP", 80), False),
            (("127.0.0.1", "TCP", 80), ("0.0.0.0", "TCP", 80), False),
            (("0.0.0.0", "TCP", 80), ("127.0.0.1", "TCP", 80), False),
        ],
    )
    def test_a_port_is_taken_once(
        self, mine: tuple[str, str, int], theirs: tuple[str, str, int], fits: bool
    ) -> None:
        def build_pod_with_port(name: str, port: tuple[str, str, int], **fields: Any) -> Any:
            ip, protocol, number = port
            wanted = ContainerPort(
                container_port=number, host_port=number, protocol=protocol, host_ip=ip or None
            )
            return pod(name, containers=[build_container().replace(ports=[wanted])], **fields)

        why = "node(s) didn't have free ports for the requested pod ports"
        reasons = refusal(
            node("n"), build_pod_with_port("a", mine), build_pod_with_port("b", theirs, node="n")
        )
        assert reasons == (() if fits else (why,))


class TestNodeResourcesFit:
    def test_what_is_asked_must_be_left(self) -> None:
        where = node("n", cpu="4", memory="10")
        there = pod("b", node="n", containers=[build_container(cpu="3", memory="6")])
        assert refusal(where, pod(containers=[build_container(cpu="1", memory="4")]), there) == ()
        assert refusal(
            where, pod(containers=[build_container(cpu="1001m", memory="5")]), there
        ) == (
            "Insufficient cpu",
            "Insufficient memory",
        )

    def test_pods_count_even_if_they_ask_for_nothing(self) -> None:
        where = node("n", pods=1)
        assert refusal(where, pod()) == ()
        assert refusal(where, pod(), pod("b", node="n")) == ("Too many pods",)

    def test_a_pod_that_asks_for_nothing_goes_to_a_node_that_is_full(self) -> None:
        there = pod("b", node="n", cpu="4")
        assert refusal(node("n"), pod(), there) == ()

    def test_extended_resources_and_ephemeral_storage_count(self) -> None:
        room = quantities(
            {"cpu": 4, "memory": 1, "pods": 9, "nvidia.com/gpu": 2, "ephemeral-storage": 5}
        )
        where = node("n", status={"capacity": room, "allocatable": room})
        there = pod("b", node="n", containers=[build_container(nvidia=1)])
        assert refusal(where, pod(containers=[build_container(nvidia=1)]), there) == ()
        assert refusal(where, pod(containers=[build_container(nvidia=2)]), there) == (
            "Insufficient nvidia.com/gpu",
        )
        requests: dict[str, Any] = {"ephemeral-storage": 6, "example.com/x": 1}
        asks = build_container(**requests)
        assert refusal(where, pod(containers=[asks]), there) == (
            "Insufficient ephemeral-storage",
            "Insufficient example.com/x",
        )

    def test_terminated_pods_take_nothing(self) -> None:
        there = pod("b", node="n", cpu="4", phase="Succeeded")
        assert refusal(node("n"), pod(cpu="4"), there) == ()

    def test_preemption_is_hopeless_where_the_whole_node_is_too_small(self) -> None:
        scene = Scene(node("n"), pod("b", node="n", cpu="4"))
        assert scene.codes(pod("x", cpu="2")) == {"n": UNSCHEDULABLE}
        assert scene.codes(pod("y", cpu="5")) == {"n": UNRESOLVABLE}


def requests(cpu: int, memory: int) -> PodRequests:
    return PodRequests(cpu, memory, 0, (), cpu, memory)


def build_node_info(cpu: int, memory: int, used_cpu: int = 0, used_memory: int = 0) -> NodeInfo:
    info = NodeInfo("n")
    info.cpu, info.memory = cpu, memory
    info.used_cpu = info.scoring_cpu = used_cpu
    info.used_memory = info.scoring_memory = used_memory
    return info


class TestResourceScores:
    """The expected scores are those of upstream's own tests for these plugins."""

    @pytest.mark.parametrize(
        ("asked", "info", "score"),
        [
            ((3000, 5000), (4000, 10000), 37),
            ((3000, 5000), (6000, 10000), 50),
            ((0, 0), (10000, 20000, 6000, 5000), 57),
            ((3000, 5000), (10000, 20000, 3000, 5000), 45),
            ((6000, 0), (4000, 10000), 50),
        ],
    )
    def test_least_allocated(
        self, asked: tuple[int, int], info: tuple[int, ...], score: int
    ) -> None:
        assert score_least_allocated(requests(*asked), build_node_info(*info)) == score

    @pytest.mark.parametrize(
        ("asked", "info", "score"),
        [
            ((3000, 5000), (4000, 10000), 68),
            ((3000, 5000), (6000, 10000), 75),
            ((3000, 5000), (10000, 20000, 3000, 5000), 74),
            ((3000, 5000), (10000, 50000, 3000, 5000), 70),
            ((3000, 0), (6000, 10000, 0, 5000), 87),  # it brings both to one half
            ((3000, 5000), (0, 0), 75),
        ],
    )
    def test_balanced_allocation(
        self, asked: tuple[int, int], info: tuple[int, ...], score: int
    ) -> None:
        assert score_balanced_allocation(requests(*asked), build_node_info(*info)) == score


class TestImageLocality:
    def test_names_get_a_tag(self) -> None:
        assert normalize_image("nginx") == "nginx:latest"
        assert normalize_image("nginx:1") == "nginx:1"
        assert normalize_image("host:5000/nginx") == "host:5000/nginx:latest"

    def test_large_images_that_many_nodes_have_count_most(self) -> None:
        info = NodeInfo("n")
        mega = 1024 * 1024
        info.images = {"a:1": 250 * mega, "b:1": 10 * mega}
        assert score_images(WantedImages(("a:1",), 1), info, {"a:1": 1}, 1) == 23
        assert score_images(WantedImages(("a:1",), 1), info, {"a:1": 1}, 2) == 10
        assert score_images(WantedImages(("b:1",), 1), info, {"b:1": 1}, 1) == 0
        assert score_images(WantedImages(("c:1",), 1), info, {}, 1) == 0

    def test_a_node_that_has_the_image_is_preferred(self) -> None:
        images = [{"names": ["big:1"], "sizeBytes": 800 * 1024 * 1024}]
        scene = Scene(node("n1"), node("n2", status={"images": images}))
        what = pod(containers=[build_container(image="big:1")])
        assert list_images(what) == (("big:1",), 1)
        assert scene.place(what) == "n2"

    def test_images_of_volumes_count_as_well(self) -> None:
        images = [{"names": ["data:latest"], "sizeBytes": 800 * 1024 * 1024}]
        scene = Scene(node("n1"), node("n2", status={"images": images}))
        volume = Volume(name="data", image=ImageVolumeSource(reference="data"))
        assert scene.place(pod("x", volumes=[volume])) == "n2"
