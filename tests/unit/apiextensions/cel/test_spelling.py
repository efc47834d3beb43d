from __future__ import annotations

import time

import pytest

from kcm.apiextensions.cel.expressions import compile_expression
from kcm.apiextensions.cel.spelling import spell_out


@pytest.mark.parametrize(
    ("text", "spelled"),
    [
        ("self.a.validate == 1", None),
        ("f.validate(self.a)", "f.validate(self.a)[?0]"),
        ("f . validate ( g(a)[0], [1] ) .value()", "f . validate ( g(a)[0], [1] )[?0] .value()"),
        ("format.named('a').value().validate(b)", "format.named('a')[?0].value().validate(b)[?0]"),
        ("self.format.named('a')", None),
        ("named('a') || validate('b')", None),
        ("'f.validate(x)' + \"g.named(')')\"", None),
        ("a.validate(')')", "a.validate(')')[?0]"),
        (r"a.validate('\')') // ) .validate(", r"a.validate('\')')[?0] // ) .validate("),
        (r"a.validate(r'\') + ')'", r"a.validate(r'\')[?0] + ')'"),
        ("a.validate('''it's (''')", "a.validate('''it's (''')[?0]"),
        (
            "l.exists_one(i, i.exists_one(k, v, [k, v]))",
            "l.exists_one(i, i.existsOne(k, v, [k, v]))",
        ),
        ("l.exists_one(i, v, f(i, v))", "l.existsOne(i, v, f(i, v))"),
        ("a.validate(", None),
        ("a.validate]b)", None),
        (")a.validate('", None),
    ],
)
def test_what_the_library_does_not_know_is_spelled_out(text: str, spelled: str | None) -> None:
    assert spell_out(text) == (text if spelled is None else spelled)


@pytest.mark.parametrize(
    "part", ["'''\\", '"', ".validate(", "(", "//", "r'", "\\", "exists_one(", '\\"""\n']
)
def test_any_text_is_read_in_a_moment(part: str) -> None:
    began = time.thread_time()
    spell_out(".validate(" + part * 10_000)
    assert time.thread_time() - began < 1


def test_what_the_library_refuses_for_its_length_is_not_read() -> None:
    text = f"f.validate('{'x' * 100_000}')"
    assert spell_out(text) is text
    assert "exceeds codepoint limit" in compile_expression(text).error
