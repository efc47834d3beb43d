"""matchLabelKeys and mismatchLabelKeys of new pods, after upstream's TestMutatePodAffinity and
TestMutateTopologySpreadConstraints."""

from __future__ import annotations

from typing import Any

from kcm.api import codec
from kcm.api.core_v1 import Pod
from kcm.api.scheme import BUILT_IN
from kcm.store.strategies.pod_selectors import with_label_keys

SELECTOR = {"matchLabels": {"app": "web"}}
KEYS = {"matchLabelKeys": ["zone", "absent"], "mismatchLabelKeys": ["team"]}
ADDED = [
    {"key": "zone", "operator": "In", "values": ["a"]},
    {"key": "team", "operator": "NotIn", "values": ["b"]},
]


def merged(**spec: Any) -> Any:
    body = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "p", "labels": {"zone": "a", "team": "b"}},
        "spec": {"containers": [{"name": "c"}], **spec},
    }
    pod = codec.decode(body, BUILT_IN)
    assert isinstance(pod, Pod)
    return codec.to_dict(with_label_keys(pod))["spec"]


def test_keys_of_affinity_become_requirements() -> None:
    term = {"topologyKey": "t", "labelSelector": SELECTOR, **KEYS}
    sides = {
        "requiredDuringSchedulingIgnoredDuringExecution": [term],
        "preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 1, "podAffinityTerm": term}],
    }
    affinity = merged(affinity={"podAffinity": sides, "podAntiAffinity": sides})["affinity"]
    for side in affinity.values():
        required, preferred = side.values()
        for changed in (required[0], preferred[0]["podAffinityTerm"]):
            assert changed["labelSelector"] == {**SELECTOR, "matchExpressions": ADDED}


def test_keys_of_spread_constraints_become_requirements() -> None:
    constraint = {"maxSkew": 1, "topologyKey": "t", "matchLabelKeys": ["zone"]}
    first, second = merged(
        topologySpreadConstraints=[{**constraint, "labelSelector": SELECTOR}, constraint]
    )["topologySpreadConstraints"]
    assert first["labelSelector"] == {**SELECTOR, "matchExpressions": ADDED[:1]}
    assert "labelSelector" not in second  # it matches nothing, whatever the keys are
