"""Valid and invalid YAML files."""

import time
from typing import Any

import pytest

from kcm import errors
from kcm.api.codec import load_yaml_documents
from kcm.apimachinery import yaml_documents


def load(text: bytes | str) -> list[dict[str, Any]]:
    return load_yaml_documents(text, "web.yaml")


def refusal(text: bytes | str) -> str:
    with pytest.raises(errors.BadRequest) as caught:
        load(text)
    return caught.value.message


def value(text: str) -> object:
    return load(f"a: {text}")[0]["a"]


def test_documents_are_separated_and_empty_ones_skipped() -> None:
    assert load("---\na: 1\n---\n---\n# nothing\n---\nb: 2\n...\n") == [{"a": 1}, {"b": 2}]
    assert load("") == load("# only a remark\n") == []


def test_lists_are_unrolled() -> None:
    text = "kind: List\nitems:\n- kind: Pod\n- kind: Node\n---\nkind: PodList\nitems: [{a: 1}]\n"
    assert load(text) == [{"kind": "Pod"}, {"kind": "Node"}, {"a": 1}]
    assert load("kind: List\nitems:\n") == []
    assert load("kind: PriorityList\n") == [{"kind": "PriorityList"}]


def test_json_is_yaml() -> None:
    assert load(b'{"a": {"b": [1, "x", null, true]}}') == [{"a": {"b": [1, "x", None, True]}}]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("3", 3),
        ("-3", -3),
        ("+3", 3),
        ("0644", 420),
        ("0o644", 420),
        ("0x1F", 31),
        ("0b11", 3),
        ("1_000", 1000),
        ("08", 8.0),
        ("1.5", 1.5),
        ("1e3", 1000.0),
        (".5", 0.5),
        ("yes", True),
        ("off", False),
        ("~", None),
        ("", None),
        ("'yes'", "yes"),
        ('"3"', "3"),
        ("!!str 3", "3"),
        ("!!int 3", 3),
        ("!!null x", None),
        ("2024-01-01", "2024-01-01"),
        ("12:30:45", "12:30:45"),
        ("1.2.3", "1.2.3"),
        ("0x", "0x"),
        ("100m", "100m"),
        ("nginx:1.25", "nginx:1.25"),
        ("|\n  two\n  lines\n", "two\nlines\n"),
    ],
)
def test_scalars_mean_what_they_mean_to_kubernetes(
    text: str, expected: bool | float | int | str | None
) -> None:
    new_object = value(text)
    assert new_object == expected
    assert type(new_object) is type(expected)


def test_keys_are_text_as_they_stand() -> None:
    assert load("on: 1\n2: x\n0644: z\n") == [{"on": 1, "2": "x", "0644": "z"}]


def test_anchors_aliases_and_merges_are_followed() -> None:
    text = "base: &b {x: 1, y: 2}\ncopy: *b\nmerged: {<<: *b, y: 3}\nboth: {<<: [*b, {z: 9}]}\n"
    assert load(text)[0] == {
        "base": {"x": 1, "y": 2},
        "copy": {"x": 1, "y": 2},
        "merged": {"x": 1, "y": 3},
        "both": {"x": 1, "y": 2, "z": 9},
    }


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a: [1,", "web.yaml:2:1: did not find expected node content"),
        ("a: 1\n b: 2\n", "web.yaml:2:3: mapping values are not allowed"),
        ("a: 1\na: 2\n", 'web.yaml:2:1: key "a" already set in map'),
        ("{a: {b: 1, b: 2}}", 'web.yaml:1:12: key "b" already set in map'),
        ("[1]: 2", "web.yaml:1:1: a key must be a string"),
        ("? {a: 1}\n: 2", "web.yaml:1:3: a key must be a string"),
        ("a: &x {b: *x}", 'web.yaml:1:11: unknown anchor "x"'),
        ("a: *nope", 'web.yaml:1:4: unknown anchor "nope"'),
        ("a: .nan", "web.yaml:1:4: .nan is not a JSON value"),
        ("a: -.inf", "web.yaml:1:4: -.inf is not a JSON value"),
        ("a: 1e999", "web.yaml:1:4: number 1e999 is out of range"),
        ("a: " + "9" * 5000, "web.yaml:1:4: number is out of range"),
        ("a: !!python/object:os.system x", "is not supported"),
        ("a: !!binary aGk=", "is not supported"),
        ("a: {<<: 3}", "map merge requires map"),
        ("- 1\n", "web.yaml:1: a document must be a mapping"),
        ("---\na: 1\n---\ntext\n", "web.yaml:3: a document must be a mapping"),
        ("kind: List\nitems: 3\n", "web.yaml:1: the items of a List must be objects"),
        ("kind: List\nitems: [3]\n", "web.yaml:1: the items of a List must be objects"),
        ("[" * 200 + "]" * 200, "web.yaml:1:129: nested deeper than 128"),
        ("a: \x00", "web.yaml"),
        (b"\xff\xfe\x00", "web.yaml"),
        (b"a: \x80", "web.yaml"),
        ("a: '\ud800'", "web.yaml"),
    ],
)
def test_what_is_wrong_is_said_with_source_line_and_column(text: bytes | str, message: str) -> None:
    assert message in refusal(text)


def test_keys_that_are_repeated_are_told_with_their_lines_and_the_last_one_counts() -> None:
    repeated: list[str] = []
    text = "a: 1\nb: {c: 2, c: 3}\na: 4\n"
    assert load_yaml_documents(text, repeated=repeated) == [{"a": 4, "b": {"c": 3}}]
    assert repeated == ['line 2: key "c" already set in map', 'line 3: key "a" already set in map']


def test_a_very_deep_document_is_refused_without_recursion() -> None:
    assert "nested deeper" in refusal("[" * 50_000)
    assert "nested deeper" in refusal("- " * 50_000)


def test_an_alias_bomb_is_refused_before_it_is_expanded() -> None:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    for level in range(1, 12):
        lines.append(f"a{level}: &a{level} [{', '.join([f'*a{level - 1}'] * 10)}]")
    assert "excessive aliasing" in refusal("\n".join(lines))


@pytest.mark.parametrize(
    "text",
    [
        "a: &a " + "x" * 1_000_000 + "\nb: [" + "*a," * 500_000 + "]",
        "a: &a {? " + "x" * 1_000_000 + " : 1}\nb: [" + "*a," * 500_000 + "]",
        "---\n".join("a: &a " + "x" * 2_000 + "\nb: [" + "*a," * 2_000 + "]\n" for _ in range(9)),
    ],
    ids=["long values", "long keys", "in many documents"],
)
def test_aliases_of_long_text_are_refused_before_they_are_expanded(text: str) -> None:
    before = time.process_time()
    assert "excessive aliasing" in refusal(text)
    assert time.process_time() - before < 5


def test_many_merges_take_the_time_that_they_are_long() -> None:
    merges = ",".join(f"{{k{n}: {n}, same: {n}}}" for n in range(50_000))
    before = time.process_time()
    (document,) = load(f"<<: [{merges}]\nk3: own\n")
    assert time.process_time() - before < 10
    assert (document["k0"], document["k3"], document["same"]) == (0, "own", 0)


@pytest.mark.parametrize("text", ["0x" + "f" * 4_000, "0b" + "1" * 4_000, "0o" + "7" * 4_000])
def test_a_number_larger_than_any_of_gos_is_text(text: str) -> None:
    assert value(text) == text


@pytest.mark.parametrize(
    "text",
    [
        '{"kind": "ConfigMap", "data": {"a": "yes", "b": "12:30", "c": "0644", "d": ""}}',
        '{"int": 7, "minus": -7, "float": 1.5, "large": 1e3, "whole": 1.0, "none": null}',
        '{"list": [1, [2, {"three": []}], {}], "unicode": "é😀", "slash": "a\\/b\\n"}',
        '{"kind": "List", "items": [{"kind": "Pod"}, {"kind": "Node"}]}',
        '{"escaped": "\\u00e9\\ud83d\\ude00"}',
        '{"beyond": 18446744073709551616, "almost": 1234567890123456789}',
        '{"merged": {"<<": {"a": 1}, "b": 2}}',
        '{"a": 1,}',
        "{a: yes, b: [no]}",
        '{"first": 1}\n---\n{"second": 2}',
        '{"twice": 1, "twice": 2}',
        '{"constant": NaN}',
        '{"cut": ',
        '{"deep": ' + "[" * 200 + "]" * 200 + "}",
        '{"tab":\t1}',
        '{"infinite": 1e400, "minus": -0, "small": 1e-7}',
        *(f'{{"odd": "a{sign} b"}}' for sign in "\x7f\x80\x85\x9f\u2028\u2029\ufeff\ufffe\uffff\t"),
    ],
)
def test_json_means_what_it_means_as_yaml(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def read() -> object:
        try:
            return load_yaml_documents(text)
        except errors.BadRequest as error:
            return str(error)

    as_json = read()
    monkeypatch.setattr(yaml_documents, "_read_json", lambda _: None)
    assert repr(read()) == repr(as_json)
