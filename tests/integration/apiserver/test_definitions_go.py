"""Removed custom kinds leave nothing behind in the process."""

from __future__ import annotations

import gc
from typing import Any

from kcm.api.custom.kinds import CustomObject
from kcm.api.custom.structural_schema import StructuralSchema
from kcm.api.scheme import BUILT_IN
from kcm.testing.waiting import until
from tests.integration.apiserver.serving import Live

DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
COUNT, ROUNDS = 20, 3
TABLE = {"accept": "application/json;as=Table;v=v1;g=meta.k8s.io"}
AGGREGATED = {"accept": "application/json;v=v2;g=apidiscovery.k8s.io;as=APIGroupDiscoveryList"}


def definition(number: int) -> dict[str, Any]:
    spec = {"type": "object", "properties": {"replicas": {"type": "integer"}}}
    versions = [
        {
            "name": version,
            "served": True,
            "storage": version == "v1",
            "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": spec}}},
        }
        for version in ("v1", "v2")
    ]
    return {
        "metadata": {"name": f"goings{number}.group{number}.example.com"},
        "spec": {
            "group": f"group{number}.example.com",
            "names": {"plural": f"goings{number}", "kind": f"Going{number}"},
            "scope": "Namespaced",
            "versions": versions,
        },
    }


def use(api: Live, number: int) -> None:
    group = f"/apis/group{number}.example.com"
    path = f"{group}/v1/namespaces/default/goings{number}"
    until(lambda: api.client.get(path).status_code == 200, "the kind")
    body = {
        "apiVersion": f"group{number}.example.com/v1",
        "kind": f"Going{number}",
        "metadata": {"name": "one"},
        "spec": {"replicas": 1},
    }
    api.create(path, body)
    api.patch(f"{path}/one", {"spec": {"replicas": 2}})
    api.get(f"{group}/v2/goings{number}")
    assert api.client.get(path, headers=TABLE).status_code == 200
    api.get(f"/openapi/v3{group}/v1")


def come_and_go(api: Live) -> None:
    for number in range(COUNT):
        api.create(DEFINITIONS, definition(number))
    for number in range(COUNT):
        use(api, number)
    for path in ("/openapi/v2", "/openapi/v3", "/apis"):
        assert (
            api.client.get(path, headers=AGGREGATED if path == "/apis" else {}).status_code == 200
        )
    for number in range(COUNT):
        name = f"goings{number}.group{number}.example.com"
        assert api.client.delete(f"{DEFINITIONS}/{name}").status_code == 200
    until(lambda: not api.get(DEFINITIONS)["items"], "the end of the definitions")
    until(lambda: api.store.scheme.served() == BUILT_IN.served(), "the end of the kinds")


def count_living() -> tuple[int, int]:
    """Returns the number of classes of custom kinds, and of nodes of their schemas."""
    gc.collect()
    objects = gc.get_objects()
    classes = [one for one in objects if isinstance(one, type) and issubclass(one, CustomObject)]
    return len(classes), sum(type(one) is StructuralSchema for one in objects)


def test_kinds_that_came_and_went_leave_no_classes_and_no_schemas(api: Live) -> None:
    before = count_living()
    for _ in range(ROUNDS):
        come_and_go(api)
        until(lambda: count_living() == before, "the end of the kinds' classes")
