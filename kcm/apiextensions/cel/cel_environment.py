"""The functions that rules can use.

These are CEL's own, and those of Kubernetes' libraries for lists and regular expressions.

Source: staging/src/k8s.io/apiserver/pkg/cel/library/{lists,regex}.go, Kubernetes 1.33.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from cel_expr_python import cel
from cel_expr_python.ext import ext_bindings, ext_optional, ext_strings

from kcm.apiextensions import patterns

_ANY, _TEXT, _WHOLE, _TRUTH = cel.Type.DYN, cel.Type.STRING, cel.Type.INT, cel.Type.BOOL
_LIST = cel.Type.List(_ANY)


def make() -> Any:
    """Returns the environment in which rules are compiled."""
    extensions = [
        ext_strings.ExtStrings(),
        ext_optional.ExtOptional(),
        ext_bindings.ExtBindings(),
        cel.CelExtension("kubernetes", _functions()),
    ]
    return cel.NewEnv(
        variables={"self": _ANY, "oldSelf": _ANY, "oldSelfs": _LIST}, extensions=extensions
    )


def _functions() -> list[Any]:
    texts = cel.Type.List(_TEXT)
    return [
        _method("isSorted", _TRUTH, [_LIST], _is_sorted),
        _method("sum", _ANY, [_LIST], sum),
        _method("min", _ANY, [_LIST], min),
        _method("max", _ANY, [_LIST], max),
        _method("find", _TEXT, [_TEXT, _TEXT], _find),
        cel.FunctionDecl(
            "findAll",
            [
                _overload("findAll", texts, [_TEXT, _TEXT], _find_all),
                _overload("findAll_most", texts, [_TEXT, _TEXT, _WHOLE], _find_all),
            ],
        ),
    ]


def _method(name: str, returns: Any, takes: Sequence[Any], run: Callable[..., Any]) -> Any:
    return cel.FunctionDecl(name, [_overload(name, returns, takes, run)])


def _overload(name: str, returns: Any, takes: Sequence[Any], run: Callable[..., Any]) -> Any:
    return cel.Overload(f"kubernetes_{name}", returns, list(takes), True, run)


def _is_sorted(items: Sequence[Any]) -> bool:
    return all(left <= right for left, right in itertools.pairwise(items))


def _find(text: str, pattern: str) -> str:
    with _translate_errors():
        return patterns.find(pattern, text)


def _find_all(text: str, pattern: str, most: int = -1) -> list[str]:
    with _translate_errors():
        return patterns.find_all(pattern, text, most)


@contextmanager
def _translate_errors() -> Iterator[None]:
    """Raises ValueError, as the library expects, with Go's message for a bad pattern."""
    try:
        yield
    except patterns.BadPatternError as error:
        raise ValueError(f"Illegal regex: {error}") from None
