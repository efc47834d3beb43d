"""Tests what a pass of a periodic loop sees of caches and of what was listed for it."""

from __future__ import annotations

from kcm.api.core_v1 import Pod
from kcm.apimachinery.meta_v1 import KubeObject
from kcm.reconcile.contract import BY_UID
from kcm.reconcile.passes import TickView
from kcm.testing import builders
from kcm.testing.views import FakeView


def names(objects: object) -> list[str]:
    assert isinstance(objects, list)
    return [obj.name for obj in objects if isinstance(obj, KubeObject)]


def test_objects_of_an_index_value_are_of_all_kinds_and_those_listed_are_not_the_cached() -> None:
    node = builders.node("n").with_metadata(uid="u")
    pods = (builders.pod(name).with_metadata(uid="u") for name in ("cached", "listed"))
    cached, listed = pods
    view = FakeView(node, cached)
    assert sorted(names(view.by_index(BY_UID, "u"))) == ["cached", "n"]
    assert names(view.by_index(BY_UID, "other")) == []
    seen = TickView(view, 0.0, "1", {Pod.resource.name: [listed]})
    assert sorted(names(seen.by_index(BY_UID, "u"))) == ["listed", "n"]
