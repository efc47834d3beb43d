"""Owner references."""

from kcm.apimachinery.ownership import controller_of, is_controlled_by, new_controller_ref
from kcm.testing import builders


def test_a_new_controller_reference_names_kind_and_incarnation() -> None:
    owner = builders.replica_set("web")
    reference = new_controller_ref(owner)
    assert (reference.api_version, reference.kind, reference.name) == (
        "apps/v1",
        "ReplicaSet",
        "web",
    )
    assert reference.uid == owner.uid
    assert reference.controller is reference.block_owner_deletion is True


def test_the_controller_is_the_one_reference_that_says_so() -> None:
    owner, other = builders.replica_set("web"), builders.replica_set("other")
    references = [builders.owner_reference(other), new_controller_ref(owner)]
    pod = builders.pod(metadata={"owner_references": references})
    assert controller_of(pod) is references[1]
    assert is_controlled_by(pod, owner)
    assert not is_controlled_by(pod, other)


def test_an_object_without_owners_has_no_controller() -> None:
    assert controller_of(builders.pod()) is None
    assert not is_controlled_by(builders.pod(), builders.replica_set())


def test_an_owner_made_anew_under_the_same_name_is_another_owner() -> None:
    owner = builders.replica_set("web")
    pod = builders.pod(owner=owner)
    assert not is_controlled_by(pod, owner.with_metadata(uid="another"))
