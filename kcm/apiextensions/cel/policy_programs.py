"""Compiles the expressions of ValidatingAdmissionPolicies and webhooks, each once.

Expressions see `object`, `oldObject`, `request`, `namespaceObject`, `variables`, and perhaps
`params` and `authorizer`, all of them without types.

Source: staging/src/k8s.io/apiserver/pkg/admission/plugin/cel/compile.go, Kubernetes 1.33.
"""

from __future__ import annotations

import re
import threading
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple

from kcm.apiextensions.cel.patch_types import rewrite

_VARIABLES = ("object", "oldObject", "request", "namespaceObject", "variables")
_USED = re.compile(r"\bvariables\s*\.\s*([A-Za-z_]\w*)")
_LOCK = threading.Lock()


class Scope(NamedTuple):
    """Which variables expressions have besides those that all have."""

    params: bool = False
    authorizer: bool = False
    patches: bool = False  # whether they have the types Object and JSONPatch
    device: bool = False  # only this variable, no others

    @property
    def names(self) -> tuple[str, ...]:
        if self.device:
            return ("device",)
        more = [name for name in ("params", "authorizer") if getattr(self, name)]
        return (*_VARIABLES, *more)


POLICIES = Scope(authorizer=True)  # of policies without parameters
WEBHOOKS = Scope(authorizer=True)  # of the match conditions of webhooks
DEVICES = Scope(device=True)  # of selectors for devices


@dataclass(frozen=True)
class CompiledPolicyExpression:
    """A compiled expression, or why it could not be compiled."""

    text: str
    program: Any = None
    error: str = ""
    type: str = ""  # of its value: BOOL, STRING, NULL, others, or DYN if it is not known
    uses: tuple[str, ...] = ()  # the names of policy variables in it


@lru_cache(maxsize=4096)
def compile_expression(text: str, scope: Scope) -> CompiledPolicyExpression:
    """Returns the compiled expression. It never raises."""
    environment = environment_of(scope)
    if environment is None:
        return CompiledPolicyExpression(text, error="the library for CEL cannot be loaded")
    try:
        with _LOCK:  # the environment may not be thread-safe
            program = environment.compile(spell(text, scope))
    except (RuntimeError, ValueError, TypeError) as error:
        return CompiledPolicyExpression(text, error=_without_code(str(error)))
    from kcm.apiextensions.cel.cel_environment import type_name  # noqa: PLC0415 - see expressions

    used = tuple(dict.fromkeys(_USED.findall(text)))
    return CompiledPolicyExpression(text, program, type=type_name(program), uses=used)


def spell(text: str, scope: Scope) -> str:
    """Returns an expression as the library compiles it."""
    return rewrite(text) if scope.patches else text


@lru_cache(maxsize=8)
def environment_of(scope: Scope) -> Any:
    """Returns the environment of the library, None if the library cannot be loaded."""
    try:
        from kcm.apiextensions.cel import cel_environment  # noqa: PLC0415 - loads 16 MB
    except ImportError:
        return None
    return cel_environment.make_for_policies(scope.names)


def _without_code(text: str) -> str:
    """Returns the compiler's message without the library's status codes around it."""
    return text.strip().removeprefix("INVALID_ARGUMENT: ").removesuffix(" [INVALID_ARGUMENT]")
