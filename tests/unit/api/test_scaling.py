"""The scale of objects, at whatever path their kind has the replicas."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from kcm.api.apps_v1 import ReplicaSet
from kcm.api.core_v1 import ReplicationController
from kcm.api.scaling import Scale, scale_of, with_replicas
from kcm.api.scheme import Resource, ScalePaths
from kcm.apimachinery.meta_v1 import KubeObject
from kcm.testing import builders
from tests.samples import sample

SETS = ReplicaSet.resource
ODD = replace(SETS, scale=ScalePaths(".spec.template.spec.priority", ".status.shards", ""))


@pytest.mark.parametrize(
    ("obj", "resource", "expected"),
    [
        (
            builders.replica_set("web", replicas=3, status={"replicas": 2}),
            SETS,
            Scale(3, 2, "app=web"),
        ),
        (
            sample("replicationcontrollers"),
            ReplicationController.resource,
            Scale(1, 0, "app=web"),
        ),
        (builders.replica_set("web"), ODD, Scale(None, 0, "")),
    ],
)
def test_a_scale_is_read_from_where_the_kind_keeps_it(
    obj: KubeObject, resource: Resource, expected: Scale
) -> None:
    assert scale_of(obj, resource) == expected


def test_replicas_are_written_where_the_kind_keeps_them_and_nothing_else_changes() -> None:
    old = builders.replica_set("web", replicas=3)
    new: Any = with_replicas(old, 5, SETS)
    assert new.spec.replicas == 5
    assert new.with_spec(old.spec) == old
    odd: Any = with_replicas(old, 7, ODD)
    assert odd.spec.template.spec.priority == 7
