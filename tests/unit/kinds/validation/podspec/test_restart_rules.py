"""Restart policies of containers, and rules by exit code."""

from typing import Any

import pytest

from tests.unit.kinds.validation.podspec.faults import of_container, of_spec

CODES = {"operator": "In", "values": [42]}
RULE = {"action": "Restart", "exitCodes": CODES}


# TestValidateContainerRestartPolicy (validation_test.go)
@pytest.mark.parametrize(
    ("fields", "faults"),
    [
        ({"restartPolicy": "Always"}, []),
        ({"restartPolicy": "Never", "restartPolicyRules": [RULE]}, []),
        ({"restartPolicy": "Never",
          "restartPolicyRules": [{"action": "RestartAllContainers", "exitCodes": CODES}]}, []),
        ({"restartPolicy": "Sometimes"},
         ['restartPolicy: Unsupported value: "Sometimes": supported values: "Always", "Never", '
          '"OnFailure"']),
        ({"restartPolicyRules": [RULE]},
         ["restartPolicy: Required value: must specify restartPolicy when restart rules are used"]),
        ({"restartPolicy": "Never", "restartPolicyRules": [RULE] * 21},
         ["restartPolicyRules: Too many: 21: must have at most 20 items"]),
        ({"restartPolicy": "Never", "restartPolicyRules": [{"action": "Stop"}]},
         ['restartPolicyRules[0].action: Unsupported value: "Stop": supported values: "Restart", '
          '"RestartAllContainers"',
          "restartPolicyRules[0].exitCodes: Required value: must be specified"]),
        ({"restartPolicy": "Never", "restartPolicyRules": [
            {"action": "Restart", "exitCodes": {"operator": "Is", "values": [*range(256)]}}]},
         ['restartPolicyRules[0].exitCodes.operator: Unsupported value: "Is": supported values: '
          '"In", "NotIn"',
          "restartPolicyRules[0].exitCodes.values: Too many: 256: must have at most 255 items"]),
    ],
)  # fmt: skip
def test_a_policy_and_its_rules_are_checked_in_upstreams_words(
    fields: dict[str, Any], faults: list[str]
) -> None:
    assert of_container(**fields) == faults


def test_init_containers_may_have_any_policy() -> None:
    init = {"name": "i", "image": "i", "restartPolicy": "Never", "restartPolicyRules": [RULE]}
    assert of_spec(initContainers=[init]) == []
