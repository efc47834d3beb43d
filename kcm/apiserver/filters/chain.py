"""The filters that a request passes, in upstream's order: `FilterChain`, top to bottom.

Source: staging/src/k8s.io/apiserver/pkg/server/config.go (DefaultBuildHandlerChain), Kubernetes
1.33. Departures:

- Priority and fairness come after authorization, since a request takes a seat only once its body is
  there, and no body is read of who may not send it. The time limit is there as well: it is for
  short requests, whose answer is not sent yet. So watches take no seat; each user has a limit.
- The audit log has one line for each write, when the code of its answer is certain. So what
  upstream does in WithAuditInit, WithAudit and WithFailedAuthenticationAudit is one filter.
- What does not change from request to request is left out: CORS, HSTS, HTTP/2's GOAWAY, tracing.
  Warnings are in `Exchange.remarks`. A server that stops ends its watches by itself
  (`ApiServer.stop_watches`).
- Upstream's chain ends in one handler, which finds the server of the path: the aggregator, that of
  custom kinds, or its own. Here each of these answers is a filter that answers what is its own.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from functools import partial

from kcm.apiserver.exchange import Filter, Handler
from kcm.apiserver.filters.aggregation import AggregationFilter
from kcm.apiserver.filters.audit import Audit
from kcm.apiserver.filters.authentication import Authentication
from kcm.apiserver.filters.authorization import Authorization
from kcm.apiserver.filters.faults import FaultGate
from kcm.apiserver.filters.impersonation import Impersonation
from kcm.apiserver.filters.limits import RequestLimits
from kcm.apiserver.filters.panic_recovery import PanicRecovery
from kcm.apiserver.filters.priority_and_fairness import PriorityAndFairness
from kcm.apiserver.filters.request_info import RequestInfoFilter
from kcm.apiserver.filters.resources import Resources
from kcm.apiserver.filters.streams import StreamFilter
from kcm.apiserver.filters.watches import Watches


@dataclass(frozen=True)
class FilterChain:
    """All filters. A request passes them from top to bottom, its answer from bottom to top."""

    audit: Audit  # counts the request in the metrics, and logs a write
    panic_recovery: PanicRecovery  # makes a Status of every error
    request_info: RequestInfoFilter  # what the request asks for, by its path and its method
    authentication: Authentication  # who sends it
    impersonation: Impersonation  # on whose behalf
    authorization: Authorization  # whether they may
    faults: FaultGate | None  # in tests alone: whether it fails as somebody wants it to
    aggregation: AggregationFilter  # answers for APIs that other servers serve
    resources: Resources  # which resource is served at its path: from here on 404
    watches: Watches  # answers watches
    streams: StreamFilter  # answers logs, connections to pods, proxied requests
    limits: RequestLimits  # reads the body; bodies, answers and time are limited
    priority_and_fairness: PriorityAndFairness  # when it is served, or whether it is refused

    def compose(self, handle: Handler) -> Handler:
        """Returns the handler of requests that pass all filters, and then are handled."""
        filters: list[Filter | None] = [getattr(self, one.name) for one in fields(self)]
        for step in reversed(filters):
            if step is not None:
                handle = partial(step.serve, proceed=handle)
        return handle
