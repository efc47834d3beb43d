import pytest

from kcm.apimachinery.labels import Selector
from kcm.apimachinery.meta_v1 import KubeObject
from kcm.errors import NotFound
from kcm.informers.indexer import NAMESPACE_INDEX, Indexer
from kcm.informers.lister import Lister
from tests.unit.informers.fakes import REPLICASETS, obj


@pytest.fixture
def lister() -> Lister[KubeObject]:
    indexer: Indexer[KubeObject] = Indexer()
    indexer.replace(
        [obj("a/one", colour="red"), obj("a/two", colour="blue"), obj("b/one", colour="red")]
    )
    return Lister(indexer, REPLICASETS)


def keys(objects: list[KubeObject]) -> list[str]:
    return sorted(o.key for o in objects)


def test_lists_select_by_label(lister: Lister[KubeObject]) -> None:
    assert keys(lister.list()) == ["a/one", "a/two", "b/one"]
    assert keys(lister.list(Selector.parse("colour=red"))) == ["a/one", "b/one"]
    assert keys(lister.list(Selector.parse(""))) == ["a/one", "a/two", "b/one"]


def test_a_namespace_lists_and_gets_its_own(lister: Lister[KubeObject]) -> None:
    assert keys(lister.namespace("a").list()) == ["a/one", "a/two"]
    assert keys(lister.namespace("a").list(Selector.parse("colour=blue"))) == ["a/two"]
    assert lister.namespace("b").get("one").key == "b/one"
    with pytest.raises(NotFound, match=r'replicasets.apps "two" not found'):
        lister.namespace("b").get("two")


def test_get_is_by_key(lister: Lister[KubeObject]) -> None:
    assert lister.get("a/two").key == "a/two"
    with pytest.raises(NotFound, match=r'replicasets.apps "three" not found'):
        lister.get("a/three")


def test_named_indexes_are_read_through(lister: Lister[KubeObject]) -> None:
    assert keys(lister.by_index(NAMESPACE_INDEX, "b")) == ["b/one"]
