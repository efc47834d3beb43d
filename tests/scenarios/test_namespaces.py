"""A namespace with something of every kind goes away."""

from __future__ import annotations

import pytest

from kcm import errors
from kcm.api import codec
from kcm.api.core_v1 import Namespace
from kcm.api.scheme import BUILT_IN
from kcm.apimachinery.meta_v1 import ObjectMeta
from tests.samples import BODIES, manifest
from tests.scenarios.plane import Plane, StartPlane, start_plane

__all__ = ["start_plane"]

pytestmark = pytest.mark.scenario
NAMESPACES = Namespace.resource


def test_a_namespace_full_of_all_kinds_goes_away(start_plane: StartPlane) -> None:
    # Services last: a controller makes their Endpoints, and all objects here have one name.
    names = sorted(BODIES, key=lambda name: name == "services")
    kinds = [BUILT_IN.by_name(name) for name in names if BUILT_IN.by_name(name).namespaced]
    plane = start_plane(nodes=0)
    plane.store.create(Namespace(metadata=ObjectMeta(name="team")))
    for kind in kinds:
        body = manifest(kind.name)
        body["metadata"]["namespace"] = "team"
        body.get("involvedObject", {})["namespace"] = "team"
        plane.store.create(codec.decode(body, kind))
    plane.store.delete(NAMESPACES, "team")
    plane.until(lambda: is_gone(plane), "the end of the namespace")
    assert [k for k in kinds if plane.store.list(k, "team").items] == []


def is_gone(plane: Plane) -> bool:
    try:
        plane.store.get(NAMESPACES, "team")
    except errors.NotFound:
        return True
    return False
