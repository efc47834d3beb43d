"""Properties of all kinds of the scheme."""

import pytest

from kcm import errors
from kcm.api import codec
from kcm.api.scheme import BUILT_IN, Resource
from kcm.kinds import defaults
from kcm.kinds.validation import validate_create, validate_status_update, validate_update
from tests.samples import BODIES, manifest, sample

EVERY = pytest.mark.parametrize("resource", BUILT_IN.resources(), ids=str)


def test_every_kind_has_a_sample() -> None:
    assert BODIES.keys() == {resource.name for resource in BUILT_IN.resources()}


@EVERY
def test_a_plain_object_is_valid_and_may_be_updated_as_it_is(resource: Resource) -> None:
    obj = sample(resource.name)
    assert type(obj) is resource.model
    assert validate_create(obj) == []
    assert validate_update(obj, obj) == []
    if resource.has_status:
        assert validate_status_update(obj, obj) == []


@EVERY
def test_an_object_survives_a_round_trip_without_fields_that_nobody_knows(
    resource: Resource,
) -> None:
    strange = manifest(resource.name, surprise={"a": [1]})
    obj = codec.decode(strange, BUILT_IN)
    assert "surprise" not in codec.to_dict(obj)
    assert codec.decode(codec.encode(obj), BUILT_IN) == obj
    kept = codec.decode(strange, BUILT_IN, keep_unknown=True)
    assert codec.to_dict(kept)["surprise"] == {"a": [1]}


@EVERY
def test_defaults_are_filled_in_once(resource: Resource) -> None:
    obj = sample(resource.name)
    assert defaults.apply(obj) is obj


@EVERY
def test_an_empty_object_is_told_what_it_lacks(resource: Resource) -> None:
    errors = validate_create(defaults.apply(resource.model()))
    assert "metadata.name: Required value: name or generateName is required" in map(str, errors)


@EVERY
def test_a_name_of_the_wrong_type_is_refused(resource: Resource) -> None:
    with pytest.raises(errors.Invalid, match=r"metadata\.name"):
        codec.decode(manifest(resource.name, metadata={"name": 1}), BUILT_IN)


@EVERY
def test_status_and_model_agree(resource: Resource) -> None:
    assert ("status" in resource.model.model_fields) is resource.has_status
