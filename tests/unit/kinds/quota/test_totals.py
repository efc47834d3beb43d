from __future__ import annotations

from kcm.api import scheme
from kcm.api.scheme import BUILT_IN
from kcm.apimachinery.meta_v1 import KubeObject
from kcm.kinds.quota import used_by
from kcm.testing.views import NOW
from tests.samples import sample
from tests.unit.kinds.quota.test_charging import CPU, quota
from tests.unit.kinds.quota.test_pods import pod_of


def test_all_objects_of_the_namespace_are_added_up() -> None:
    asked = []
    objects = {"pods": [pod_of(CPU), pod_of(CPU)], "configmaps": [sample("configmaps")]}

    def list_(kind: scheme.Resource) -> list[KubeObject]:
        asked.append(kind.name)
        return list(objects.get(kind.name, []))

    hard = {"requests.cpu": "9", "pods": "9", "count/configmaps": "1", "count/x.example.com": "1"}
    amounts = used_by(quota({**hard, "services": "1"}), BUILT_IN.resources(), list_, NOW)
    assert {name: str(amount) for name, amount in amounts.items()} == {
        "requests.cpu": "2",
        "pods": "2",
        "count/configmaps": "1",
        "services": "0",
    }
    assert sorted(asked) == ["configmaps", "pods", "services"]
