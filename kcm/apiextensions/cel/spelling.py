"""Spells what expressions may say in ways that the library for CEL understands.

- Functions of ours cannot return optionals. `format.named` and `validate` return a list of one
  value or none, and `[?0]` behind their calls makes an optional of it.
- The library knows the macro `exists_one` with two variables as `existsOne` only.
- Its `getMilliseconds` gives what a duration has beyond its seconds, and Kubernetes' all of it.

An expression without these stays as it is.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

_WORTHWHILE = re.compile(r"\b(?:validate|named|exists_one|getMilliseconds)\s*\(")
# A literal of text or bytes, for verbose expressions. One in three quotes may lack its end.
TEXT = r"""(?:
    (?:[bB]?[rR]|[rR][bB])(?:\"{3}(?:.*?\"{3}|.*)|'{3}(?:.*?'{3}|.*)|"[^"\n]*"|'[^'\n]*')
    | [bB]?(?:\"{3}(?:(?:\\.|[^\\])*?\"{3}|.*)|'{3}(?:(?:\\.|[^\\])*?'{3}|.*))
    | [bB]?(?:"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*')
)"""
_TOKEN = re.compile(
    r"""
    //[^\n]*
    | """
    + TEXT
    + r"""
    | [A-Za-z_]\w*
    | \s+
    | .
    """,
    re.VERBOSE | re.DOTALL,
)
_LONGEST = 100_000  # characters; the library refuses longer expressions
MILLISECONDS = "getAllMilliseconds"
_OPTIONAL = "[?0]"
_OPENING, _CLOSING = frozenset("([{"), frozenset(")]}")
_ONE_VARIABLE = 1  # commas between the arguments of a macro with one variable


@dataclass
class _Bracket:
    """An open bracket: the function that it calls, its name's place, and commas so far."""

    called: str
    at: int
    commas: int = 0


def spell_out(text: str) -> str:
    """Returns an expression in the words of the library. Never raises."""
    if len(text) > _LONGEST or not _WORTHWHILE.search(text):
        return text
    tokens = _TOKEN.findall(text)
    said: list[int] = []  # places of the tokens that are neither blank nor a comment
    open_brackets: list[_Bracket] = []
    for at, token in enumerate(tokens):
        if token.isspace() or token.startswith("//"):
            continue
        if token in _OPENING:
            called = _find_called([tokens[place] for place in said[-4:]]) if token == "(" else ""
            open_brackets.append(_Bracket(called, said[-1] if said else at))
        elif token == "," and open_brackets:
            open_brackets[-1].commas += 1
        elif token in _CLOSING and open_brackets:
            _close(open_brackets.pop(), tokens, at)
        said.append(at)
    return "".join(tokens)


def _find_called(before: list[str]) -> str:
    """Returns the name of the function that is called behind these tokens, "" for others."""
    match before:
        case [*_, ".", ("validate" | "exists_one" | "getMilliseconds") as name]:
            return name
        case [".", "format", ".", "named"]:
            return ""
        case [*_, "format", ".", "named"]:
            return "named"
    return ""


def _close(bracket: _Bracket, tokens: list[str], at: int) -> None:
    """Respells a call, whose closing bracket is at `at`."""
    if bracket.called in ("validate", "named"):
        tokens[at] += _OPTIONAL
    elif bracket.called == "exists_one" and bracket.commas > _ONE_VARIABLE:
        tokens[bracket.at] = "existsOne"
    elif bracket.called == "getMilliseconds":
        tokens[bracket.at] = MILLISECONDS
