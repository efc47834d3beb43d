"""Sets, and macros with two variables.

The cases follow ext/sets_test.go and ext/comprehensions_test.go of cel-go, without those that need
functions which Kubernetes does not have (flatten, sort).
"""

from __future__ import annotations

import pytest

from kcm.apiextensions.cel.expressions import compile_expression, evaluate
from tests.unit.apiextensions.cel.library.test_functions import value_of


# After TestSets.
@pytest.mark.parametrize(
    "text",
    [
        "sets.contains(dyn([5, 4, 3, 2, 1]), [1, 2, 3])",
        "sets.contains([5, 4, 3, 2, 1], [1, 1, 1, 1, 1])",
        "sets.contains([], [])",
        "sets.contains([1], [])",
        "sets.contains([1], [1])",
        "sets.contains([1], [1, 1])",
        "sets.contains([1, 1], [1])",
        "sets.contains([2, 1], [1])",
        "sets.contains([1, 2, 3, 4], [2, 3])",
        "sets.contains([1], [1.0, 1])",
        "sets.contains([1, 2], [2u, 2.0])",
        "sets.contains([1, 2u], [2, 2.0])",
        "sets.contains([1, 2.0, 3u], [1.0, 2u, 3])",
        "sets.contains([[1], [2, 3]], [[2, 3.0]])",
        "!sets.contains([1], [2])",
        "!sets.contains([1], [1, 2])",
        '!sets.contains([1], ["1", 1])',
        "!sets.contains([1], [1.1, 1u])",
        "sets.equivalent([], [])",
        "sets.equivalent([1], [1])",
        "sets.equivalent([1], [1, 1])",
        "sets.equivalent([1, 1], [1])",
        "sets.equivalent([1], [1u, 1.0])",
        "sets.equivalent([1, 2, 3], [3u, 2.0, 1])",
        "sets.equivalent([[1.0], [2, 3]], [[1], [2, 3.0]])",
        "!sets.equivalent([2, 1], [1])",
        "!sets.equivalent([1], [1, 2])",
        "!sets.equivalent([1, 2], [2u, 2, 2.0])",
        "!sets.equivalent([1, 2], [1u, 2, 2.3])",
        "sets.intersects([1], [1])",
        "sets.intersects([1], [1, 1])",
        "sets.intersects([1, 1], [1])",
        "sets.intersects([2, 1], [1])",
        "sets.intersects([1], [1, 2])",
        "sets.intersects([1], [1.0, 2])",
        "sets.intersects([1, 2], [2u, 2, 2.0])",
        "sets.intersects([1, 2], [1u, 2, 2.3])",
        "sets.intersects([[1], [2, 3]], [[1, 2], [2, 3.0]])",
        "!sets.intersects([], [])",
        "!sets.intersects([1], [])",
        "!sets.intersects([1], [2])",
        '!sets.intersects([1], ["1", 2])',
        "!sets.intersects([1], [1.1, 2u])",
    ],
)
def test_sets(text: str) -> None:
    assert value_of(text) is True


WORDS = "['hello', 'world', 'hello!', 'worlds']"
STARTS = "v.startsWith('hello') && l[?(i+1)].optMap(next, next.endsWith('world')).orValue(false)"


# After TestTwoVarComprehensions.
@pytest.mark.parametrize(
    "text",
    [
        "[1, 2, 3, 4].all(i, v, i < 5 && v > 0)",
        "[1, 2, 3, 4].all(i, v, i < v)",
        "[1, 2, 3, 4].all(i, v, i > v) == false",
        "cel.bind(a, [1, 2], cel.bind(b, [1, 2, 3], a.all(i, v, b[?i].hasValue() && b[i] == v)))",
        f"cel.bind(l, {WORDS}, l.exists(i, v, {STARTS}))",
        f"cel.bind(l, {WORDS}, l.existsOne(i, v, {STARTS}))",
        f"cel.bind(l, {WORDS}, l.exists_one(i, v, {STARTS}))",
        "['Hello', 'world'].transformList(i, v, '[%d]%s'.format([i, v.lowerAscii()]))"
        " == ['[0]hello', '[1]world']",
        "['hello', 'world'].transformList(i, v, v.startsWith('greeting'), v) == []",
        "[1, 2, 3].transformList(i, v, (i * v) + v) == [1, 4, 9]",
        "[1, 2, 3].transformList(i, v, i % 2 == 0, (i * v) + v) == [1, 9]",
        "['Hello', 'world'].transformMap(i, v, [v.lowerAscii()]) == {0: ['hello'], 1: ['world']}",
        "[1, 2, 3].transformMap(i, v, (i * v) + v) == {0: 1, 1: 4, 2: 9}",
        "[1, 2, 3].transformMap(i, v, i % 2 == 0, (i * v) + v) == {0: 1, 2: 9}",
        "'key1:value1:extra key2:value2 key3'.split(' ').transformMapEntry(i, v, "
        "cel.bind(entry, v.split(':'), {?entry[0]: entry[?1]}))"
        " == {'key1': 'value1', 'key2': 'value2'}",
        "{'hello': 'world', 'hello!': 'world'}.all(k, v, k.startsWith('hello') && v == 'world')",
        "{'hello': 'world', 'hello!': 'worlds'}.exists(k, v, v.endsWith('world'))",
        "{'hello': 'world', 'hello!': 'worlds'}.existsOne(k, v, v.endsWith('world'))",
        "{'hello': 'world', 'hello!': 'worlds'}.exists_one(k, v, v.endsWith('world'))",
        "{'hello': 'world', 'hello!': 'wow, world'}.exists_one(k, v, v.endsWith('world')) == false",
        "{'Hello': 'world'}.transformList(k, v, '%s=%s'.format([k.lowerAscii(), v]))"
        " == ['hello=world']",
        "dyn({'Hello': 'world'}).transformList(k, v, k) == ['Hello']",
        "{'hello': 'world'}.transformList(k, v, k.startsWith('greeting'), k) == []",
        "{'hello': 'world', 'bye': 'cruel world'}.transformMap(k, v, '%s, %s!'.format([k, v]))"
        " == {'hello': 'hello, world!', 'bye': 'bye, cruel world!'}",
        "dyn({'a': 'world'}).transformMap(k, v, v.startsWith('world'), k) == {'a': 'a'}",
        "{'hello': 'world', 'a': 'b'}.transformMapEntry(k, v, {v: k})"
        " == {'world': 'hello', 'b': 'a'}",
        "{'hello': 'world', 'a': 'a'}.transformMapEntry(k, v, v == k, {k: v}) == {'a': 'a'}",
        "{'hello': 'world'}.transformMapEntry(k, v, {}) == {}",
        "[1, 2].exists_one(i, i == 1)",
    ],
)
def test_macros_with_two_variables(text: str) -> None:
    assert value_of(text) is True


# After TestTwoVarComprehensionsStaticErrors.
@pytest.mark.parametrize(
    "text",
    [
        "[].all(i, i, i < i)",
        "[].all(i.j, k, i.j < k)",
        "[].exists_one(i.j, k, i.j < k)",
        "1.all(j, k, j < k)",
        "{}.transformMap(i.j, k, i.j + k)",
        "{'hello': 'world'}.transformMapEntry(k, v, []) == {}",
    ],
)
def test_wrong_macros_do_not_compile(text: str) -> None:
    assert compile_expression(text).error


# After TestTwoVarComprehensionsRuntimeErrors.
@pytest.mark.parametrize("text", ["[1, 1]", "[1, 1u]"])
def test_no_key_is_inserted_twice(text: str) -> None:
    result = evaluate(f"dyn({text}).transformMapEntry(i, v, {{v: i}}) == {{}}", {})
    assert result.error == "insert failed: key 1 already exists"
