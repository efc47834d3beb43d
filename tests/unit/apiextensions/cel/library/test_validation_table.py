"""What rules may say about objects with a schema.

The cases follow TestValidationExpressions in
staging/src/k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel/validation_test.go, Kubernetes
1.33: "stdlib list functions", "stdlib regex functions", "URL parsing", "optionals", and the
authorizer that rules do not have.
"""

from __future__ import annotations

from typing import Any

import pytest

from kcm.api.custom.structural_schema import parse
from kcm.apiextensions.cel.expressions import ExpressionResult, evaluate
from kcm.apiextensions.cel.values import to_cel
from tests.unit.apiextensions.samples import TEXT, WHOLE, struct

REAL = {"type": "number"}
SPAN = TEXT | {"format": "duration"}
DATE = TEXT | {"format": "date"}


def array(items: dict[str, Any]) -> dict[str, Any]:
    return {"type": "array", "items": items}


def three(name: str, items: dict[str, Any]) -> dict[str, Any]:
    """Returns the schemas of a list, an unsorted one and an empty one."""
    title = name[0].upper() + name[1:]
    return {key: array(items) for key in (name, f"unsorted{title}", f"empty{title}")}


URL = "https://user:pass@kubernetes.io:80/docs/home?k1=a&k2=b&k2=c#anchor"
SCHEMA = parse(
    struct(
        **three("ints", WHOLE),
        **three("doubles", REAL),
        **three("intBackedDoubles", REAL),
        **three("durations", SPAN),
        **three("strings", TEXT),
        **three("dates", DATE),
        objs=array(struct(f1=TEXT, f2=TEXT)),
        str=TEXT,
        url=TEXT,
        presentObj=struct(presentStr=TEXT),
        absentObj=struct(absentStr=TEXT),
        m={"type": "object", "additionalProperties": TEXT},
        l=array(TEXT),
    )
)
OBJECT: dict[str, Any] = {
    "ints": [1, 2, 2, 3], "unsortedInts": [2, 1], "emptyInts": [],
    "doubles": [1.0, 2.0, 2.0, 3.0], "unsortedDoubles": [2.0, 1.0], "emptyDoubles": [],
    "intBackedDoubles": [1, 2, 2, 3], "unsortedIntBackedDoubles": [2, 1],
    "emptyIntBackedDoubles": [],
    "durations": ["1s", "1m", "1m", "1h"], "unsortedDurations": ["1m", "1s"],
    "emptyDurations": [],
    "strings": ["a", "b", "b", "c"], "unsortedStrings": ["b", "a"], "emptyStrings": [],
    "dates": ["2000-01-01", "2000-02-01", "2000-02-01", "2010-01-01"],
    "unsortedDates": ["2000-02-01", "2000-01-01"], "emptyDates": [],
    "objs": [{"f1": "a", "f2": f2} for f2 in "abbc"],
    "str": "this is a 123 string 456",
    "url": URL,
    "presentObj": {"presentStr": "value"},
    "m": {"k": "v"},
    "l": ["a"],
}  # fmt: skip


def run(text: str) -> ExpressionResult:
    return evaluate(text, {"self": to_cel(OBJECT, SCHEMA)})


def of_kind(name: str, one: str, two: str, three: str, none: str) -> list[str]:
    """Returns the cases that all kinds of lists have in common."""
    title = name[0].upper() + name[1:]
    return [
        f"self.{name}.min() == {one}",
        f"self.{name}.max() == {three}",
        f"self.{name}.isSorted()",
        f"self.empty{title}.isSorted()",
        f"self.unsorted{title}.isSorted() == false",
        f"self.{name}.indexOf({two}) == 1",
        f"self.{name}.lastIndexOf({two}) == 2",
        f"self.{name}.indexOf({none}) == -1",
        f"self.{name}.lastIndexOf({none}) == -1",
    ]


def midnight(date: str) -> str:
    return f"timestamp('{date}T00:00:00.000Z')"


DATES = [midnight(date) for date in ("2000-01-01", "2000-02-01", "2010-01-01", "2005-02-01")]


@pytest.mark.parametrize(
    "text",
    [
        *of_kind("ints", "1", "2", "3", "10"),
        *of_kind("doubles", "1.0", "2.0", "3.0", "10.0"),
        *of_kind("intBackedDoubles", "1.0", "2.0", "3.0", "10.0"),
        *of_kind(
            "durations", "duration('1s')", "duration('1m')", "duration('1h')", "duration('2m')"
        ),
        *of_kind("strings", "'a'", "'b'", "'c'", "'x'"),
        *of_kind("dates", *DATES),
        "self.ints.sum() == 8",
        "self.emptyInts.sum() == 0",
        "self.doubles.sum() == 8.0",
        "self.emptyDoubles.sum() == 0.0",
        "self.intBackedDoubles.sum() == 8.0",
        "self.emptyIntBackedDoubles.sum() == 0.0",
        "self.durations.sum() == duration('1h2m1s')",
        "[[1], [2]].indexOf([1]) == 0",
        "[{'a': 1}, {'b': 2}].lastIndexOf({'b': 2}) == 1",
        "self.objs.indexOf(self.objs[1]) == 1",
        "self.objs.lastIndexOf(self.objs[1]) == 2",
        "([0] + self.emptyInts).min() == 0",
        "dyn([]).sum() == 0",
        "dyn([1, 2]).sum() == 3",
        "dyn([1.0, 2.0]).sum() == 3.0",
        "[].sum() == 0",
        "[true, 1].indexOf(1) == 1",
        "[1u, 2u].sum() == 3u && [b'b', b'a'].min() == b'a' && [true, false].max()",
    ],
)
def test_lists(text: str) -> None:
    result = run(text)
    assert (result.error, result.value) == ("", True)


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("self.emptyInts.min() == 1", "min called on empty list"),
        ("self.emptyInts.max() == 3", "max called on empty list"),
        ("self.emptyDoubles.min() == 1.0", "min called on empty list"),
        ("self.emptyStrings.max() == 'c'", "max called on empty list"),
        ("['a', 'b'].sum() == 'c'", "no such overload"),
        ("[[1], [2]].min() == [1]", "no such overload"),
        ("[{'a': 1}, {'b': 2}].max() == {'b': 2}", "no such overload"),
        ("[1, 'a'].isSorted()", "no such overload"),
        ("[1, true].max() == 1", "no such overload"),
        ("authorizer.path('/healthz').check('get').allowed()", "undeclared reference to 'auth"),
        ("self.str.find(')') == ''", "unexpected ): `)`"),
        ("self.absentObj.?absentStr == optional.none()", "absentObj"),
    ],
)
def test_errors(text: str, error: str) -> None:
    assert error in run(text).error


@pytest.mark.parametrize(
    "text",
    [
        "self.str.find('[0-9]+') == '123'",
        "self.str.find('[0-9]+') != '456'",
        "self.str.find('xyz') == ''",
        "self.str.findAll('[0-9]+') == ['123', '456']",
        "self.str.findAll('[0-9]+', 0) == []",
        "self.str.findAll('[0-9]+', 1) == ['123']",
        "self.str.findAll('[0-9]+', 3) == ['123', '456']",
        "self.str.findAll('[0-9]+', -1) == ['123', '456']",
        "self.str.findAll('xyz') == []",
        "self.str.findAll('xyz', 1) == []",
        "url('/path').getScheme() == ''",
        "url('https://example.com:80/').getHost() == 'example.com:80'",
        "url('https://[::1]:80/').getHost() == '[::1]:80'",
        "url('https://[::1]/').getHost() == '[::1]'",
        "url('/path').getHost() == ''",
        "url('https://[::1]/').getHostname() == '::1'",
        "url('https://example.com:80/').getPort() == '80'",
        "url('/path').getPort() == ''",
        "url('https://example.com').getEscapedPath() == ''",
        "url('https://example.com/path?').getQuery() == {}",
        "url(self.url).getHost() == 'kubernetes.io:80'",
        "url(self.url).getHostname() == 'kubernetes.io'",
        "url(self.url).getEscapedPath() == '/docs/home'",
        "url(self.url).getQuery() == {'k1': ['a'], 'k2': ['b', 'c']}",
        "isURL('https://user:pass@example.com:80/path?query=val#fragment')",
        "isURL('https://a:b:c/') == false",
        "isURL('../relative-path') == false",
    ],
)
def test_patterns_and_urls(text: str) -> None:
    result = run(text)
    assert (result.error, result.value) == ("", True)


@pytest.mark.parametrize(
    "text",
    [
        "self.?presentObj.?presentStr == optional.of('value')",
        "self.presentObj.?presentStr.or(optional.of('nope')) == optional.of('value')",
        "self.presentObj.?presentStr.orValue('') == 'value'",
        "self.presentObj.?presentStr.optMap(v, v == 'value').hasValue()",
        "self.?absentObj.?absentStr == optional.none()",
        "self.?absentObj.?absentStr.or(optional.of('nope')) == optional.of('nope')",
        "self.?absentObj.?absentStr.orValue('nope') == 'nope'",
        "self.?absentObj.?absentStr.optMap(v, v == 'value').hasValue() == false",
        "self.m[?'k'] == optional.of('v')",
        "self.m[?'x'].or(optional.of('nope')) == optional.of('nope')",
        "self.l[?0] == optional.of('a')",
        "self.l[?1] == optional.none()",
        "self.l[?0].optMap(v, v == 'a').hasValue()",
        "optional.ofNonZeroValue(1.1).hasValue()",
        "optional.ofNonZeroValue({'k': 'v'}).hasValue()",
        "optional.ofNonZeroValue(null) == optional.none()",
        "optional.ofNonZeroValue(uint(0)) == optional.none()",
        "optional.ofNonZeroValue(duration('0s')) == optional.none()",
        "{?'k': optional.none(), 'k2': 'v2'} == {'k2': 'v2'}",
        "['a', ?optional.of('v'), 'c'] == ['a', 'v', 'c']",
    ],
)
def test_optionals(text: str) -> None:
    result = run(text)
    assert (result.error, result.value) == ("", True)
