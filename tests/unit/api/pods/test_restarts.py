"""Whether ended containers start again."""

from typing import Any

import pytest

from kcm.api import codec
from kcm.api.core_v1 import Pod, PodSpec
from kcm.api.pods.restarts import may_restart_all, restarts_after


def build_spec(policy: str, **container: Any) -> PodSpec:
    spec = {"restartPolicy": policy, "containers": [{"name": "c", **container}]}
    return codec.decode({"spec": spec}, Pod.resource).spec


def rule(operator: str, action: str = "Restart") -> dict[str, Any]:
    return {"action": action, "exitCodes": {"operator": operator, "values": [42]}}


# TestContainerShouldRestart (pkg/api/v1/pod/util_test.go)
@pytest.mark.parametrize(
    ("of_pod", "container", "codes"),
    [
        ("Always", {}, {0, 1, 42}),
        ("OnFailure", {}, {1, 42}),
        ("Never", {}, set()),
        ("Never", {"restartPolicy": "Always"}, {0, 1, 42}),
        ("Always", {"restartPolicy": "Never"}, set()),
        ("Always", {"restartPolicy": "OnFailure"}, {1, 42}),
        ("Always", {"restartPolicy": "Never", "restartPolicyRules": [rule("In")]}, {42}),
        ("Always", {"restartPolicy": "Never", "restartPolicyRules": [rule("NotIn")]}, {0, 1}),
    ],
)
def test_rules_go_before_the_containers_policy_and_that_before_the_pods(
    of_pod: str, container: dict[str, Any], codes: set[int]
) -> None:
    spec = build_spec(of_pod, **container)
    assert {code for code in (0, 1, 42) if restarts_after(spec.containers[0], spec, code)} == codes


def test_one_rule_may_restart_all_containers() -> None:
    every = rule("In", "RestartAllContainers")
    assert may_restart_all(build_spec("Never", restartPolicy="Never", restartPolicyRules=[every]))
    assert not may_restart_all(
        build_spec("Never", restartPolicy="Never", restartPolicyRules=[rule("In")])
    )
