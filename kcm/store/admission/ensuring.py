"""Objects that every cluster has."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from kcm import errors
from kcm.api import scheme
from kcm.apimachinery.meta_v1 import KubeObject

if TYPE_CHECKING:
    from kcm.store.store import Store


def ensure(store: Store, obj: KubeObject) -> None:
    """Create an object unless it is there; one that cannot be read is made anew.

    Raises: as `Store.create`, AlreadyExists excepted.
    """
    resource = scheme.resource_of(obj)
    try:
        store.get(resource, obj.key)
    except errors.Damaged:
        store.purge(resource, obj.key)
    except errors.NotFound:
        pass
    else:
        return
    with suppress(errors.AlreadyExists):
        store.create(obj)
