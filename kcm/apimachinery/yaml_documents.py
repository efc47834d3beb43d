"""Parses YAML files as Kubernetes does: many documents, JSON values, strict types.

The parser's events are folded into values with an explicit stack, so that deep nesting is limited
here and not by Python. Aliases count in full, so that alias bombs are limited, too. Scalars mean
what they mean in Go's YAML 1.1 parser (yes/no/on/off are booleans, 0644 is octal, 1e3 is a number,
dates and 12:30 stay text).

JSON is YAML, and what programs send as YAML is mostly JSON, which Python's own parser reads five
times as fast. It gets what means the same to both.

Source: sigs.k8s.io/yaml and kubectl's use of it, Kubernetes 1.33.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from typing import Any

import yaml

from kcm import errors
from kcm.apimachinery import nesting
from kcm.apimachinery.nesting import MAX_DEPTH

try:
    from yaml import CSafeLoader as _Loader
except ImportError:  # PyYAML was built without libyaml: slower, with the same events
    from yaml import SafeLoader as _Loader  # type: ignore[assignment]

_TOO_DEEP = "exceeded maximum nesting depth"  # what libyaml says from PyYAML 6.0.4 on
_MAX_ALIASED = 4 * 1024 * 1024  # the most bytes of JSON to which all aliases of a text expand
_NODE = 16  # bytes that are counted for each node besides its text
_MAX_DIGITS = 4300  # Python's own limit for turning text into an int
_MAX_UNSIGNED = 2**64 - 1  # Go's largest integer

_NULL = frozenset({"", "~", "null", "Null", "NULL"})
_TRUE = frozenset(["y", "Y", "yes", "Yes", "YES", "true", "True", "TRUE", "on", "On", "ON"])
_FALSE = frozenset(["n", "N", "no", "No", "NO", "false", "False", "FALSE", "off", "Off", "OFF"])
_INT = re.compile(r"[-+]?(0b[01_]+|0x[0-9a-fA-F_]+|0o?[0-7_]+|[0-9][0-9_]*)", re.ASCII)
_FLOAT = re.compile(r"[-+]?(\.[0-9]+|[0-9][0-9_]*(\.[0-9_]*)?)([eE][-+]?[0-9]+)?", re.ASCII)
_NOT_FINITE = re.compile(r"[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN)")
_MERGE = "<<"
# What JSON and YAML read differently: halves of characters, numbers beyond 64 bits, merged keys,
# characters that YAML refuses, and those that are ends of lines in it.
_AMBIGUOUS = re.compile(
    rb'\\u|[0-9]{19}|[eE]\+?[0-9]{3}|"<<"'
    rb"|\x7f|\xc2[\x80-\x9f]|\xe2\x80[\xa8\xa9]|\xef\xbb\xbf|\xef\xbf[\xbe\xbf]"
)
_EXCESSIVE = "document contains excessive aliasing"


def load_yaml_documents(
    text: str | bytes, source: str = "<input>", *, repeated: list[str] | None = None
) -> list[dict[str, Any]]:
    """Returns the objects in a YAML (or JSON) text.

    A List stands for its items. Empty documents are skipped. `source` is the name of the file.
    A key that is in a mapping twice is an error; with the list `repeated`, the last one counts, and
    the list gets a message about it. Raises BadRequest, with the source, line and column.
    """
    objects: list[dict[str, Any]] = []
    read = _read_json(text)
    documents = [(1, read)] if read is not None else _documents(text, source, repeated)
    for line, document in documents:
        if document is None:
            continue
        if not isinstance(document, dict):
            raise errors.BadRequest(f"{source}:{line}: a document must be a mapping")
        objects.extend(_unroll(document, f"{source}:{line}"))
    return objects


def _read_json(text: str | bytes) -> dict[str, Any] | None:
    """Returns the object of a JSON text, None for what is left to the parser of YAML: anything
    else, and every fault, about which it has better words.
    """
    try:
        data = text.encode() if isinstance(text, str) else text
        if not data.startswith(b"{") or _AMBIGUOUS.search(data):
            return None
        nesting.check(data)
        read: dict[str, Any] = json.loads(
            data, object_pairs_hook=_require_unique, parse_constant=_refuse
        )
    except (ValueError, errors.BadRequest):
        return None
    return read


def _require_unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Returns the mapping. Raises ValueError for a key that is there twice."""
    mapping = dict(pairs)
    if len(mapping) != len(pairs):
        raise ValueError
    return mapping


def _refuse(constant: str) -> None:
    """Raises ValueError for NaN and Infinity, which are no JSON."""
    raise ValueError(constant)


def _unroll(document: dict[str, Any], where: str) -> list[dict[str, Any]]:
    if not str(document.get("kind", "")).endswith("List") or "items" not in document:
        return [document]
    items = document["items"]
    if items is None:
        return []
    if not isinstance(items, list) or not all(isinstance(item, dict) for item in items):
        raise errors.BadRequest(f"{where}: the items of a List must be objects")
    return items


def _documents(text: str | bytes, source: str, repeated: list[str] | None) -> list[tuple[int, Any]]:
    folder = _Folder(source, repeated)
    try:
        for event in yaml.parse(text, Loader=_Loader):
            folder.feed(event)
    except yaml.MarkedYAMLError as error:
        problem = error.problem or error.context or "not YAML"
        if problem == _TOO_DEEP:  # the scanner runs ahead of the events, which have a lower limit
            problem = f"nested deeper than {MAX_DEPTH}"
        where = _where(source, error.problem_mark or error.context_mark)
        raise errors.BadRequest(f"{where}: {problem}") from None
    except (yaml.YAMLError, UnicodeError, ValueError, RecursionError) as error:
        problem = " ".join(str(error).split())
        raise errors.BadRequest(f"{source}: {problem}") from None
    return folder.documents


def _where(source: str, mark: Any) -> str:
    return f"{source}:{mark.line + 1}:{mark.column + 1}" if mark else source


@dataclass
class _OpenNode:
    """A mapping or sequence whose end was not parsed yet."""

    value: Any
    anchor: str | None
    size: int  # approximate bytes as JSON, with its aliases in full
    key: str | None = None
    merge: list[dict[str, Any]] = field(default_factory=list)


class _Folder:
    """Folds the parser's events into JSON values."""

    def __init__(self, source: str, repeated: list[str] | None) -> None:
        self._source = source
        self._repeated = repeated
        self._stack: list[_OpenNode] = []
        self._anchors: dict[str, tuple[Any, int]] = {}
        self._aliased = 0  # bytes to which aliases have expanded, in all documents
        self._line = 1
        self._root: Any = None
        self.documents: list[tuple[int, Any]] = []

    def feed(self, event: Any) -> None:
        match event:
            case yaml.ScalarEvent():
                self._scalar(event)
            case yaml.MappingStartEvent():
                self._open({}, event)
            case yaml.SequenceStartEvent():
                self._open([], event)
            case yaml.MappingEndEvent() | yaml.SequenceEndEvent():
                self._close(event)
            case yaml.AliasEvent():
                self._alias(event)
            case yaml.DocumentStartEvent():
                self._begin_document(event)
            case yaml.DocumentEndEvent():
                self.documents.append((self._line, self._root))

    def _begin_document(self, event: Any) -> None:
        self._root, self._anchors = None, {}
        self._line = event.start_mark.line + 1

    def _scalar(self, event: Any) -> None:
        value: Any = event.value
        try:
            if event.implicit[0]:
                value = _resolve(event.value)
            elif event.tag is not None and event.tag not in {"!", "tag:yaml.org,2002:str"}:
                value = _convert_tagged(event.tag, event.value)
        except ValueError as error:
            raise self._fault(event, str(error)) from None
        size = _NODE + len(event.value)
        if event.anchor is not None:
            self._anchors[event.anchor] = (value, size)
        # A key is always text, even if it would be another value elsewhere ("on", "1").
        self._add(value, size, event, text=event.value)

    def _open(self, value: Any, event: Any) -> None:
        if self._stack and isinstance(self._stack[-1].value, dict) and self._stack[-1].key is None:
            raise self._fault(event, "a key must be a string")
        if len(self._stack) >= MAX_DEPTH:
            raise self._fault(event, f"nested deeper than {MAX_DEPTH}")
        self._stack.append(_OpenNode(value, event.anchor, _NODE))

    def _close(self, event: Any) -> None:
        done = self._stack.pop()
        if done.merge:
            own, done.value = done.value, {}
            for merged in reversed(done.merge):  # an earlier key wins over a later one
                done.value |= merged
            done.value |= own
        if done.anchor is not None:
            self._anchors[done.anchor] = (done.value, done.size)
        self._add(done.value, done.size, event)

    def _alias(self, event: Any) -> None:
        if event.anchor not in self._anchors:
            raise self._fault(event, f'unknown anchor "{event.anchor}"')
        value, size = self._anchors[event.anchor]
        self._aliased += size
        if self._aliased > _MAX_ALIASED:
            raise self._fault(event, _EXCESSIVE)
        self._add(value, size, event, text=value if isinstance(value, str) else None)

    def _add(self, value: Any, size: int, event: Any, text: str | None = None) -> None:
        if not self._stack:
            self._root = value
            return
        top = self._stack[-1]
        top.size += size  # a key counts too
        if isinstance(top.value, list):
            top.value.append(value)
        elif top.key is None:
            top.key = self._check_key(top, text, event)
        else:
            self._set(top, top.key, value, event)
            top.key = None

    def _check_key(self, top: _OpenNode, text: str | None, event: Any) -> str:
        if text is None:
            raise self._fault(event, "a key must be a string")
        if text in top.value:
            problem = f'key "{text}" already set in map'
            if self._repeated is None:
                raise self._fault(event, problem)
            self._repeated.append(f"line {event.start_mark.line + 1}: {problem}")
        return text

    def _set(self, top: _OpenNode, key: str, value: Any, event: Any) -> None:
        if key != _MERGE:
            top.value[key] = value
            return
        merged = value if isinstance(value, list) else [value]
        if not all(isinstance(item, dict) for item in merged):
            raise self._fault(event, "map merge requires map or sequence of maps as the value")
        top.merge.extend(merged)

    def _fault(self, event: Any, problem: str) -> yaml.MarkedYAMLError:
        return yaml.MarkedYAMLError(problem=problem, problem_mark=event.start_mark)


def _resolve(text: str) -> Any:
    """Returns the JSON value of a plain scalar. Raises ValueError for a value that JSON lacks."""
    if text in _NULL:
        return None
    if text in _TRUE:
        return True
    if text in _FALSE:
        return False
    if _INT.fullmatch(text):
        return _integer(text)
    if _FLOAT.fullmatch(text):
        return _float(text)
    if _NOT_FINITE.fullmatch(text):
        raise ValueError(f"{text} is not a JSON value")
    return text


def _integer(text: str) -> int | float | str:
    digits = text.replace("_", "")
    if len(digits) > _MAX_DIGITS:
        raise ValueError("number is out of range")
    sign = -1 if digits[0] == "-" else 1
    bare = digits.lstrip("+-")
    for prefix, base in (("0b", 2), ("0x", 16), ("0o", 8)):
        if bare.startswith(prefix):
            number = int(bare[2:] or "0", base)
            return sign * number if len(bare) > 2 and number <= _MAX_UNSIGNED else text
    if len(bare) > 1 and bare[0] == "0":
        if not set(bare) <= set("01234567"):
            return _float(text)
        number = int(bare, 8)
        return sign * number if number <= _MAX_UNSIGNED else _float(text)
    return sign * int(bare)


def _float(text: str) -> float:
    number = float(text.replace("_", ""))
    if number in {float("inf"), float("-inf")}:
        raise ValueError(f"number {text[:40]} is out of range")
    return number


def _convert_tagged(tag: str, text: str) -> Any:
    name = tag.removeprefix("tag:yaml.org,2002:")
    if name == "null":
        return None
    if name in {"bool", "int", "float"}:
        return _resolve(text)
    raise ValueError(f"tag {tag} is not supported")
