"""A namespace with something of every kind goes away, in real workers."""

from __future__ import annotations

import pytest

from kcm import errors
from kcm.api import codec, scheme
from kcm.api.core_v1 import Namespace
from kcm.apimachinery.meta_v1 import ObjectMeta
from kcm.testing.waiting import until
from tests.chaos.cluster import Cluster
from tests.samples import BODIES, manifest

pytestmark = pytest.mark.scenario
NAMESPACES = scheme.resource_of(Namespace)


def test_a_namespace_full_of_all_kinds_goes_away() -> None:
    kinds = [scheme.by_name(name) for name in BODIES if scheme.by_name(name).namespaced]
    cluster = Cluster(workers=1)
    try:
        cluster.start()
        cluster.store.create(Namespace(metadata=ObjectMeta(name="team")))
        for kind in kinds:
            body = manifest(kind.name)
            body["metadata"]["namespace"] = "team"
            body.get("involvedObject", {})["namespace"] = "team"
            cluster.store.create(codec.decode(body, kind))
        cluster.store.delete(NAMESPACES, "team")
        until(lambda: is_gone(cluster), "the end of the namespace")
        assert [k for k in kinds if cluster.store.list(k, "team").items] == []
    finally:
        cluster.stop()


def is_gone(cluster: Cluster) -> bool:
    try:
        cluster.store.get(NAMESPACES, "team")
    except errors.NotFound:
        return True
    return False
