from __future__ import annotations

import gc
import json
import weakref
from typing import Any

import pytest

from kcm import errors
from kcm.api import codec
from kcm.api.custom.kinds import CustomObject
from kcm.api.scheme.scheme import Remains
from kcm.apiextensions.registration import register
from kcm.apimachinery.base import compact
from kcm.apiserver.documents import openapi
from kcm.kinds import defaults, validation
from tests.unit.apiextensions.samples import (
    SCHEME,
    TEXT,
    WHOLE,
    accept_names,
    definition,
    serve,
    struct,
)

OPENAPI = openapi.OpenApi(SCHEME)

V1 = struct(spec=struct(replicas=WHOLE | {"default": 1}))
V2 = struct(spec=struct(replicas=WHOLE | {"default": 2}, image=TEXT))


def crontab(version: str = "v1", **spec: Any) -> CustomObject:
    body = {
        "apiVersion": f"example.com/{version}",
        "kind": "CronTab",
        "metadata": {"name": "one", "namespace": "default"},
        "spec": spec,
    }
    obj = codec.decode(body, SCHEME)
    assert isinstance(obj, CustomObject)
    return obj


def test_a_kind_is_served_as_long_as_its_definition_is() -> None:
    with serve(definition()):
        resource = SCHEME.by_name("crontabs.example.com")
        assert SCHEME.lookup("crontab") is SCHEME.lookup("cr") is resource
        assert SCHEME.by_gvk("example.com/v1", "CronTab") is resource
    with pytest.raises(errors.UnknownKind):
        SCHEME.by_name("crontabs.example.com")
    with pytest.raises(errors.UnknownKind):
        SCHEME.lookup("cr")


def test_a_definition_that_is_not_established_serves_nothing() -> None:
    assert not register(SCHEME, definition())
    assert SCHEME.versions("crontabs.example.com") == ()


def test_the_class_of_a_kind_that_is_gone_goes_too() -> None:
    with serve(definition()):
        model = SCHEME.by_name("crontabs.example.com").model
        assert compact(crontab()).name == "one"
        assert OPENAPI.respond(["v3", "apis", "example.com", "v1"], "").body
        gone = weakref.ref(model)
        del model
    gc.collect()
    assert gone() is None


def test_classes_that_went_are_collected_by_the_bytes_of_their_definitions(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(SCHEME, "remains", Remains(discarded=1))
    with serve(definition()):
        gone = weakref.ref(SCHEME.by_name("crontabs.example.com").model)
    assert gone() is None


def test_learning_the_same_definition_again_changes_nothing() -> None:
    with serve(definition()):
        before = SCHEME.by_name("crontabs.example.com")
        assert not register(SCHEME, accept_names(definition()))
        assert SCHEME.by_name("crontabs.example.com") is before
        assert register(SCHEME, accept_names(definition(v1=V1, v2=V2)))
        assert len(SCHEME.versions("crontabs.example.com")) == 2


def test_a_kind_that_is_built_in_cannot_be_taken() -> None:
    taken = definition("pods", "Pod")
    spec = taken.spec.replace(group="apps", names=taken.spec.names.replace(kind="ReplicaSet"))
    assert not register(SCHEME, accept_names(taken.with_spec(spec)))
    assert SCHEME.by_gvk("apps/v1", "ReplicaSet").name == "replicasets.apps"


def test_versions_are_served_of_one_stored_kind() -> None:
    with serve(definition(v1=V1, v2=V2)):
        first, second = SCHEME.versions("crontabs.example.com")
        assert first in SCHEME.resources()
        assert second not in SCHEME.resources()
        obj = crontab("v2", replicas=3, image="x")
        raw = codec.encode_stored(obj, second)
        assert json.loads(raw)["apiVersion"] == "example.com/v1"
        assert codec.decode_stored(raw, second) == obj
        seen = codec.decode_stored(raw, first)
        assert (seen.api_version, codec.to_dict(seen)["spec"]) == (
            "example.com/v1",
            {"replicas": 3},
        )


def test_each_version_has_its_own_defaults_also_for_what_is_stored_already() -> None:
    with serve(definition(v1=V1, v2=V2)):
        raw = codec.encode(crontab("v1"))
        first, second = SCHEME.versions("crontabs.example.com")
        assert codec.to_dict(codec.decode_stored(raw, first))["spec"] == {"replicas": 1}
        assert codec.to_dict(codec.decode_stored(raw, second))["spec"] == {"replicas": 2}


def test_objects_are_pruned_defaulted_and_validated_like_those_of_other_kinds() -> None:
    with serve(definition(v1=V1)):
        obj = defaults.apply(crontab(foo=1))
        assert codec.to_dict(obj)["spec"] == {"replicas": 1}
        assert validation.validate_create(obj) == []
        wrong = validation.validate_create(crontab(replicas="x"))
        assert [fault.field for fault in wrong] == ["spec.replicas"]


def test_what_was_wrong_before_does_not_stand_in_the_way_of_other_changes() -> None:
    with serve(definition(v1=struct(spec=struct(a=WHOLE, b=WHOLE)))):
        old = crontab(a="x", b=1)
        assert validation.validate_update(crontab(a="x", b=2), old) == []
        assert validation.validate_update(crontab(a="y", b="z"), old)


def test_nulls_that_may_be_survive() -> None:
    nullable = struct(spec=struct(a=TEXT | {"nullable": True}))
    with serve(definition(v1=nullable)):
        obj = defaults.apply(crontab(a=None))
        assert b'"spec":{"a":null}' in codec.encode(obj)
