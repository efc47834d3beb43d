from __future__ import annotations

import pytest

from kcm.apiextensions.cel import cel_environment, expressions
from kcm.apiextensions.cel.costs.syntax import Form, Type, read

pytestmark = pytest.mark.skipif(not expressions.available(), reason="no library for CEL here")


def serialize(text: str) -> bytes:
    data: bytes = cel_environment.make().compile(text).serialize()
    return data


def test_a_call_has_its_overloads_and_its_parts_have_types() -> None:
    tree = read(serialize("'a'.matches('bcd') && -5 < 1"))
    assert (tree.root.form, tree.root.name) == (Form.CALL, "_&&_")
    matches, less = tree.root.parts
    assert matches.target is not None
    assert (matches.target.size, matches.parts[0].size) == (1, 3)
    assert tree.overloads[matches.number] == ("matches_string",)
    assert tree.types[matches.number] == Type("bool")
    assert less.parts[0].value == -5


def test_a_macro_is_a_loop() -> None:
    loop = read(serialize("[1, 2].all(x, x > 0)")).root.loop
    assert loop is not None
    assert (loop.variables, loop.items.size) == (("x", ""), 2)


def test_literals_of_maps_and_tests_for_fields_are_read() -> None:
    tree = read(serialize("has({'a': b'bc'}.a)"))
    assert (tree.root.form, tree.root.name, tree.root.only_tests) == (Form.FIELD, "a", True)
    assert tree.root.target is not None
    assert (tree.root.target.is_map, tree.root.target.size) == (True, 1)
    assert [part.size for part in tree.root.target.parts] == [1, 2]


@pytest.mark.parametrize("part", [slice(0, -1), slice(0, 0), slice(9, None)])
def test_what_is_no_expression_is_an_error(part: slice) -> None:
    with pytest.raises(ValueError, match="expression"):
        read(serialize("1 + 1")[part])


def test_an_expression_whose_types_are_not_checked_is_an_error() -> None:
    with pytest.raises(ValueError, match="have not been checked"):
        read(serialize("1 < 1.5"))
