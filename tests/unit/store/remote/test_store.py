"""What a remote store asks of a server, and how it takes refusals."""

from __future__ import annotations

import pytest

from kcm import errors
from kcm.api.core_v1 import ConfigMap, ResourceQuota
from kcm.store.remote.store import RemoteStore
from kcm.store.remote.work import WorkState
from kcm.store.writes.guards import Guard, NothingCharged, Unindexed
from kcm.testing.builders import config_map
from tests.unit.store.remote.answers import Answers

MAPS = "/api/v1/namespaces/n/configmaps"


@pytest.mark.parametrize("guard", [Unindexed("owner:u"), NothingCharged("n", ())])
def test_a_conflict_fails_the_guard_for_which_the_pinned_version_stands(guard: Guard) -> None:
    """Tried again on a later version, the write would rest on what the caches no longer show."""
    client = Answers({f"PUT {MAPS}/c": errors.Conflict("the object has been modified")})
    store = RemoteStore(client, WorkState())
    old = config_map("c", namespace="n", metadata={"resource_version": "3"})
    item = store.build_update(old.replace(data={"a": "b"}), old, guards=(guard,))
    assert item is not None
    (result,) = store.write([item])
    assert (result.status, type(result.error())) == ("guard", errors.GuardFailed)
    store.close()


def test_what_changes_nothing_is_not_written() -> None:
    store = RemoteStore(Answers({}), WorkState())
    old = config_map("c", namespace="n", metadata={"resource_version": "3"})
    assert store.build_update(old.replace(), old) is None
    store.close()


def test_lists_leave_managed_fields_out() -> None:
    meta = {"name": "c", "namespace": "n", "managedFields": [{"manager": "kubectl"}]}
    page = {"metadata": {"resourceVersion": "7"}, "items": [{"metadata": meta}]}
    store = RemoteStore(Answers({"GET /api/v1/configmaps": page}), WorkState())
    (listed,) = store.list_all(ConfigMap.resource).objects
    assert (listed.key, listed.metadata.managed_fields) == ("n/c", None)
    store.close()


def test_a_collection_takes_its_dependents_along() -> None:
    item = {"metadata": {"name": "c", "namespace": "n"}}
    client = Answers({f"DELETE {MAPS}": {}, f"GET {MAPS}": {"items": [item]}})
    store = RemoteStore(client, WorkState())
    assert store.delete_collection(ConfigMap.resource, "n").remaining == 1
    (_, (_, body), _) = client.asked
    assert body["propagationPolicy"] == "Background"
    store.close()


def test_an_empty_collection_is_not_deleted() -> None:
    client = Answers({f"GET {MAPS}": {"items": []}})
    store = RemoteStore(client, WorkState())
    assert store.delete_collection(ConfigMap.resource, "n").clean
    assert [request for request, _ in client.asked] == [f"GET {MAPS}"]
    store.close()


def test_where_a_collection_cannot_be_deleted_its_objects_are() -> None:
    refusal = errors.ApiError("the server does not allow this method on the requested resource")
    refusal.code = 405
    item = {"metadata": {"name": "c", "namespace": "n", "finalizers": ["f"]}}
    client = Answers(
        {f"DELETE {MAPS}": refusal, f"GET {MAPS}": {"items": [item]}, f"DELETE {MAPS}/c": {}}
    )
    store = RemoteStore(client, WorkState())
    deletion = store.delete_collection(ConfigMap.resource, "n")
    assert (deletion.remaining, deletion.finalizers) == (1, {"f": 1})
    assert f"DELETE {MAPS}/c" in [request for request, _ in client.asked]
    store.close()


def test_a_kind_that_is_no_longer_served_leaves_nothing_behind() -> None:
    store = RemoteStore(Answers({}), WorkState())
    assert store.delete_collection(ResourceQuota.resource, "n").clean
    store.close()
