"""Conflicts of server-side apply name the managers as upstream does.

Cases: TestNewConflictError (managedfields/internal/conflict_test.go). Upstream's has times, which
the identifiers of managers have no longer.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from kcm import errors
from kcm.api import codec
from kcm.api.apps_v1 import ReplicaSet
from kcm.api.scheme import BUILT_IN
from kcm.apiserver.http_errors import ApplyConflict
from kcm.apiserver.objects import serverside

LABEL: dict[str, Any] = {"f:metadata": {"f:labels": {"f:app": {}}}}
REPLICAS: dict[str, Any] = {"f:spec": {"f:replicas": {}}}


def entry(manager: str, operation: str, fields: dict[str, Any], **more: str) -> dict[str, Any]:
    shared = {"apiVersion": "apps/v1", "time": "2001-02-03T04:05:06Z", "fieldsType": "FieldsV1"}
    return {"manager": manager, "operation": operation, "fieldsV1": fields, **shared, **more}


def replica_set(replicas: int, app: str, **metadata: Any) -> dict[str, Any]:
    return {
        "apiVersion": "apps/v1",
        "kind": "ReplicaSet",
        "metadata": {"name": "web", "namespace": "default", "labels": {"app": app}, **metadata},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": {"x": "y"}},
            "template": {
                "metadata": {"labels": {"x": "y"}},
                "spec": {"containers": [{"name": "c", "image": "i"}]},
            },
        },
    }


@pytest.mark.parametrize(
    ("owners", "expected"),
    [
        (
            [entry("foo", "Update", REPLICAS)],
            '1 conflict: conflict with "foo" using apps/v1: .spec.replicas',
        ),
        (
            [entry("foo", "Update", REPLICAS), entry("bar", "Apply", LABEL)],
            '2 conflicts: conflicts with "bar":\n- .metadata.labels.app\n'
            'conflicts with "foo" using apps/v1:\n- .spec.replicas',
        ),
        (
            [entry("foo", "Update", REPLICAS, subresource="scale")],
            '1 conflict: conflict with "foo" with subresource "scale" using apps/v1: '
            ".spec.replicas",
        ),
        (
            [entry("foo", "Apply", LABEL | REPLICAS)],
            '2 conflicts: conflicts with "foo":\n- .metadata.labels.app\n- .spec.replicas',
        ),
    ],
)
def test_a_conflict_names_who_owns_the_fields(owners: list[dict[str, Any]], expected: str) -> None:
    old = codec.decode(replica_set(1, "old", managedFields=owners), BUILT_IN)
    applied = serverside.Application(
        ReplicaSet.resource,
        replica_set(2, "new"),
        "me",
        False,
        "",
        datetime.now(UTC),
    )
    with pytest.raises(ApplyConflict) as raised:
        serverside.apply_to(applied, old)
    assert str(raised.value) == f"Apply failed with {expected}"


@pytest.mark.parametrize(
    ("body", "fault"),
    [
        (b"", "exactly one object"),
        (b"kind: Pod\n---\nkind: Pod\n", "exactly one object"),
        (b"a: " + b"[" * 200, "nested deeper"),
        (b"a: &a [" + b"[]," * 100 + b"]\nb: [" + b"*a," * 1001 + b"]", "objects and lists"),
    ],
)
def test_a_configuration_is_one_object_of_bounded_size(body: bytes, fault: str) -> None:
    assert serverside.document(b"kind: Pod\n") == {"kind": "Pod"}
    with pytest.raises(errors.BadRequest, match=fault):
        serverside.document(body)
