"""The store: objects, resourceVersions and watch logs in Redis (designs 0019 and 0020).

An object is a hash. A write is one script call, which stores the object, updates its indexes and
appends to the watch log of its kind. `Store` has the verbs of the Kubernetes API.
"""

from kcm.store.managed_fields.managers import FieldManager
from kcm.store.options import DeleteOptions, Subresource
from kcm.store.reader import ObjectList, StoreReader
from kcm.store.store import Store
from kcm.store.watch import Changes, WatchEntry
from kcm.store.writes.guards import Conditions, Guard
from kcm.store.writes.items import Pattern, WriteItem, WriteResult, WriteStatus

__all__ = [
    "Changes",
    "Conditions",
    "DeleteOptions",
    "FieldManager",
    "Guard",
    "ObjectList",
    "Pattern",
    "Store",
    "StoreReader",
    "Subresource",
    "WatchEntry",
    "WriteItem",
    "WriteResult",
    "WriteStatus",
]
