"""`Aggregation`: all parts of aggregation together, as the API server uses them."""

from __future__ import annotations

from dataclasses import dataclass, field

from prometheus_client import CollectorRegistry

from kcm.apiserver.aggregation.authentication_trust import TrustedAuthorities
from kcm.apiserver.aggregation.availability import Prober
from kcm.apiserver.aggregation.index import ApiIndex, RemoteApi
from kcm.apiserver.aggregation.loop import AggregationLoop
from kcm.apiserver.aggregation.metrics import AggregationMetrics
from kcm.apiserver.aggregation.proxy import ApiProxy
from kcm.apiserver.aggregation.registration_loop import RegistrationLoop
from kcm.apiserver.aggregation.remote_documents import RemoteDocuments
from kcm.apiserver.aggregation.status_writer import StatusWriter
from kcm.apiserver.auth.attributes import Attributes
from kcm.apiserver.cache.cacher import Cacher
from kcm.apiserver.documents.remote import RemoteVersions
from kcm.apiserver.egress.services import ServiceResolver
from kcm.apiserver.http.limits import Limits
from kcm.http.connections import Pool
from kcm.store import Store

_DOCUMENT = "/openapi/v3"  # of OpenAPI, before the path of a group and version
_LONG_VERBS = frozenset({"watch", "proxy"})
_LONG_SUBRESOURCES = frozenset({"attach", "exec", "proxy", "log", "portforward"})


@dataclass(frozen=True)
class AggregationOptions:
    """Who this server is to other API servers, and whom they may trust.

    `certificate` is the front proxy's client certificate with its key, in PEM.
    """

    certificate: bytes = field(default=b"", repr=False)
    authorities: TrustedAuthorities = field(default_factory=TrustedAuthorities)


class Aggregation:
    """Knows the APIs of other servers, and passes requests on to them.

    `registration` is a loop for the API server to run; `start` starts the thread that asks the
    servers, and `stop` ends it.
    """

    def __init__(
        self,
        store: Store,
        cacher: Cacher,
        options: AggregationOptions,
        limits: Limits,
        registry: CollectorRegistry,
        *,
        pool: Pool,
    ) -> None:
        resolver = ServiceResolver(cacher)
        metrics = AggregationMetrics(cacher, registry)
        self._index = ApiIndex(cacher)
        self._documents = RemoteDocuments(options.certificate, resolver, self._index)
        self.proxy = ApiProxy(resolver, options.certificate, limits, pool)
        self.registration = RegistrationLoop(store, cacher, options.authorities)
        self._loop = AggregationLoop(
            cacher,
            self._index,
            Prober(options.certificate, resolver),
            documents=self._documents,
            writer=StatusWriter(store),
            count_unavailable=metrics.count_unavailable,
        )

    def start(self) -> None:
        """Starts the thread that asks the servers."""
        self._loop.start()

    def stop(self) -> None:
        """Stops the thread."""
        self._loop.stop()

    def find(self, path: str) -> RemoteApi | None:
        """Returns the API of another server that a path belongs to, or None.

        Its OpenAPI document belongs to it as well, if its server has one.
        """
        if not path.startswith(f"{_DOCUMENT}/apis/"):
            return self._index.find(path)
        api = self._index.find(path.removeprefix(_DOCUMENT))
        if api is None or path != _DOCUMENT + api.path:
            return None
        document = self.documents().by_name.get((api.group, api.version))
        return (
            api
            if document is not None and document.openapi_v3_hash and not document.openapi_v3
            else None
        )

    def documents(self) -> RemoteVersions:
        """Returns the versions that other servers serve, for this server's documents."""
        return self._documents.describe()


def is_long(asked: Attributes | None) -> bool:
    """Reports whether a request is a watch, or another stream without an end, as upstream does."""
    if asked is None:
        return False
    return asked.verb in _LONG_VERBS or asked.subresource in _LONG_SUBRESOURCES
