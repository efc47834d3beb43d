"""After TestSyncConfigMap of pkg/controlplane/controller/legacytokentracking/controller_test.go."""

from __future__ import annotations

from collections.abc import Callable
from typing import cast

import pytest

from kcm import errors
from kcm.api.core_v1 import ConfigMap, Secret
from kcm.api.scheme import Resource
from kcm.apimachinery.meta_v1 import KubeObject, ObjectMeta
from kcm.apiserver.auth.token_tracking import LAST_USED, NAME, NAMESPACE, TokenTracker
from kcm.store import Store
from kcm.testing.clock import FakeClock

KEY = f"{NAMESPACE}/{NAME}"


class Objects:
    """A store of these objects, which counts changes."""

    def __init__(self, *objects: KubeObject) -> None:
        self.objects = {obj.key: obj for obj in objects}
        self.changes = 0

    def find(self, resource: Resource, key: str) -> KubeObject | None:
        return self.objects.get(key)

    def create(self, obj: KubeObject) -> None:
        self.objects[obj.key] = obj
        self.changes += 1

    def modify(
        self, resource: Resource, key: str, change: Callable[[KubeObject], KubeObject]
    ) -> None:
        if key not in self.objects:
            raise errors.NotFound.of(resource.name, key)
        self.objects[key] = change(self.objects[key])
        self.changes += 1


def tracker(*objects: KubeObject) -> tuple[TokenTracker, Objects, FakeClock]:
    store, clock = Objects(*objects), FakeClock()
    return TokenTracker(cast("Store", store), clock), store, clock


def secret(uid: str = "1", **labels: str) -> Secret:
    metadata = ObjectMeta(name="s", namespace="ns", uid=uid)
    return Secret(metadata=metadata.model_copy(update={"labels": labels}))


def since(date: str) -> ConfigMap:
    metadata = ObjectMeta(name=NAME, namespace=NAMESPACE)
    return ConfigMap(metadata=metadata, data={"since": date})


@pytest.mark.parametrize(
    ("present", "wanted"),
    [
        ((), "2026-01-01"),
        ((since("2020-02-02"),), "2020-02-02"),
        ((since("2020-2-2"),), "2026-01-01"),
        ((since(""),), "2026-01-01"),
    ],
)
def test_the_date_since_when_uses_are_tracked_is_kept(
    present: tuple[KubeObject, ...], wanted: str
) -> None:
    tracking, store, _ = tracker(*present)
    tracking.turn(0.0)
    found = store.objects[KEY]
    assert isinstance(found, ConfigMap)
    assert found.data == {"since": wanted}


def test_a_date_that_somebody_deletes_comes_back() -> None:
    tracking, store, clock = tracker()
    tracking.turn(0.0)
    store.objects.clear()
    clock.step(29)
    tracking.turn(0.0)
    assert KEY not in store.objects
    clock.step(1)
    tracking.turn(0.0)
    assert KEY in store.objects


def test_a_use_is_written_once_a_day() -> None:
    tracking, store, clock = tracker(since("2020-02-02"), secret())
    for _ in range(3):
        tracking.note_use(secret())
    tracking.turn(0.0)
    assert store.objects["ns/s"].labels == {LAST_USED: "2026-01-01"}
    assert store.changes == 1
    tracking.note_use(cast("Secret", store.objects["ns/s"]))
    tracking.turn(0.0)
    assert store.changes == 1
    clock.step(24 * 3600)
    tracking.note_use(cast("Secret", store.objects["ns/s"]))
    tracking.turn(0.0)
    assert store.objects["ns/s"].labels == {LAST_USED: "2026-01-02"}


def test_a_secret_that_was_made_anew_or_is_gone_is_left_alone() -> None:
    tracking, store, _ = tracker(since("2020-02-02"), secret(uid="new"))
    tracking.note_use(secret())
    tracking.turn(0.0)
    assert not store.objects["ns/s"].labels
    del store.objects["ns/s"]
    tracking.note_use(secret())
    tracking.turn(0.0)
