"""The store: objects, resourceVersions and watches in Redis (designs 0019 and 0020).

One object is one hash; one write is one atomic script that stores it, keeps its
indexes and appends to the watch log of its kind. The verbs are on `Store`.
"""

from kcm.store.managed_fields.managers import FieldManager
from kcm.store.reader import ObjectList, StoreReader
from kcm.store.rules import DeleteOptions, Subresource
from kcm.store.store import Conditions, Store
from kcm.store.watch import Changes, WatchEntry
from kcm.store.writes.guards import Guard
from kcm.store.writes.items import Pattern, WriteItem
from kcm.store.writes.results import WriteResult, WriteStatus

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
