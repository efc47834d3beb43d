"""Controllers of users that change the objects of the cache."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from kcm.testing import ControlPlane

CONTROLLER = """
from kcm.api.core_v1 import ConfigMap
from kcm.reconcile.contract import Controller, Watch, own_key
from kcm.reconcile.plan import Plan


class Careless(Controller):
    name, short_name = "careless-controller", "careless"

    def watches(self):
        return (Watch(ConfigMap, own_key),)

    def reconcile(self, key, view):
        found = view.lister(ConfigMap).find(key)
        if found is not None and found.name == "first":
            {deed}
        return Plan()
"""


def config_map(name: str) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": name, "labels": {"a": "b"}},
    }


def controlled(folder: Path, deed: str) -> ControlPlane:
    module = folder / "careless.py"
    module.write_text(CONTROLLER.format(deed=deed))
    controllers = ("careless-controller",)
    return ControlPlane(nodes=0, controllers=controllers, flags=[f"--controller-module={module}"])


def test_an_assignment_fails_the_sync_and_changes_no_object(tmp_path: Path) -> None:
    with controlled(tmp_path, 'found.metadata.nodename = "typo"') as control_plane:
        for name in ("first", "second"):
            control_plane.apply(config_map(name))
        control_plane.settle()
        control_plane.patch("configmap/second", {"data": {"k": "v"}})
        control_plane.apply(config_map("third"))
        control_plane.settle()
        stored = control_plane.list("configmaps")
        assert {"first", "second", "third"} <= {one["metadata"]["name"] for one in stored}
        assert "nodename" not in str(stored)
        failed = control_plane.explain("configmap/first")
        assert "cached objects are shared: use replace()" in str(failed)


def test_a_changed_list_or_map_fails_the_test(tmp_path: Path) -> None:
    control_plane = controlled(tmp_path, 'found.labels["a"] = "c"')
    control_plane.start()
    control_plane.apply(config_map("first"))
    control_plane.settle()
    with pytest.raises(AssertionError, match=r"labels\.a was 'b', is 'c'.*use replace\(\)"):
        control_plane.stop()
