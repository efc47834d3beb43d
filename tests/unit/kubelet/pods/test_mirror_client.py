"""Mirror pods: what is written, and what happens if the store rejects or is unavailable."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from kcm import errors
from kcm.api.core_v1 import Node, Pod
from kcm.apimachinery.meta_v1 import ObjectMeta
from kcm.kubelet.pods.mirror_client import MirrorClient
from kcm.kubelet.types import FILE, HASH_ANNOTATION, MIRROR_ANNOTATION, SOURCE_ANNOTATION
from kcm.store import DeleteOptions
from tests.unit.kubelet.views import pod

NODE = Node(metadata=ObjectMeta(name="n1", uid="node-uid"))


class Api:
    """A store that keeps pods in memory."""

    def __init__(self, *pods: Pod, refusal: errors.KcmError | None = None) -> None:
        self.pods = {stored.key: stored for stored in pods}
        self.refusal = refusal
        self.options: list[DeleteOptions] = []

    def find(self, resource: Any, key: str) -> Pod | None:
        return self.pods.get(key)

    def build_create(self, obj: Pod) -> Any:
        return Item("create", obj)

    def build_delete(self, old: Pod, options: DeleteOptions) -> Any:
        self.options.append(options)
        return Item("delete", old)

    def write(self, items: Sequence[Any]) -> list[Any]:
        if isinstance(self.refusal, errors.Temporary):
            raise self.refusal
        for item in items:
            if self.refusal is None and item.verb == "create":
                self.pods[item.obj.key] = item.obj
            elif self.refusal is None:
                del self.pods[item.obj.key]
        return [Result(item.obj, self.refusal) for item in items]


class Item:
    def __init__(self, verb: str, obj: Pod) -> None:
        self.verb, self.obj = verb, obj


class Result:
    def __init__(self, obj: Pod, refusal: errors.KcmError | None) -> None:
        self._obj, self._refusal = obj, refusal
        self.ok = refusal is None

    def get_stored(self) -> Pod:
        if self._refusal is not None:
            raise self._refusal
        return self._obj


def static() -> Pod:
    marks = {SOURCE_ANNOTATION: FILE, HASH_ANNOTATION: "abc"}
    return pod().with_metadata(uid="abc", annotations=marks)


def client(api: Api, node: Node | None = NODE) -> MirrorClient:
    store: Any = api
    return MirrorClient(store, lambda: node)


def test_a_mirror_bears_the_static_pods_hash_and_belongs_to_the_node() -> None:
    api = Api()
    assert client(api).create(static())
    mirror = api.pods[static().key]
    assert mirror.annotations[MIRROR_ANNOTATION] == "abc"
    assert not mirror.uid
    owners = mirror.metadata.owner_references or []
    assert [(o.kind, o.name, o.uid, o.controller) for o in owners] == [
        ("Node", "n1", "node-uid", True)
    ]


@pytest.mark.parametrize("node", [None, Node(metadata=ObjectMeta(name="n1"))])
def test_without_a_registered_node_there_is_no_mirror_yet(node: Node | None) -> None:
    api = Api()
    assert not client(api, node).create(static())
    assert not api.pods


def test_a_mirror_that_is_there_already_is_as_good_as_made() -> None:
    assert client(Api(refusal=errors.AlreadyExists())).create(static())


def test_a_mirror_that_is_refused_was_not_made() -> None:
    assert not client(Api(refusal=errors.Forbidden())).create(static())


def test_while_the_store_is_away_whoever_asks_is_told() -> None:
    with pytest.raises(errors.Temporary):
        client(Api(refusal=errors.StoreUnavailable())).create(static())


def test_a_mirror_is_deleted_at_once_and_only_itself() -> None:
    mirror = static().with_metadata(uid="mirror")
    api = Api(mirror)
    assert client(api).delete(mirror)
    assert not api.pods
    assert api.options == [DeleteOptions(grace_period_seconds=0, uid="mirror")]


def test_a_mirror_that_is_gone_or_another_by_now_needs_no_deletion() -> None:
    mirror = static().with_metadata(uid="mirror")
    other = mirror.with_metadata(uid="other")
    for api in (Api(), Api(other)):
        assert client(api).delete(mirror)
        assert not api.options


def test_a_deletion_that_is_refused_left_the_mirror() -> None:
    mirror = static().with_metadata(uid="mirror")
    assert not client(Api(mirror, refusal=errors.Forbidden())).delete(mirror)
