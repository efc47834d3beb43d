"""Which containers are removed, and in which order, before all start again."""

from __future__ import annotations

from kcm.api.core_v1 import Container
from kcm.kubelet.kuberuntime.resetting import list_resets
from tests.unit.kubelet.views import pod, view

RULE = {"action": "RestartAllContainers", "exitCodes": {"operator": "In", "values": [42]}}


def test_those_that_asked_for_it_are_removed_last() -> None:
    asked = pod("a", "b", init="i s*", policy="Never")
    inits = asked.spec.init_containers or []
    ruled = [
        Container.model_validate(
            {"name": name, "restartPolicy": "Never", "restartPolicyRules": [RULE]}
        )
        for name in ("a", "i")
    ]
    spec = asked.spec.replace(
        containers=[ruled[0], asked.spec.containers[1]], init_containers=[ruled[1], inits[1]]
    )
    seen = view("a=42 b=running b=0 i=42 i=0 s=running other=running")
    names = [attempt.name for attempt in list_resets(asked.with_spec(spec), seen)]
    assert names == ["b", "b", "i", "s", "a", "i"]
