"""A live API server in a thread of the test process, over a private Redis."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx

from kcm.api.scheme import Resource
from kcm.apiserver import credentials
from kcm.apiserver.aggregation.aggregation import AggregationOptions
from kcm.apiserver.app import ApiServer, ApiServerOptions
from kcm.apiserver.auth.access import AccessRules
from kcm.apiserver.auth.attributes import User
from kcm.apiserver.auth.control import AuthOptions
from kcm.apiserver.auth.token_options import TokenFlags
from kcm.apiserver.bootstrap.cluster import ClusterBootstrap
from kcm.apiserver.http.limits import Limits
from kcm.apiserver.serving import Address, ApiHttpServer, bind, serve, url_of
from kcm.loops import ThreadHost
from kcm.redisio.pipelining import PipelinedIO
from kcm.settings import Settings
from kcm.store import Store
from kcm.testing.waiting import until

TOKEN = "a-token-for-tests"
USERS = {  # by their tokens
    "janes-token": User("jane", "uid-of-jane", ("dev",)),
    "bobs-token": User("bob"),
}
_PREFIXES = itertools.count()


@dataclass
class Live:
    """A running server, its store, and a client of an administrator."""

    url: str
    store: Store
    app: ApiServer
    client: httpx.Client
    kubeconfig: Path
    settings: Settings
    server: ApiHttpServer

    def as_user(self, token: str, **headers: str) -> httpx.Client:
        """Returns a client with this token, or without one for ''. The caller closes it."""
        given = headers | ({"authorization": f"Bearer {token}"} if token else {})
        verify = _context(self.kubeconfig.with_name("apiserver.crt"))
        return httpx.Client(base_url=self.url, headers=given, verify=verify, timeout=60)

    def request(self, method: str, path: str, body: Any = None, **kwargs: Any) -> httpx.Response:
        return self.client.request(method, path, json=body, **kwargs)

    def get(self, path: str, **params: Any) -> Any:
        """Returns the JSON at a path. Asks again when the server says so, as clients do."""
        answers: list[httpx.Response] = []

        def is_answered() -> bool:
            answers[:] = [self.client.get(path, params=params)]
            code, later = answers[0].status_code, "retry-after" in answers[0].headers
            return not (code == 503 and later)

        until(is_answered, f"an answer for {path}")
        assert answers[0].status_code == 200, answers[0].text
        return answers[0].json()

    def create(self, path: str, body: Any, **params: Any) -> Any:
        response = self.client.post(path, json=body, params=params)
        assert response.status_code == 201, response.text
        return response.json()

    def store_resource(self, group: str) -> Resource:
        """Returns the storage version of the CronTabs in a group."""
        return self.store.scheme.by_name(f"crontabs.{group}")

    def patch(self, path: str, body: Any, kind: str = "merge", **params: Any) -> httpx.Response:
        suffix = {"json": "json-patch", "strategic": "strategic-merge-patch"}
        media = f"application/{suffix.get(kind, 'merge-patch')}+json"
        return self.client.patch(path, json=body, params=params, headers={"content-type": media})


@contextmanager
def live(
    redis_url: str,
    folder: Path,
    authorities: Path | None = None,
    limits: Limits | None = None,
    aggregation: AggregationOptions | None = None,
    *,
    delay: float = 0.0,
) -> Iterator[Live]:
    """Yields a server whose keys in Redis no other test uses."""
    prefix = f"api{next(_PREFIXES)}"
    settings = Settings(redis_url=redis_url, state_dir=folder, prefix=prefix)
    io = PipelinedIO(settings)
    io.attach()
    io.execute("HSET", io.keys.meta(), "run_id", "former")  # so that low versions are of its past
    io.attach()
    store = Store(io)
    bootstrap = ClusterBootstrap(store)
    bootstrap.ensure()
    certificate = credentials.certificate(folder)
    listener = bind(Address(port=0))
    url = url_of(listener, certificate)
    tokens = TokenFlags().load(folder, url)
    app = ApiServer(
        store,
        AccessRules(TOKEN, users=USERS),
        ApiServerOptions(
            AuthOptions(tokens=tokens),
            limits=limits or Limits(),
            aggregation=aggregation or AggregationOptions(),
        ),
    )
    server = ApiHttpServer(app, certificate, authorities, delay=delay)
    credentials.write_kubeconfig(folder / "kubeconfig", url, TOKEN, certificate.certificate)
    thread = threading.Thread(target=serve, args=(server, app, listener))
    thread.start()
    beside = ThreadHost()
    beside.run(bootstrap)
    headers = {"authorization": f"Bearer {TOKEN}"}
    try:
        with httpx.Client(
            base_url=url, headers=headers, verify=_context(certificate.certificate), timeout=60
        ) as client:
            _wait_ready(client)
            yield Live(url, store, app, client, folder / "kubeconfig", settings, server)
    finally:
        server.should_exit = True
        beside.stop()
        thread.join(10)
        io.close()
    assert not thread.is_alive()


def _context(certificate: Path) -> Any:
    import ssl

    return ssl.create_default_context(cafile=str(certificate))


def _wait_ready(client: httpx.Client) -> None:
    def ready() -> bool:
        with suppress(httpx.TransportError):
            return client.get("/readyz").status_code == 200
        return False

    until(ready, "the server")
