"""The functions that rules and policies can use.

These are CEL's own, those for lists, for sets and for two variables (`all(i, item, ...)`), and
those of Kubernetes' libraries for lists, regular expressions, quantities, semantic versions, IP
addresses, URLs, named formats and authorization.

Source: staging/src/k8s.io/apiserver/pkg/cel/{environment/base.go,library}, Kubernetes 1.33.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import lru_cache, partial
from typing import Any

from cel_expr_python import cel
from cel_expr_python.ext import ext_bindings, ext_optional, ext_strings

from kcm.apiextensions import patterns
from kcm.apiextensions.cel.library import authorization, formats, lists, maps, network, numbers
from kcm.apiextensions.cel.library.tagged import NAMED_FORMAT, tag
from kcm.apiextensions.cel.spelling import MILLISECONDS, spell_out

_ANY, _TEXT, _WHOLE, _TRUTH = cel.Type.DYN, cel.Type.STRING, cel.Type.INT, cel.Type.BOOL
_REAL = cel.Type.DOUBLE
_LIST = cel.Type.List(_ANY)
_FULL = cel.Type.List(_TEXT)
_MORE = """
name: kubernetes
extensions:
- name: lists
- name: sets
- name: two-var-comprehensions
"""


_FAULT = re.compile(r"ERROR: .*")
_COMPARES_NUMBERS = re.compile(
    r"no matching overload for '_[<>]=?_' applied to '\((?:u?int|double), (?:u?int|double)\)'"
)


class Environment:
    """What expressions can use: variables and functions."""

    def __init__(self, variables: Mapping[str, Any], pool: Any = None) -> None:
        config = cel.NewEnvConfigFromYaml(_MORE)
        self._environment = cel.NewEnv(
            pool, config=config, variables=variables, extensions=_extensions()
        )

    def compile(self, text: str) -> Any:
        """Returns the program of an expression. Raises RuntimeError if it is wrong."""
        program = self._compile(spell_out(text))
        if "transformMap" not in text:
            return program
        return self._environment.deserialize(maps.replace_functions(program.serialize()))

    def _compile(self, text: str) -> Any:
        """Returns the program of an expression, whose types are checked unless it compares numbers
        of different types. The library can do that, but its checker has no such functions.
        """
        try:
            return self._environment.compile(text)
        except RuntimeError as error:
            faults = _FAULT.findall(str(error))
            if not faults or not all(_COMPARES_NUMBERS.search(fault) for fault in faults):
                raise
        return self._environment.compile(text, disable_check=True)

    def hold(self, data: Mapping[str, Any]) -> Any:
        """Returns the values of the variables as the library holds them."""
        return self._environment.Activation(data=data)


def make() -> Environment:
    """Returns the environment in which rules are compiled."""
    return Environment({"self": _ANY, "oldSelf": _ANY, "oldSelfs": _LIST})


def make_for_policies(names: Iterable[str]) -> Environment:
    """Returns an environment with these variables, of any type."""
    return Environment(dict.fromkeys(names, _ANY))


def make_typed(pool: Any, messages: Mapping[str, str], others: Iterable[str]) -> Environment:
    """Returns an environment in which some variables are messages of a pool of descriptors.

    `messages` are the names of the messages by those of the variables; `others` are of any type.
    """
    variables = dict.fromkeys(others, _ANY)
    variables |= {name: cel.Type(message) for name, message in messages.items()}
    return Environment(variables, pool)


def type_name(program: Any) -> str:
    """Returns the type that a program's value has, such as `BOOL`, or `DYN` if it is not known."""
    return str(program.return_type().name())


@lru_cache(maxsize=1)
def _extensions() -> list[Any]:
    return [
        ext_strings.ExtStrings(),
        ext_optional.ExtOptional(),
        ext_bindings.ExtBindings(),
        cel.CelExtension("kubernetes", _functions()),
    ]


def _functions() -> list[Any]:
    return [
        _method("isSorted", _TRUTH, [_LIST], lists.is_sorted),
        _method("sum", _ANY, [_LIST], lists.sum_up),
        _method("min", _ANY, [_LIST], lists.find_least),
        _method("max", _ANY, [_LIST], lists.find_greatest),
        _method("indexOf", _WHOLE, [_LIST, _ANY], lists.index_of),
        _method("lastIndexOf", _WHOLE, [_LIST, _ANY], lists.last_index_of),
        _method("find", _TEXT, [_TEXT, _TEXT], _find),
        cel.FunctionDecl(
            "findAll",
            [
                _overload("findAll", _FULL, [_TEXT, _TEXT], _find_all),
                _overload("findAll_most", _FULL, [_TEXT, _TEXT, _WHOLE], _find_all),
            ],
        ),
        *_numbers(),
        *_network(),
        *_formats(),
        _map_building(),
        *_authorization(),
    ]


def _numbers() -> list[Any]:
    both = [_ANY, _ANY]
    return [
        _function("quantity", _ANY, [_TEXT], numbers.quantity),
        _function("isQuantity", _TRUTH, [_TEXT], numbers.is_quantity),
        _method("sign", _WHOLE, [_ANY], numbers.sign),
        _method("isInteger", _TRUTH, [_ANY], numbers.is_integer),
        _method("asInteger", _WHOLE, [_ANY], numbers.as_integer),
        _method("asApproximateFloat", _REAL, [_ANY], numbers.as_approximate_float),
        _method("add", _ANY, both, numbers.add),
        _method("sub", _ANY, both, numbers.sub),
        _method("compareTo", _WHOLE, both, numbers.compare_to),
        _method("isLessThan", _TRUTH, both, numbers.is_less_than),
        _method("isGreaterThan", _TRUTH, both, numbers.is_greater_than),
        cel.FunctionDecl(
            MILLISECONDS,
            [
                _overload(MILLISECONDS, _WHOLE, [_ANY], numbers.milliseconds),
                _overload(f"{MILLISECONDS}_zone", _WHOLE, [_ANY, _TEXT], numbers.milliseconds),
            ],
        ),
        _with_flag("semver", _ANY, numbers.semver),
        _with_flag("isSemver", _TRUTH, numbers.is_semver),
        _method("major", _WHOLE, [_ANY], numbers.major),
        _method("minor", _WHOLE, [_ANY], numbers.minor),
        _method("patch", _WHOLE, [_ANY], numbers.patch),
    ]


def _network() -> list[Any]:
    both = [_ANY, _ANY]
    return [
        cel.FunctionDecl(
            "ip",
            [
                cel.Overload("kubernetes_ip", _ANY, [_TEXT], False, network.ip),
                _overload("ip_of", _ANY, [_ANY], network.ip),
            ],
        ),
        _function("string", _TEXT, [cel.Type.Map(_TEXT, _ANY)], network.to_text),
        _function("isIP", _TRUTH, [_TEXT], network.is_ip),
        _function("ip.isCanonical", _TRUTH, [_TEXT], network.is_canonical),
        _method("family", _WHOLE, [_ANY], network.family),
        _method("isUnspecified", _TRUTH, [_ANY], network.is_unspecified),
        _method("isLoopback", _TRUTH, [_ANY], network.is_loopback),
        _method("isLinkLocalUnicast", _TRUTH, [_ANY], network.is_link_local_unicast),
        _method("isLinkLocalMulticast", _TRUTH, [_ANY], network.is_link_local_multicast),
        _method("isGlobalUnicast", _TRUTH, [_ANY], network.is_global_unicast),
        _function("cidr", _ANY, [_TEXT], network.cidr),
        _function("isCIDR", _TRUTH, [_TEXT], network.is_cidr),
        _method("containsIP", _TRUTH, both, network.contains_ip),
        _method("containsCIDR", _TRUTH, both, network.contains_cidr),
        _method("prefixLength", _WHOLE, [_ANY], network.prefix_length),
        _method("masked", _ANY, [_ANY], network.masked),
        _function("url", _ANY, [_TEXT], network.url),
        _function("isURL", _TRUTH, [_TEXT], network.is_url),
        _method("getScheme", _TEXT, [_ANY], network.get_scheme),
        _method("getHost", _TEXT, [_ANY], network.get_host),
        _method("getHostname", _TEXT, [_ANY], network.get_hostname),
        _method("getPort", _TEXT, [_ANY], network.get_port),
        _method("getEscapedPath", _TEXT, [_ANY], network.get_escaped_path),
        _method("getQuery", cel.Type.Map(_TEXT, _FULL), [_ANY], network.get_query),
    ]


def _formats() -> list[Any]:
    faults = cel.Type.List(_FULL)
    return [
        *(
            _function(f"format.{name}", _ANY, [], partial(tag, NAMED_FORMAT, name))
            for name in formats.FORMATS
        ),
        _function("format.named", _LIST, [_TEXT], formats.named),
        _method("validate", faults, [_ANY, _TEXT], formats.validate),
    ]


def _map_building() -> Any:
    of_any = cel.Type.Map(_ANY, _ANY)
    return cel.FunctionDecl(
        maps.NAME,
        [
            cel.Overload(maps.INSERT, of_any, [of_any, _ANY, _ANY], False, maps.insert),
            cel.Overload(maps.MERGE, of_any, [of_any, of_any], False, maps.merge),
        ],
    )


def _authorization() -> list[Any]:
    named = [_ANY, _TEXT]
    return [
        _method("serviceAccount", _ANY, [_ANY, _TEXT, _TEXT], authorization.service_account),
        _method("path", _ANY, named, authorization.path),
        _method("group", _ANY, named, authorization.group),
        _method("resource", _ANY, named, authorization.resource),
        _method("subresource", _ANY, named, authorization.subresource),
        _method("namespace", _ANY, named, authorization.namespace),
        _method("name", _ANY, named, authorization.name),
        _method("fieldSelector", _ANY, named, authorization.field_selector),
        _method("labelSelector", _ANY, named, authorization.label_selector),
        _method("check", _ANY, named, authorization.check),
        _method("allowed", _TRUTH, [_ANY], authorization.allowed),
        _method("reason", _TEXT, [_ANY], authorization.reason),
        _method("errored", _TRUTH, [_ANY], authorization.errored),
        _method("error", _TEXT, [_ANY], authorization.error),
    ]


def _method(name: str, returns: Any, takes: Sequence[Any], run: Callable[..., Any]) -> Any:
    return cel.FunctionDecl(name, [_overload(name, returns, takes, run)])


def _function(name: str, returns: Any, takes: Sequence[Any], run: Callable[..., Any]) -> Any:
    overload = cel.Overload(f"kubernetes_{name}", returns, list(takes), False, run)
    return cel.FunctionDecl(name, [overload])


def _with_flag(name: str, returns: Any, run: Callable[..., Any]) -> Any:
    """Returns a function that takes a text, and perhaps a truth value."""
    plain = cel.Overload(f"kubernetes_{name}", returns, [_TEXT], False, run)
    flagged = cel.Overload(f"kubernetes_{name}_flag", returns, [_TEXT, _TRUTH], False, run)
    return cel.FunctionDecl(name, [plain, flagged])


def _overload(name: str, returns: Any, takes: Sequence[Any], run: Callable[..., Any]) -> Any:
    return cel.Overload(f"kubernetes_{name}", returns, list(takes), True, run)


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
