from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from kcm import errors
from kcm.api.core_v1 import Node, Pod
from kcm.apimachinery.labels import Selector
from kcm.apimachinery.meta_v1 import ObjectMeta
from kcm.simulation.scripting import stages
from tests.unit.simulation.life import pod

HEAD = "apiVersion: simulation.kcm.dev/v1\nkind: Stages\n"


def build_pod(uid: str = "u", **labels: str) -> Pod:
    return pod().with_metadata(uid=uid, labels=labels)


def test_the_example_is_right_and_is_the_file_in_examples() -> None:
    parsed = stages.parse(stages.EXAMPLE)
    assert (len(parsed.pods), len(parsed.nodes)) == (4, 1)
    file = Path(__file__).parents[4] / "examples" / "02-nodes" / "stages.yaml"
    assert file.read_text() == stages.EXAMPLE


def test_a_pod_follows_the_entry_whose_selector_it_matches() -> None:
    parsed = stages.parse(stages.EXAMPLE)
    script = parsed.for_pod(build_pod(app="batch"))
    assert script.main.exit_codes == (1, 1, 0)
    assert script.named["prepare"].run_for == 2.0
    assert parsed.for_pod(pod()).main.outcome is None


def test_weights_are_kept_and_the_choice_is_the_same_each_time() -> None:
    parsed = stages.parse(stages.EXAMPLE)
    pods = [build_pod(uid=f"uid-{n}", app="worker") for n in range(2000)]
    chosen = [parsed.for_pod(p).main.outcome for p in pods]
    again = [parsed.for_pod(p).main.outcome for p in pods]
    assert chosen == again
    assert 140 < Counter(chosen)["crash"] < 260


def test_nodes_are_chosen_by_their_labels() -> None:
    parsed = stages.parse(stages.EXAMPLE)
    meta = ObjectMeta(name="n", labels={"topology.kubernetes.io/zone": "dark"})
    script = parsed.for_node(Node(metadata=meta))
    assert (sorted(script.states), script.after, script.lasts) == (["silent"], 10.0, 60.0)


@pytest.mark.parametrize(
    ("text", "where", "why"),
    [
        ("kind: Stages\n", "f.yaml: apiVersion", "must be"),
        (HEAD + "pod: []\n", "f.yaml.pod", "unknown field"),
        (HEAD + "pods: {}\nnodes: 1\n", "f.yaml: nodes", "must be a list"),
        (HEAD + "pods: [1]\n", "f.yaml: pods[0]", "must be a mapping"),
        (HEAD + "pods: [{outcome: boom}]\n", "f.yaml: pods[0].outcome", "is no outcome"),
        (HEAD + "pods: [{runFor: x}]\n", "f.yaml: pods[0].runFor", "must be a duration"),
        (HEAD + "pods: [{runfor: 1s}]\n", "f.yaml: pods[0].runfor", "unknown field"),
        (HEAD + "pods: [{weight: -1}]\n", "f.yaml: pods[0].weight", "whole number"),
        (HEAD + "pods: [{exitCodes: [a]}]\n", "f.yaml: pods[0].exitCodes", "numbers"),
        (HEAD + "pods: [{selector: {matchLabels: 1}}]\n", "pods[0].selector.matchLabels", "dict"),
        (
            HEAD + "pods: [{selector: {matchExpressions: [{key: a, operator: Near}]}}]\n",
            "f.yaml: pods[0].selector",
            "Near",
        ),
        (
            HEAD + "pods: [{containers: {a: {outcome: x}}}]\n",
            "f.yaml: pods[0].containers.a.outcome",
            "is no outcome",
        ),
        (HEAD + "nodes: [{state: odd}]\n", "f.yaml: nodes[0].state", "is no state"),
        (HEAD + "pods: [\n", "f.yaml", ""),
    ],
)
def test_a_wrong_file_is_refused_with_the_place_and_the_reason(
    text: str, where: str, why: str
) -> None:
    with pytest.raises(errors.ConfigurationError) as refused:
        stages.parse(text, "f.yaml")
    assert where in refused.value.message
    assert why in refused.value.message


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(errors.ConfigurationError, match=r"nope\.yaml cannot be read"):
        stages.load(tmp_path / "nope.yaml")


def test_an_entry_with_a_namespace_is_for_that_namespace_only() -> None:
    stage = stages.Stage("one", Selector.parse(""), namespace="a")
    assert stage.matches(build_pod().with_metadata(namespace="a"))
    assert not stage.matches(build_pod().with_metadata(namespace="b"))
    assert stages.Stage("all", Selector.parse("")).matches(build_pod())
