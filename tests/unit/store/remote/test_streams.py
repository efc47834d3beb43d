"""What a watch of another API server makes of its events."""

from __future__ import annotations

import threading
from typing import Any, cast

import pytest

from kcm import errors
from kcm.api import codec
from kcm.api.core_v1 import ConfigMap
from kcm.store.remote.rest import RestClient
from kcm.store.remote.streams import _events, _RemoteWatch
from kcm.testing.clock import FakeClock


def new_watch(position: int) -> _RemoteWatch:
    client = cast("RestClient", None)  # nothing is asked for
    return _RemoteWatch(ConfigMap.resource, position, client, FakeClock(), threading.Condition())


def event(version: int, kind: str = "BOOKMARK") -> dict[str, Any]:
    return {"type": kind, "object": {"metadata": {"name": "a", "resourceVersion": str(version)}}}


@pytest.mark.parametrize("kind", ["BOOKMARK", "ADDED"])
def test_a_server_whose_data_went_back_is_listed_again(kind: str) -> None:
    watch = new_watch(40)
    watch._take(event(41, kind))
    with pytest.raises(errors.Gone, match="from 41 to 12"):
        watch._take(event(12, kind))


def test_a_watch_that_is_told_that_its_position_lies_ahead_lists_again() -> None:
    status = {
        "code": 504,
        "reason": "Timeout",
        "message": "Too large resource version: 40, current: 12",
        "details": {"causes": [{"reason": "ResourceVersionTooLarge"}]},
    }
    with pytest.raises(errors.Gone, match="Too large"):
        new_watch(40)._take({"type": "ERROR", "object": status})


def test_an_error_without_metadata_is_an_error_like_others() -> None:
    line = b'{"type": "ERROR", "object": {"kind": "Status", "code": 410, "reason": "Expired"}}'
    (error,) = _events(iter([line]))
    with pytest.raises(errors.Gone):
        new_watch(1)._take({**error, "object": {**error["object"], "message": "too old"}})


def test_fields_that_kcm_does_not_know_are_kept_in_whatever_order_they_come() -> None:
    watch = new_watch(0)
    sent: dict[str, Any] = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "a", "namespace": "n", "resourceVersion": "7", "later": 1},
        "future": {"x": 1},
    }
    watch._take({"type": "MODIFIED", "object": sent})
    (entry,) = watch.take()
    assert (entry.key, watch.position) == ("n/a", 7)
    assert codec.to_dict(codec.decode_stored(entry.raw, ConfigMap.resource)) == sent


def test_managed_fields_are_left_out() -> None:
    watch = new_watch(0)
    meta = {"name": "a", "resourceVersion": "7", "managedFields": [{"manager": "kubectl"}]}
    watch._take({"type": "ADDED", "object": {"metadata": meta, "data": {"a": "b"}}})
    (entry,) = watch.take()
    cached = codec.decode_stored(entry.raw, ConfigMap.resource)
    assert (cached.metadata.managed_fields, cached.data) == (None, {"a": "b"})


def test_an_object_without_a_namespace_has_its_name_as_key() -> None:
    watch = new_watch(0)
    watch._take(event(7, "ADDED"))
    assert [entry.key for entry in watch.take()] == ["a"]
