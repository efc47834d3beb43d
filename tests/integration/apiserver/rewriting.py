"""Random writes of ConfigMaps, and the reflectors that must end with what the store has."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import timedelta

import httpx

from kcm.api.core_v1 import ConfigMap
from kcm.redisio import RedisIO
from kcm.store import Store
from kcm.store.watch import Retention, trim
from kcm.testing.builders import config_map
from kcm.testing.waiting import until
from tests.integration.apiserver.reflecting import Objects, Reflector
from tests.new_objects import strip_store_fields

STYLES = [("list", ""), ("pages", ""), ("stream", ""), ("list", "tier=gold"), ("stream", "tier")]
_BURST = 5  # ConfigMaps that are written past the server at a time
_CONFIG_MAPS = ConfigMap.resource


def path_in(namespace: str) -> str:
    """Returns the path of the ConfigMaps in a namespace."""
    return f"/api/v1/namespaces/{namespace}/configmaps"


class Writer:
    """Writes ConfigMaps at random, cuts watches, and empties the watch log."""

    def __init__(
        self,
        client: httpx.Client,
        io: RedisIO,
        namespace: str,
        reflectors: Sequence[Reflector],
        seed: int,
    ) -> None:
        self._client, self._path = client, path_in(namespace)
        self._io, self._store, self._namespace = io, Store(io), namespace
        self._direct: list[str] = []  # keys of what was written past the server
        self._reflectors = reflectors
        self._random = random.Random(seed)
        self._number = 0

    def step(self) -> None:
        chance = self._random.random()
        if chance < 0.9:
            self.write()
        elif chance < 0.97:
            self._random.choice(self._reflectors).cut()
        else:
            self.compact()

    def compact(self) -> None:
        """Writes past the server, and empties the watch log before the server can have read it."""
        self.write_past_server()
        trim(self._io, [_CONFIG_MAPS], Retention(timedelta(0), 0))

    def write_past_server(self) -> None:
        """Writes to the store: some ConfigMaps more, and without those of the last call."""
        for key in self._direct:
            self._store.delete(_CONFIG_MAPS, key)
        names = [f"d{self._number}-{number}" for number in range(_BURST)]
        self._direct = [f"{self._namespace}/{name}" for name in names]
        self._number += 1
        for name in names:
            metadata = {"labels": {"tier": "gold"}}
            made = config_map(name, namespace=self._namespace, metadata=metadata)
            self._store.create(strip_store_fields(made))

    def write(self) -> None:
        chance = self._random.random()
        self._number += 1
        name = f"c{self._random.randrange(12)}"
        labels = self._labels()
        if chance < 0.4:
            body = {"metadata": {"name": name, "labels": labels}}
            self._client.post(self._path, json=body)
        elif chance < 0.8:
            change = {"metadata": {"labels": labels}, "data": {"n": str(self._number)}}
            media = {"content-type": "application/merge-patch+json"}
            self._client.patch(f"{self._path}/{name}", json=change, headers=media)
        else:
            self._client.delete(f"{self._path}/{name}")

    def _labels(self) -> dict[str, str | None]:
        return {"tier": self._random.choice(["gold", "iron", None])}

    def clear(self) -> None:
        """Deletes everything at once."""
        self._direct = []
        self._client.delete(self._path)

    def present(self, selector: str) -> Objects:
        params = {"labelSelector": selector} if selector else {}
        items = self._client.get(self._path, params=params).json()["items"]
        return {one["metadata"]["name"]: one["metadata"]["resourceVersion"] for one in items}


@contextmanager
def reflecting(
    client: Callable[[], httpx.Client], namespace: str, seed: int
) -> Iterator[list[Reflector]]:
    """Yields running reflectors, one of each style, with a client of its own each."""
    reflectors = [
        Reflector(client(), path_in(namespace), style, selector, seed * 10 + number)
        for number, (style, selector) in enumerate(STYLES)
    ]
    for reflector in reflectors:
        reflector.start()
    try:
        yield reflectors
    finally:
        for reflector in reflectors:
            reflector.stop()


def check_copies(reflectors: Sequence[Reflector], writer: Writer) -> None:
    """Waits until each copy is what the store has, and fails if a reflector had a fault."""
    for reflector, (style, selector) in zip(reflectors, STYLES, strict=True):
        wanted = writer.present(selector)
        what = f"the copy of {style} {selector}"
        until(lambda r=reflector, w=wanted: r.faults or r.copy == w, what)  # type: ignore[misc]
        assert not reflector.faults, reflector.faults
