from kcm.apimachinery.meta_v1 import KubeObject
from kcm.informers.indexer import Indexer
from tests.unit.informers.fakes import NODES, obj


def keys(objects: list[KubeObject]) -> list[str]:
    return sorted(o.key for o in objects)


def test_objects_are_found_by_key_and_returned_as_they_are() -> None:
    indexer: Indexer[KubeObject] = Indexer()
    one = obj("a/one")
    indexer.put(one.key, one)
    assert indexer.get_by_key("a/one") is one
    indexer.remove(one.key)
    assert indexer.get_by_key("a/one") is None


def test_lists_are_by_namespace() -> None:
    indexer: Indexer[KubeObject] = Indexer()
    for one in (obj("a/one"), obj("b/two"), obj("n1", resource=NODES)):
        indexer.put(one.key, one)
    assert keys(indexer.list()) == ["a/one", "b/two", "n1"]
    assert keys(indexer.list("a")) == ["a/one"]
    assert keys(indexer.list("")) == ["n1"]
