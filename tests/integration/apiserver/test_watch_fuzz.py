"""Whatever is written and cut, a client's copy is what the store has in the end."""

from __future__ import annotations

import random

import pytest

from kcm.testing.waiting import until
from tests.integration.apiserver.reflecting import Objects, Reflector
from tests.integration.apiserver.serving import Live

OPERATIONS = 200
STYLES = [("list", ""), ("pages", ""), ("stream", ""), ("list", "tier=gold"), ("stream", "tier")]


class Writer:
    """Writes ConfigMaps at random, and cuts whoever watches them."""

    def __init__(self, api: Live, path: str, reflectors: list[Reflector], seed: int) -> None:
        self._api, self._path = api, path
        self._reflectors = reflectors
        self._random = random.Random(seed)

    def step(self, number: int) -> None:
        chance = self._random.random()
        name = f"c{self._random.randrange(12)}"
        if chance < 0.35:
            body = {"metadata": {"name": name, "labels": self._labels()}}
            self._api.request("POST", self._path, body)
        elif chance < 0.7:
            change = {"metadata": {"labels": self._labels()}, "data": {"n": str(number)}}
            self._api.patch(f"{self._path}/{name}", change)
        elif chance < 0.9:
            self._api.request("DELETE", f"{self._path}/{name}")
        else:
            self._random.choice(self._reflectors).cut()

    def _labels(self) -> dict[str, str | None]:
        return {"tier": self._random.choice(["gold", "iron", None])}

    def present(self, selector: str) -> Objects:
        items = self._api.get(self._path, **({"labelSelector": selector} if selector else {}))[
            "items"
        ]
        return {one["metadata"]["name"]: one["metadata"]["resourceVersion"] for one in items}


@pytest.mark.parametrize("seed", range(4))
def test_a_reflectors_copy_is_what_the_store_has(api: Live, seed: int) -> None:
    name = f"fuzz-{seed}"
    api.create("/api/v1/namespaces", {"metadata": {"name": name}})
    path = f"/api/v1/namespaces/{name}/configmaps"
    reflectors = [
        Reflector(api, path, style, selector, seed * 10 + number)
        for number, (style, selector) in enumerate(STYLES)
    ]
    for reflector in reflectors:
        reflector.start()
    writer = Writer(api, path, reflectors, seed)
    for number in range(OPERATIONS):
        writer.step(number)
    try:
        for reflector, (style, selector) in zip(reflectors, STYLES, strict=True):
            wanted = writer.present(selector)
            what = f"the copy of {style} {selector}"
            until(lambda r=reflector, w=wanted: r.faults or r.copy == w, what)  # type: ignore[misc]
            assert not reflector.faults
            assert reflector.copy == wanted
    finally:
        for reflector in reflectors:
            reflector.stop()
    assert sum(reflector.watches for reflector in reflectors) > 2 * len(reflectors)
