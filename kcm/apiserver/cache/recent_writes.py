"""`RecentWrites`: what this server has just sent to the store, so that it need not decode it again.

The server reads its own writes with those of all others. An entry of a watch log is decoded before
it is passed on, since any client of Redis may have added it. What this server has encoded itself a
moment ago can be decoded, so it is enough to compare the bytes.
"""

from __future__ import annotations

from collections.abc import Sequence

from kcm.api.custom.kinds import CustomResource
from kcm.store import WatchEntry
from kcm.store.writes.items import Encoded
from kcm.store.writes.writer import Prepared

_MOST = 256  # writes that are remembered; then all are forgotten
_LARGEST = 16 * 1024  # bytes of the JSON of one that is remembered


class RecentWrites:
    """The last writes of this server. Writes come from any thread; one thread takes them.

    A write that is not remembered costs a decoding more.
    """

    def __init__(self) -> None:
        self._sent: dict[tuple[str, str], Encoded] = {}  # by resource and key

    def note(self, batch: Sequence[Prepared]) -> None:
        """Remembers items that are about to be sent, whatever becomes of them.

        Custom kinds are left out, since their definitions change, and so is what is stored in
        another version than it was sent in.
        """
        for item, encoded in batch:
            resource = item.resource
            is_plain = resource.conversion is None and not isinstance(resource, CustomResource)
            if is_plain and len(encoded) <= _LARGEST:
                if len(self._sent) >= _MOST:  # some are never taken
                    self._sent.clear()
                self._sent[resource.name, item.obj.key] = encoded

    def take(self, change: WatchEntry) -> bool:
        """Reports whether an entry is the last write of its object by this server, and forgets
        that.
        """
        encoded = self._sent.pop((change.resource.name, change.key), None)
        return encoded is not None and change.raw == encoded.insert_version(
            str(change.resource_version)
        )
