"""Custom kinds whose objects a webhook converts, where somebody asks it and where nobody does."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import pytest

from kcm import errors
from kcm.api import codec, scaling
from kcm.api.apiextensions_v1 import CustomResourceDefinition
from kcm.api.custom.kinds import CustomObject
from kcm.api.scheme import Resource
from kcm.apiextensions import conversion
from kcm.apiextensions.kinds import resources_of

WEBHOOK = {"clientConfig": {"url": "https://a.example.com"}, "conversionReviewVersions": ["v1"]}
SCHEMA = {"openAPIV3Schema": {"type": "object", "properties": {"spec": {
    "type": "object", "properties": {"x": {"type": "integer", "default": 1}},
}}}}  # fmt: skip

OPEN = {"x-kubernetes-preserve-unknown-fields": True}


class Counting:
    """Converts by relabelling, and counts."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, str]] = []

    def convert(self, objects: Sequence[CustomObject], target: Resource) -> list[CustomObject]:
        converted: list[Any] = []
        for obj in objects:
            self.calls.append((obj.api_version, target.api_version))
            body = codec.to_dict(obj) | {"apiVersion": target.api_version}
            converted.append(codec.decode(body, target))
        return converted


def definition() -> dict[str, Any]:
    """Returns a definition with v2, the storage version, v1, which was that before, and v3."""
    spec = {
        "group": "example.com",
        "names": {"plural": "widgets", "kind": "Widget"},
        "scope": "Namespaced",
        "conversion": {"strategy": "Webhook", "webhook": WEBHOOK},
        "versions": [
            {"name": name, "served": True, "storage": name == "v2", "schema": SCHEMA}
            for name in ("v1", "v2", "v3")
        ],
    }
    status = {"storedVersions": ["v1", "v2"]}
    return {"metadata": {"name": "widgets.example.com"}, "spec": spec, "status": status}


@pytest.fixture
def versions() -> list[Resource]:
    """Returns the versions v2, v1 and v3."""
    return resources_of(CustomResourceDefinition.model_validate(definition()))


def stored(version: str) -> bytes:
    body = {"apiVersion": f"example.com/{version}", "kind": "Widget", "spec": {}}
    return json.dumps(body | {"metadata": {"name": "a", "namespace": "n"}}).encode()


def test_replicas_are_where_the_version_of_the_object_has_them() -> None:
    body = definition()
    for one, path in zip(body["spec"]["versions"], (".spec.x", ".spec.y", ".spec.z"), strict=True):
        one["schema"] = {"openAPIV3Schema": {**OPEN, "type": "object"}}
        one["subresources"] = {
            "scale": {"specReplicasPath": path, "statusReplicasPath": ".status.x"}
        }
    scaled = CustomResourceDefinition.model_validate(body)
    v2 = resources_of(scaled)[0]
    obj = scaling.with_replicas(codec.decode_stored(stored("v1"), v2), 3, v2)
    assert (obj.api_version, codec.to_dict(obj)["spec"]) == ("example.com/v1", {"x": 3})
    assert scaling.scale_of(obj, v2).replicas == 3


def test_the_storage_version_comes_first(versions: list[Resource]) -> None:
    assert [resource.version for resource in versions] == ["v2", "v1", "v3"]
    family = conversion.webhook_versions(versions[1])
    assert family is not None
    assert family.storage is versions[0]
    assert family.webhook.conversion_review_versions == ["v1"]


def test_an_object_is_converted_from_the_version_in_which_it_is_stored(
    versions: list[Resource],
) -> None:
    v2, v1, v3 = versions
    converter = Counting()
    with conversion.asking(converter):
        assert codec.decode_stored(stored("v2"), v2).api_version == "example.com/v2"
        assert converter.calls == []
        obj = codec.decode_stored(stored("v1"), v3)
        assert (obj.api_version, codec.to_dict(obj)["spec"]) == ("example.com/v3", {"x": 1})
        assert json.loads(codec.encode_stored(obj, v3))["apiVersion"] == "example.com/v2"
        conversion.to_version(obj, v3, v1)
    assert converter.calls == [
        ("example.com/v1", "example.com/v3"),
        ("example.com/v3", "example.com/v2"),
        ("example.com/v3", "example.com/v1"),
    ]


def test_where_nobody_asks_an_object_stays_in_its_version(versions: list[Resource]) -> None:
    v2, v1, v3 = versions
    obj = codec.decode_stored(stored("v1"), v2)
    assert (type(obj), obj.api_version) == (v1.model, "example.com/v1")
    assert json.loads(codec.encode_stored(obj, v2))["apiVersion"] == "example.com/v1"
    new = codec.decode(stored("v3"), v3)
    with pytest.raises(
        errors.BadRequest, match=r"widgets\.example\.com is stored in example\.com/v2"
    ):
        codec.encode_stored(new, v3)


def test_a_version_that_the_kind_does_not_have_is_an_error(versions: list[Resource]) -> None:
    for raw in (stored("v9"), b"{}", b"[", b"[]"):
        with pytest.raises(errors.BadRequest, match="from an invalid group/version: "):
            codec.decode_stored(raw, versions[0])


def test_the_version_is_found_wherever_it_is_written(versions: list[Resource]) -> None:
    raw = b'{"kind": "Widget", "apiVersion": "example.com/v1", "metadata": {}}'
    family = conversion.webhook_versions(versions[0])
    assert family is not None
    assert family.version_of(raw) is versions[1]


def test_objects_in_an_older_version_are_outdated_for_their_request(
    versions: list[Resource],
) -> None:
    v2, v1, _ = versions
    with conversion.asking(Counting()):
        old, new = codec.decode_stored(stored("v1"), v2), codec.decode_stored(stored("v2"), v2)
        same = codec.decode_stored(stored("v1"), v1)
        assert [conversion.is_outdated(obj) for obj in (old, new, same)] == [True, False, True]
        carried = conversion.carry(lambda: conversion.is_outdated(old))
    assert not conversion.is_outdated(old)
    assert carried()
