"""The APIServices that the API server registers for itself."""

from __future__ import annotations

from typing import Any

import pytest

from kcm import errors
from kcm.api.apiregistration_v1 import APIService
from kcm.apimachinery.meta_v1 import KubeObject
from kcm.apiserver.aggregation.registration import Registration, list_built_in
from kcm.apiserver.cache.cacher import Cacher
from kcm.redisio import RedisIO
from kcm.store import Store, WriteItem
from tests.typed_objects import list_objects


def test_one_that_cannot_be_created_keeps_no_other_waiting(
    io: RedisIO, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = Store(io)
    cacher = Cacher(store)
    cacher.turn(0)
    build_create = store.items.build_create

    def refuse_apps(obj: KubeObject, **more: Any) -> WriteItem:
        if obj.name == "v1.apps":
            raise errors.BadRequest("not this one")
        return build_create(obj, **more)

    monkeypatch.setattr(store.items, "build_create", refuse_apps)
    registration = Registration(store, cacher)
    registration.turn()
    services = list_objects(store, APIService)
    assert {service.name for service in services} == set(list_built_in()) - {"v1.apps"}
    assert {c.status for service in services for c in service.status.conditions or ()} == {"True"}

    monkeypatch.undo()
    cacher.turn(0)
    registration.turn()
    apps = store.get(APIService.resource, "v1.apps")
    assert apps.name == "v1.apps"
