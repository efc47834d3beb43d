"""Policies that match the same requests, and whose expressions are evaluated as one.

Most requests satisfy most policies. One evaluation of `(a) && (b) && ...` costs a fraction of those
of `a`, `b` and so on, and when it is true, each of them is. Whenever it is not, or is an error, the
policies are evaluated one by one, which decides what follows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property

from kcm.apiextensions.cel.policy_programs import POLICIES, compile_expression

_TRUTHS = frozenset({"BOOL", "DYN"})


class PolicyGroup:
    """Policies with equal constraints; all that they do is to validate."""

    def __init__(self, texts: Mapping[str, Sequence[str]]) -> None:
        """`texts` are the expressions of each policy, by the policies' names."""
        self._texts = texts

    @cached_property
    def _sound(self) -> dict[str, Sequence[str]]:
        """The expressions, by the policies' names, of policies all of whose expressions compile.

        An expression that compiles by itself cannot end the parentheses around it.
        """
        return {name: texts for name, texts in self._texts.items() if all(map(_compiles, texts))}

    @cached_property
    def expression(self) -> str:
        """The expression that is true if all validations of all sound policies hold."""
        texts = [text for texts in self._sound.values() for text in texts]
        return " && ".join(f"({text}\n)" for text in texts)  # a comment ends with its line

    def includes(self, policy: str) -> bool:
        """Reports whether the expression has those of the policy of this name in it."""
        return policy in self._sound


def _compiles(text: str) -> bool:
    compiled = compile_expression(text, POLICIES)
    return compiled.program is not None and compiled.type in _TRUTHS
