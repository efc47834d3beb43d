from __future__ import annotations

from typing import Any

import pytest

from kcm.api.core_v1 import Node
from kcm.api.scheme import Resource, Scheme
from kcm.errors import Forbidden
from kcm.informers.factory import SharedInformerFactory
from kcm.informers.options import InformerOptions
from kcm.informers.source import FullList
from kcm.reconcile.caches import Caches, list_declared_models
from kcm.reconcile.contract import Controller, Watch, own_key
from kcm.store.remote.metrics import RemoteMetrics
from kcm.testing.clock import FakeClock
from tests.unit.informers.fakes import NODES, PODS, FakeSource
from tests.unit.store.remote.answers import Answers


class EveryKind(Controller):
    name = "every-kind-controller"

    def watches(self) -> tuple[Watch[Any], ...]:
        return (Watch(None, own_key),)


class Nodes(Controller):
    name = "nodes-controller"

    def watches(self) -> tuple[Watch[Any], ...]:
        return (Watch(Node, own_key),)


class NodesOfNow(Nodes):
    needs_kinds = True


class RefusingSource(FakeSource):
    """Refuses to list one kind."""

    refused: Resource | None = NODES

    def list_all(self, resource: Resource) -> FullList:
        if resource is self.refused:
            raise Forbidden("nodes is forbidden")
        return super().list_all(resource)


class Server:
    """The caches of a server with two kinds. `asked` is how often it was asked for its kinds."""

    def __init__(self) -> None:
        self.asked = 0
        self.source, self.clock, scheme = RefusingSource(), FakeClock(), Scheme()
        scheme.replace_all([PODS, NODES], {})
        options = InformerOptions(threaded=False)
        factory = SharedInformerFactory(self.source, clock=self.clock, options=options)
        self.caches = Caches(factory, RemoteMetrics(Answers({})), scheme, discover=self._discover)

    def _discover(self) -> None:
        self.asked += 1

    def list_kinds(self, controller: Controller) -> list[str]:
        """Returns the kinds that the controller has after another turn."""
        self.caches.factory.start()
        self.caches.factory.loop.turn(0.0)
        self.caches.follow()
        return sorted(resource.name for resource in self.caches.resources(controller))


@pytest.fixture
def server() -> Server:
    return Server()


def test_a_kind_that_may_not_be_listed_is_left_out_of_every_kind(server: Server) -> None:
    every, nodes = EveryKind(), Nodes()
    server.caches.ensure([every, nodes])
    assert server.list_kinds(every) == ["pods"]
    assert server.list_kinds(nodes) == ["nodes"]
    server.source.refused = None
    server.clock.step(1.0)
    assert server.list_kinds(every) == ["nodes", "pods"]


def test_only_who_needs_every_kind_of_now_asks_for_the_kinds(server: Server) -> None:
    nodes, of_now = Nodes(), NodesOfNow()
    server.caches.ensure([nodes, of_now])
    server.caches.present(nodes)
    assert server.asked == 0
    server.caches.present(of_now)
    assert server.asked == 1


class Scales(Nodes):
    name = "scales-controller"
    reads_scales = True


def test_who_reads_scales_has_every_kind_that_can_be_scaled() -> None:
    declared = {model.resource.plural for model in list_declared_models(Scales(), Scheme())}
    assert declared == {
        "deployments", "nodes", "replicasets", "replicationcontrollers", "statefulsets",
    }  # fmt: skip
