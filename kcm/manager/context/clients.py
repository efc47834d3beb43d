"""Creates one client of Redis per controller (upstream's ControllerClientBuilder).

A client has a connection pool of its own, which `CLIENT LIST` shows as `kcm/<identity>`. Nothing is
connected before it is used.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, cast

from kcm.api.scheme import Scheme
from kcm.clock import Clock
from kcm.manager.context.admission import find_admission_server
from kcm.manager.context.discovery import Discovery
from kcm.manager.context.leading import Leadership
from kcm.manager.positions import read_positions
from kcm.options.names import find_account
from kcm.reconcile.contract import Metrics
from kcm.redisio import Fence, Links, RedisIO
from kcm.settings import Settings
from kcm.store import Store
from kcm.store.objects import ObjectStore
from kcm.store.remote.kubeconfig import ClusterConnection
from kcm.store.resource_metrics.answers import StoredMetrics
from kcm.store.resource_metrics.usage import UsageBoard

if TYPE_CHECKING:
    from kcm.store.remote.admitted import AdmissionRules
    from kcm.store.remote.rest import RestClient
    from kcm.store.remote.store import RemoteStore
    from kcm.store.remote.work import WorkState

# Besides the groups of its account, since roles for the control plane's own controllers are not
# needed to write to Redis either.
_ACCOUNT_GROUPS = (
    "system:serviceaccounts",
    "system:serviceaccounts:kube-system",
    "system:authenticated",
    "system:masters",
)


ELECTION = "leader-election"  # the identity that writes the Lease


@dataclass(frozen=True)
class RemoteUse:
    """How the clients use another API server.

    With a deadline (in seconds), they write only while this kcm leads. `qps` and `burst` limit the
    requests of each. With `accounts`, each controller has the rights of its service account.
    """

    renew_deadline: float = 0.0
    qps: float = 0.0
    burst: int = 30
    accounts: bool = False


@dataclass(frozen=True)
class Client:
    """The connections of one identity, such as a controller.

    Controllers work on `objects`, which are in `store` or behind a remote API server; `metrics` are
    the metrics APIs of the same place.
    """

    identity: str
    io: RedisIO
    store: Store
    objects: Store | RemoteStore
    metrics: Metrics

    def close(self) -> None:
        """Closes the connections."""
        if self.objects is not self.store:
            cast("RemoteStore", self.objects).close()
        self.io.close()


class ClientBuilder:
    """Creates the clients of a process. The same identity always gets the same client."""

    def __init__(
        self,
        settings: Settings,
        clock: Clock,
        remote: ClusterConnection | None = None,
        shared: Store | None = None,
        use: RemoteUse = RemoteUse(),
    ) -> None:
        """With `shared`, all clients have this store and its connections."""
        self._shared = shared
        self.scheme = shared.scheme if shared is not None else Scheme()
        self._settings = settings
        self._links = Links()
        self._clock = clock
        # the API server with the objects of the controllers, or None for the objects in Redis
        self.remote = remote
        self.leadership: Leadership | None = None
        self._use = use
        self._root: RestClient | None = None
        if remote is not None and use.renew_deadline:
            io = RedisIO(settings, name=f"kcm/{ELECTION}-state", links=self._links)
            self.leadership = Leadership(io, clock, use.renew_deadline)
        self._lock = threading.Lock()
        self._clients: dict[str, Client] = {}
        self._connected: list[RemoteStore] = []

    def client(self, identity: str) -> Client:
        """Returns the client of `identity`, such as `replicaset-controller`."""
        with self._lock:
            if identity not in self._clients:
                self._clients[identity] = self._client(identity)
            return self._clients[identity]

    def _client(self, identity: str) -> Client:
        store = self._shared or Store(
            RedisIO(self._settings, name=f"kcm/{identity}", links=self._links),
            self._clock,
            scheme=self.scheme,
        )
        io = store.io
        if self.remote is None:
            metrics = StoredMetrics(UsageBoard(io), self._clock)
            return Client(identity, io, store, store, metrics)
        # Imported only when needed, as importing the HTTP client takes 0.1 s.
        from kcm.store.remote.metrics import RemoteMetrics  # noqa: PLC0415
        from kcm.store.remote.store import RemoteStore  # noqa: PLC0415

        account = find_account(identity) if self._use.accounts else ""
        reader = self._open_root() if account else None
        rest = self._open(self._connect_account(account) if account else self.remote, identity)
        state = _work_state(io)
        if self.leadership is not None and identity != ELECTION:
            state = replace(state, leads=self.leadership.leads)
        remote = RemoteStore(rest, state, self._clock, reader=reader, scheme=self.scheme)
        return Client(identity, io, store, remote, RemoteMetrics(rest))

    def _open(self, connection: ClusterConnection, identity: str) -> RestClient:
        from kcm.store.remote.rate import RequestRate  # noqa: PLC0415 - see above
        from kcm.store.remote.rest import RestClient  # noqa: PLC0415 - see above

        rate = RequestRate(self._use.qps, self._use.burst, self._clock)
        return RestClient(connection, identity, rate=rate, clock=self._clock)

    def _open_root(self) -> RestClient:
        """Returns the client that asks which kinds are served and for tokens, and reads what
        controllers may not.
        """
        assert self.remote is not None  # only for another API server
        if self._root is None:
            self._root = self._open(self.remote, "controller-manager")
        return self._root

    def _connect_account(self, account: str) -> ClusterConnection:
        """Returns the connection of a service account, whose token is asked for."""
        from kcm.store.remote.accounts import request_token  # noqa: PLC0415 - see above
        from kcm.store.remote.credentials import Credential  # noqa: PLC0415 - see above

        assert self.remote is not None  # only for another API server
        read = partial(request_token, self._open_root(), "kube-system", account)
        return self.remote.identify(Credential(read, self._clock))

    def discovery(self) -> Discovery:
        """Returns the discovery of the kinds that controllers may work on."""
        if self.remote is None:
            return Discovery(self.scheme)
        from kcm.store.remote.kinds import RemoteKinds  # noqa: PLC0415 - see above

        return Discovery(self.scheme, RemoteKinds(self._open_root(), self.scheme).refresh)

    def admitted(self, client: Client, rules: AdmissionRules) -> ObjectStore:
        """Returns the client's store, whose writes go through the API server where rules name them.
        There, they are those of the controller's service account.
        """
        from kcm.store.remote.admitted import AdmittedStore  # noqa: PLC0415 - see above

        def connect() -> RemoteStore | None:
            connection = find_admission_server(self._settings)
            if connection is None:
                return None
            from kcm.store.remote.rest import RestClient  # noqa: PLC0415 - see above
            from kcm.store.remote.store import RemoteStore  # noqa: PLC0415

            account = f"system:serviceaccount:kube-system:{client.identity}"
            headers = [
                ("Impersonate-User", account),
                *(("Impersonate-Group", group) for group in _ACCOUNT_GROUPS),
            ]
            rest = RestClient(connection, client.identity, headers)
            remote = RemoteStore(
                rest, _work_state(client.io), self._clock, scheme=client.store.scheme
            )
            with self._lock:
                self._connected.append(remote)
            return remote

        return AdmittedStore(client.store, connect, rules)

    def close(self) -> None:
        """Closes the connections of all clients."""
        with self._lock:
            for client in self._clients.values():
                client.close()
            for remote in self._connected:
                remote.close()
            if self.leadership is not None:
                self.leadership.close()
            if self._root is not None:
                self._root.close()


def _work_state(io: RedisIO) -> WorkState:
    from kcm.store.remote.work import WorkState  # noqa: PLC0415 - see above

    return WorkState(
        partial(_is_held, io),
        take_token=partial(_take_token, io),
        read_positions=partial(read_positions, io),
    )


def _is_held(io: RedisIO, fence: Fence) -> bool:
    """Reports whether a write under the fence would be allowed now."""
    held: bytes | None = io.execute("HGET", fence.key, fence.field)
    return held is not None and held.decode() == fence.token


def _take_token(io: RedisIO, bucket: str) -> bool:
    """Takes a token from a bucket. Returns False when the bucket is empty."""
    return bool(io.call("limiter_take", bucket)[0] == "OK")
