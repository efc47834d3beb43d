"""Priority and fairness: a request waits until its priority level has seats for it.

Source: staging/src/k8s.io/apiserver/pkg/server/filters/priority-and-fairness.go, Kubernetes 1.36.
"""

from __future__ import annotations

from kcm.apiserver.auth.attributes import Attributes
from kcm.apiserver.cache.caches import Caches
from kcm.apiserver.computed_kinds import is_computed
from kcm.apiserver.exchange import Exchange, Handler
from kcm.apiserver.flowcontrol.control import FlowControl
from kcm.apiserver.http.limits import Limits
from kcm.apiserver.http.responses import Response

_SCHEMA_UID = b"x-kubernetes-pf-flowschema-uid"
_LEVEL_UID = b"x-kubernetes-pf-prioritylevel-uid"
_PART_OF_TIMEOUT = 4  # a request may wait for this part of its time


class PriorityAndFairness:
    """Holds the seats of a request while it is handled. Its sending takes none."""

    def __init__(self, control: FlowControl, limits: Limits, caches: Caches) -> None:
        self._control = control
        self._patience = limits.request_timeout / _PART_OF_TIMEOUT or None
        self._caches = caches

    async def serve(self, exchange: Exchange, proceed: Handler) -> Response | None:
        """Raises TooManyRequests."""
        request = exchange.request
        asked = exchange.asked or Attributes(request.method.lower(), path=request.path)
        flow = exchange.flow = self._control.classify(exchange.user, asked)
        level = self._control.find_level(flow)
        exchange.headers = ((_SCHEMA_UID, flow.schema_uid), (_LEVEL_UID, level.uid))
        seats = level.width(_count_listed(exchange, self._caches))
        held = await level.take(flow, seats, self._patience)
        try:
            return await proceed(exchange)
        finally:
            level.release(held)


def _count_listed(exchange: Exchange, caches: Caches) -> int:
    """Returns how many objects a list reads at most, 0 for another request."""
    asked, info = exchange.asked, exchange.info
    if asked is None or info is None or asked.verb != "list" or is_computed(info.resource):
        return 0
    if asked.name:
        return 1
    stored = caches.cache(info.resource).count
    limit = exchange.request.query.get("limit", "")
    return min(stored, int(limit)) if limit.isdecimal() and 0 < len(limit) < 10 else stored
