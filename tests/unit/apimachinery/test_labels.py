"""Label selectors: parsing, formatting, matching."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kcm import errors
from kcm.apimachinery.labels import Requirement, Selector
from kcm.apimachinery.meta_v1 import LabelSelector, LabelSelectorRequirement

KEYS = st.from_regex(r"[a-z]([a-z0-9]{0,5})", fullmatch=True)
VALUES = st.from_regex(r"([a-z0-9]{1,5})?", fullmatch=True)
SETS = st.dictionaries(KEYS, VALUES, max_size=4)


@pytest.mark.parametrize(
    ("text", "printed"),
    [
        ("", ""),
        ("a=b", "a=b"),
        ("a==b", "a==b"),
        ("a != b", "a!=b"),
        ("b,a", "a,b"),
        ("!a", "!a"),
        ("a in (d, c)", "a in (c,d)"),
        ("a notin (c)", "a notin (c)"),
        ("a in (,c)", "a in (,c)"),
        ("a in ()", "a in ()"),
        ("a=", "a="),
        ("a>1,b<2", "a>1,b<2"),
        ("example.com/a=b", "example.com/a=b"),
        ("a=b,c in (d,e),!f", "a=b,c in (d,e),!f"),
        ("in in (in)", "in in (in)"),
    ],
)
def test_a_selector_prints_as_upstream_prints_it(text: str, printed: str) -> None:
    assert str(Selector.parse(text)) == printed
    assert str(Selector.parse(printed)) == printed


@pytest.mark.parametrize(
    "text",
    [
        "=",
        ",",
        ",a",
        "a,",
        "a b",
        "a=b c",
        "a in",
        "a in b",
        "a in (b",
        "a in (b c)",
        "a in (b=c)",
        "!",
        "!=b",
        "a!b",
        "a=b=c",
        "(a)",
        "a>x",
        "a>-1",
        "a>",
        "a=-",
        "-a",
        "a=" + "x" * 64,
        "a/b/c",
        "a=é",
    ],
)
def test_a_malformed_selector_is_refused(text: str) -> None:
    with pytest.raises(errors.BadRequest, match="unable to parse requirement"):
        Selector.parse(text)


@pytest.mark.parametrize(
    ("text", "labels", "expected"),
    [
        ("", {}, True),
        ("a=1", {"a": "1"}, True),
        ("a=1", {"a": "2"}, False),
        ("a=1", {}, False),
        ("a!=1", {}, True),
        ("a!=1", {"a": "1"}, False),
        ("a in (1,2)", {"a": "2"}, True),
        ("a in (1,2)", {"b": "2"}, False),
        ("a notin (1,2)", {"b": "2"}, True),
        ("a notin (1,2)", {"a": "2"}, False),
        ("a", {"a": ""}, True),
        ("a", {}, False),
        ("!a", {}, True),
        ("!a", {"a": ""}, False),
        ("a>5", {"a": "6"}, True),
        ("a>5", {"a": "5"}, False),
        ("a<5", {"a": "x"}, False),
        ("a<5", {}, False),
        ("a=1,b=2", {"a": "1", "b": "2", "c": "3"}, True),
        ("a=1,b=2", {"a": "1"}, False),
    ],
)
def test_a_selector_matches_as_upstreams_does(
    text: str, labels: dict[str, str], expected: bool
) -> None:
    assert Selector.parse(text).matches(labels) is expected


def test_no_labels_at_all_are_no_labels() -> None:
    assert Selector.parse("").matches(None)
    assert not Selector.parse("a").matches(None)


def test_no_label_selector_selects_nothing_and_an_empty_one_everything() -> None:
    nothing = Selector.from_label_selector(None)
    everything = Selector.from_label_selector(LabelSelector())
    assert not nothing.matches({"a": "b"})
    assert not nothing.empty
    assert everything.matches({})
    assert everything.empty
    assert everything == Selector.everything()
    assert nothing == Selector.nothing()


def test_a_label_selector_joins_labels_and_expressions() -> None:
    selector = Selector.from_label_selector(
        LabelSelector(
            match_labels={"b": "1"},
            match_expressions=[
                LabelSelectorRequirement(key="a", operator="In", values=["x", "y"]),
                LabelSelectorRequirement(key="c", operator="NotIn", values=["z"]),
                LabelSelectorRequirement(key="d", operator="Exists"),
                LabelSelectorRequirement(key="e", operator="DoesNotExist"),
            ],
        )
    )
    assert str(selector) == "a in (x,y),b=1,c notin (z),d,!e"


@pytest.mark.parametrize(
    ("operator", "values", "message"),
    [
        ("Like", ["x"], '"Like" is not a valid label selector operator'),
        ("In", None, "values set can't be empty"),
        ("Exists", ["x"], "must be empty for exists"),
        ("In", ["not valid"], "a valid label must be"),
    ],
)
def test_a_label_selector_that_means_nothing_is_refused(
    operator: str, values: list[str] | None, message: str
) -> None:
    requirement = LabelSelectorRequirement(key="a", operator=operator, values=values)
    with pytest.raises(errors.BadRequest, match=message):
        Selector.from_label_selector(LabelSelector(match_expressions=[requirement]))


REQUIREMENTS = st.one_of(
    st.builds(lambda k, o, v: Requirement(k, o, (v,)), KEYS, st.sampled_from(["=", "!="]), VALUES),
    st.builds(
        lambda k, o, v: Requirement(k, o, tuple(sorted(v))),
        KEYS,
        st.sampled_from(["in", "notin"]),
        st.sets(VALUES, min_size=1, max_size=4),
    ),
    st.builds(Requirement, KEYS, st.sampled_from(["exists", "!"])),
    st.builds(
        lambda k, o, v: Requirement(k, o, (str(v),)),
        KEYS,
        st.sampled_from(["<", ">"]),
        st.integers(0, 99),
    ),
)


@given(st.lists(REQUIREMENTS, max_size=5), SETS)
def test_printing_and_parsing_again_gives_the_same_selector(
    requirements: list[Requirement], labels: dict[str, str]
) -> None:
    parsed = Selector.parse(",".join(str(requirement) for requirement in requirements))
    assert sorted(map(str, parsed.requirements)) == sorted(map(str, requirements))
    assert Selector.parse(str(parsed)) == parsed
    assert parsed.matches(labels) == all(r.matches(labels) for r in requirements)


@given(SETS, SETS)
def test_a_selector_made_of_labels_matches_exactly_their_supersets(
    wanted: dict[str, str], labels: dict[str, str]
) -> None:
    selector = Selector.from_label_selector(LabelSelector(match_labels=wanted))
    assert selector.matches(labels) == (wanted.items() <= labels.items())


@given(st.text(max_size=30))
def test_any_text_parses_or_is_refused(text: str) -> None:
    try:
        selector = Selector.parse(text)
    except errors.BadRequest:
        return
    assert Selector.parse(str(selector)) == selector
