"""Who says whether an API is available, while several API servers run."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from kcm.api.apiregistration_v1 import APIService, find_condition
from kcm.apiserver.aggregation.availability import PASSED, Outcome
from kcm.apiserver.aggregation.index import RemoteApi, describe
from kcm.apiserver.aggregation.status_writer import StatusWriter
from kcm.redisio import RedisIO
from kcm.redisio.embedded import EmbeddedServer
from kcm.settings import Settings
from kcm.store import Store
from tests.samples import sample

NAME = "apiservices.apiregistration.k8s.io"
FAILED = Outcome("False", "FailedDiscoveryCheck", "nobody answers")


@pytest.fixture
def store(redis_server: EmbeddedServer, tmp_path: Path) -> Iterator[Store]:
    with closing(RedisIO(Settings(redis_url=redis_server.url, prefix="agg-status"))) as io:
        io.attach()
        yield Store(io)
        io.execute("DEL", *io.scan("agg-status:*"))


def create(store: Store) -> RemoteApi:
    api = describe(store.create(sample(NAME)))
    assert api is not None
    return api


def reason(store: Store, api: RemoteApi) -> str | None:
    stored = store.get(APIService.resource, api.name)
    assert isinstance(stored, APIService)
    condition = find_condition(stored)
    return condition.reason if condition is not None else None


def test_one_server_at_a_time_writes(store: Store) -> None:
    api, one, other = create(store), StatusWriter(store), StatusWriter(store)
    assert one.acquire()
    assert not other.acquire()
    assert not one.write(api, PASSED)
    assert not other.write(api, FAILED)
    assert reason(store, api) == "Passed"
    one.release()
    assert other.acquire()
    assert not one.write(api, PASSED)
    assert other.write(api, FAILED)  # it has become unavailable
    assert reason(store, api) == "FailedDiscoveryCheck"
    assert not other.write(api, FAILED)
    other.release()


def test_nothing_is_written_without_a_change_or_about_another_server(store: Store) -> None:
    api, writer = create(store), StatusWriter(store)
    resource = APIService.resource
    assert writer.acquire()
    writer.write(api, PASSED)
    before = store.get(resource, api.name).metadata.resource_version
    writer.write(api, PASSED)
    assert store.get(resource, api.name).metadata.resource_version == before

    stored = store.get(resource, api.name)
    assert isinstance(stored, APIService)
    assert stored.spec.service is not None
    moved = stored.spec.service.replace(port=8443)
    store.update(stored.with_spec(stored.spec.replace(service=moved)))
    writer.write(api, FAILED)
    assert reason(store, api) == "Passed"
    store.delete(resource, api.name)
    assert not writer.write(api, FAILED)
    writer.release()
