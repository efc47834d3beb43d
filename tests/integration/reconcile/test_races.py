"""Two syncs that decide by the same state, of which the second finds another when it writes."""

from __future__ import annotations

from kcm.apimachinery.meta_v1 import KubeObject
from kcm.controllers.volumes.persistentvolumebinder import PersistentVolumeBinderController
from kcm.reconcile.executor import PlanExecutor
from kcm.store import Store
from kcm.testing.views import FakeView
from tests.integration.reconcile.conftest import get_stored
from tests.unit.controllers.volume_builders import a_claim, a_volume


def put_whole(store: Store, obj: KubeObject) -> KubeObject:
    """Creates an object with its status."""
    fresh = obj.with_metadata(resource_version=None)
    return store.write([store.items.build_create(fresh, keep_status=True)])[0].get_stored()


def test_two_claims_that_want_one_volume_do_not_both_get_it(
    store: Store, executor: PlanExecutor
) -> None:
    claims = [a_claim(name=name, uid=name) for name in ("a", "b")]
    volume = a_volume()
    view = FakeView(*(put_whole(store, obj) for obj in (*claims, volume)))
    controller = PersistentVolumeBinderController()
    plans = [controller.reconcile(claim.key, view) for claim in claims]  # both see it free
    first, second = [executor.execute(plan, None) for plan in plans]
    assert (len(first.failures), len(second.failures)) == (0, 1)
    reference = get_stored(store, volume).spec.claim_ref
    assert reference is not None
    assert reference.name == "a"
    assert [get_stored(store, claim).spec.volume_name for claim in claims] == ["volume", None]
