from kcm.api.meta_v1 import KubeObject, OwnerReference
from kcm.informers.indexer import (
    CONTROLLER_UID_INDEX,
    OWNER_UID_INDEX,
    Indexer,
    controller_uid_index,
    owner_uid_index,
)
from tests.unit.informers.fakes import NODES, obj


def owned(key: str, *owners: tuple[str, bool]) -> KubeObject:
    made = obj(key)
    made.metadata.owner_references = [
        OwnerReference(uid=uid, controller=controls) for uid, controls in owners
    ]
    return made


def keys(objects: list[KubeObject]) -> list[str]:
    return sorted(o.key for o in objects)


def test_objects_are_found_by_key_and_returned_as_they_are() -> None:
    indexer: Indexer[KubeObject] = Indexer()
    one = obj("a/one")
    indexer.add(one)
    assert indexer.get_by_key("a/one") is one
    assert indexer.get(obj("a/one", 7)) is one
    indexer.delete(obj("a/one"))
    assert indexer.get_by_key("a/one") is None


def test_lists_are_by_namespace() -> None:
    indexer: Indexer[KubeObject] = Indexer()
    indexer.replace([obj("a/one"), obj("b/two"), obj("n1", resource=NODES)])
    assert keys(indexer.list()) == ["a/one", "b/two", "n1"]
    assert keys(indexer.list("a")) == ["a/one"]
    assert keys(indexer.list("")) == ["n1"]


def test_owner_indexes_tell_controllers_from_other_owners() -> None:
    indexer: Indexer[KubeObject] = Indexer(
        {CONTROLLER_UID_INDEX: controller_uid_index, OWNER_UID_INDEX: owner_uid_index}
    )
    indexer.add(owned("a/one", ("rs", True), ("other", False)))
    indexer.add(obj("a/orphan"))
    assert indexer.index_values(CONTROLLER_UID_INDEX) == ["rs"]
    assert sorted(indexer.index_values(OWNER_UID_INDEX)) == ["other", "rs"]
    indexer.update(owned("a/one", ("other", False)))
    assert indexer.index_values(CONTROLLER_UID_INDEX) == []
