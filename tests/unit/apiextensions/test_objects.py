"""Custom objects are validated with all that they have."""

from __future__ import annotations

import pytest

from kcm.api import codec
from kcm.api.custom.kinds import CustomObject
from kcm.apiextensions import objects
from tests.unit.apiextensions.samples import SCHEME, TEXT, definition, serve, struct

MAY_BE_NULL = TEXT | {"nullable": True}


# Seen on kube-apiserver 1.36.2.
@pytest.mark.parametrize(
    ("schema", "faults"),
    [
        (MAY_BE_NULL, []),
        (MAY_BE_NULL | {"enum": ["x", "y"]},
         ['a: Unsupported value: null: supported values: "x", "y"']),
        (MAY_BE_NULL | {"enum": ["x", None]},
         ['a: Unsupported value: null: supported values: "x", "null"']),
    ],
)  # fmt: skip
def test_a_null_beside_the_spec_is_validated(schema: dict[str, object], faults: list[str]) -> None:
    with serve(definition(v1=struct(a=schema))):
        resource = SCHEME.by_name("crontabs.example.com")
        obj = codec.decode({"metadata": {"name": "one"}, "a": None}, resource)
        assert isinstance(obj, CustomObject)
        assert [str(fault) for fault in objects.validate(obj)] == faults
