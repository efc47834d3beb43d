"""What a watch of another API server makes of its events."""

from __future__ import annotations

import threading
from typing import Any, cast

from kcm.api import codec
from kcm.api.core_v1 import ConfigMap
from kcm.store.remote.rest import RestClient
from kcm.store.remote.streams import _RemoteWatch
from kcm.testing.clock import FakeClock


def test_fields_that_kcm_does_not_know_are_kept_in_whatever_order_they_come() -> None:
    client = cast("RestClient", None)  # nothing is asked for
    watch = _RemoteWatch(ConfigMap.resource, 0, client, FakeClock(), threading.Condition())
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
