"""Decodes JSON into typed objects and encodes them.

Whatever the input, only the errors of `kcm.errors` are raised. An object that is decoded and
encoded again has every field of its kind that it had (null means absent), and unknown ones if they
are to be kept: see docs/designs/0057-unknown-fields-are-dropped-on-the-way-in.md. The codec neither
validates objects nor fills in their defaults (`kcm.kinds`).
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from functools import cache
from typing import Any, cast, overload

import re2
from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError
from pydantic_core import PydanticSerializationError, to_json

from kcm import errors
from kcm.api.decoding_faults import MOST_FAULTS, SHOWN, describe_parts, describe_whole, find_name
from kcm.api.scheme import Kinds, Resource
from kcm.apimachinery.base import Model, drop_unknown, drop_unknown_within
from kcm.apimachinery.meta_v1 import Kind, KubeObject
from kcm.apimachinery.yaml_documents import load_yaml_documents

__all__ = ["decode", "decode_stored", "encode", "encode_stored", "load_yaml_documents", "to_dict"]

# A number that may be beyond a float. Parsers turn the numbers of unknown fields into floats.
# RE2 looks through a pod in a tenth of the time that Python's expressions take.
_LARGE_NUMBER = re2.compile(rb"[0-9][eE]\+?0*[0-9]{3}|[0-9]{309}")
_SAFE_DIGITS = 300  # integers of up to that many digits fit a float
# What Go escapes in JSON, so that it may stand in HTML and JavaScript.
_ESCAPED = [(each.encode(), b"\\u%04x" % ord(each)) for each in "<>&\u2028\u2029"]


class _TypeMeta(BaseModel):
    model_config = ConfigDict(extra="ignore", defer_build=True)

    api_version: str | None = Field(default=None, alias="apiVersion")
    kind: str | None = None


@overload
def decode(
    data: bytes | str | dict[str, Any],
    kind: Resource[Kind],
    *,
    strict: bool = False,
    keep_unknown: bool = False,
) -> Kind: ...


@overload
def decode(
    data: bytes | str | dict[str, Any],
    kind: Kinds,
    *,
    strict: bool = False,
    keep_unknown: bool = False,
) -> KubeObject: ...


def decode(
    data: bytes | str | dict[str, Any],
    kind: Resource | Kinds,
    *,
    strict: bool = False,
    keep_unknown: bool = False,
) -> KubeObject:
    """Returns the object that JSON (or a dict of JSON values) describes.

    With a resource, kind and apiVersion may be missing, and must be those of the resource
    otherwise; with a scheme, they say which of its kinds the object is of. `strict` is for input
    from outside: it also rejects duplicate fields, and takes about three times as long. With
    `keep_unknown`, the object keeps fields that its kind has not.

    Raises BadRequest (not JSON, not an object, no kind, another kind than the resource's, a number
    beyond a float), UnknownKind, or Invalid with one cause per wrong field.
    """
    text = _json_bytes(data)
    if strict or not _is_plain(text):
        _load(text, refuse_duplicates=strict)
    obj = _decode_text(text, kind if isinstance(kind, Resource) else _find_resource(text, kind))
    return obj if keep_unknown else drop_unknown(obj)


def _decode_text(text: bytes, resource: Resource[Kind]) -> Kind:
    obj = read(text, resource)
    if obj.kind != resource.kind or obj.api_version != resource.api_version:
        _check_type_meta(obj, resource)
    return obj


def read(text: bytes, resource: Resource[Kind]) -> Kind:
    """Decodes as `decode` does, but does not check the kind and apiVersion that the JSON has."""
    try:
        return resource.model.model_validate_json(text, by_alias=True, by_name=False)
    except ValidationError as error:
        return _decode_without_nulls(text, resource, error)


def decode_stored(raw: bytes, resource: Resource[Kind]) -> Kind:
    """Returns an object in the version of `resource` from the JSON that the store keeps.

    Raises what `decode` raises.
    """
    if resource.conversion is None:
        obj = _decode_text(raw, resource)
    else:
        obj = cast(Kind, resource.conversion.from_stored(raw, resource))
    return obj if is_pruned(raw) else drop_unknown(obj)


def is_pruned(raw: bytes) -> bool:
    """Reports whether the JSON was encoded since unknown fields are dropped.

    Before, apiVersion was the first field; now kind is, as in the JSON of other API servers.
    """
    return not raw.startswith(b'{"apiVersion"')


def encode_stored(obj: KubeObject, resource: Resource) -> bytes:
    """Returns the JSON that the store keeps for an object in the version of `resource`."""
    return encode(obj) if resource.conversion is None else resource.conversion.to_stored(obj)


def encode(part: Model) -> bytes:
    """Returns compact JSON of an object or a part of one, without absent fields."""
    try:
        text = type(part).__pydantic_serializer__.to_json(
            part, by_alias=True, exclude_none=True, warnings="error"
        )
    except (PydanticSerializationError, ValueError) as error:
        raise errors.BadRequest(f"the object cannot be encoded as JSON: {error}") from None
    return escape_html(text) if part.kubernetes_raw else text


def encode_json(value: Any) -> bytes:
    """Returns compact JSON of JSON values, as Go writes it. Raises BadRequest."""
    try:
        return escape_html(to_json(value))
    except (PydanticSerializationError, ValueError) as error:
        raise errors.BadRequest(f"it cannot be encoded as JSON: {error}") from None


def escape_html(text: bytes) -> bytes:
    """Returns JSON whose strings are escaped as Go's encoding/json does by default."""
    for character, escaped in _ESCAPED:
        text = text.replace(character, escaped)
    return text


def to_dict(obj: KubeObject, parts: set[str] | None = None) -> dict[str, Any]:
    """Returns the object, or these parts of it, as JSON values, without absent fields.

    `parts` are attributes, or names of unknown fields.
    """
    return obj.model_dump(mode="json", by_alias=True, exclude_none=True, include=parts)


def decode_parts(
    values: Mapping[str, Any],
    parts: Iterable[str],
    resource: Resource,
    *,
    keep_unknown: bool = False,
) -> dict[str, Any]:
    """Returns the attributes `parts` of the object that a dict of JSON values describes.

    That is what `decode` would return for them, and takes no time for the others. Raises what
    `decode` raises.
    """
    decoded: dict[str, Any] = {}
    for part in parts:
        value = values.get(str(resource.model.model_fields[part].alias))
        text = to_json(value, inf_nan_mode="constants")
        try:
            if value is None or not _is_plain(text):
                raise ValueError
            value = _part_type(resource.model, part).validate_json(
                text, by_alias=True, by_name=False
            )
            decoded[part] = value if keep_unknown else drop_unknown_within(value)
        except ValueError:  # absent, null or wrong: that is for the whole object to say
            text = to_json(values, inf_nan_mode="constants")
            whole = decode(text, resource, keep_unknown=keep_unknown)
            return {name: getattr(whole, name) for name in parts}
    return decoded


def _is_plain(text: bytes) -> bool:
    """Reports whether JSON has no number that only Python's parser can judge."""
    return b"NaN" not in text and b"Infinity" not in text and not _LARGE_NUMBER.search(text)


@cache
def _part_type(model: type[Model], part: str) -> TypeAdapter[Any]:
    return TypeAdapter(model.model_fields[part].rebuild_annotation())


def attributes_of(model: type[Model]) -> Mapping[str, str]:
    """Returns the attribute names of a model by the fields' names in JSON."""
    return _attributes(model.__bases__[0] if model.kubernetes_generated else model)


@cache
def _attributes(model: type[Model]) -> Mapping[str, str]:
    return {str(info.alias): name for name, info in model.model_fields.items()}


def list_unshared(one: KubeObject, other: KubeObject) -> set[str]:
    """Returns the names of the parts of two objects, as `to_dict` takes them, that are not shared.

    A part is shared if both objects hold the same Python object.
    """
    mine, theirs = _parts(one), _parts(other)
    names = mine.keys() | theirs.keys()
    return {name for name in names if mine.get(name) is not theirs.get(name)}


def _parts(obj: KubeObject) -> dict[str, Any]:
    return {**obj.__dict__, **(obj.__pydantic_extra__ or {})}


def _json_bytes(data: bytes | str | dict[str, Any]) -> bytes:
    try:
        if isinstance(data, bytes):
            return data
        if isinstance(data, str):
            return data.encode()
        if isinstance(data, dict):
            return json.dumps(data, allow_nan=False, separators=(",", ":")).encode()
    except (ValueError, TypeError, RecursionError) as error:
        raise errors.BadRequest(f"the object is not JSON: {error}") from None
    raise errors.BadRequest(f"an object cannot be made from {type(data).__name__}")


def _find_resource(text: bytes, kinds: Kinds) -> Resource:
    try:
        type_meta = _TypeMeta.model_validate_json(text)
    except ValidationError as error:
        raise describe_whole(error) or describe_parts(error.errors(), "", "") from None
    for name, value in (("Kind", type_meta.kind), ("apiVersion", type_meta.api_version)):
        if not value:
            shown = text[:SHOWN].decode(errors="replace")
            raise errors.BadRequest(f"Object '{name}' is missing in '{shown}'")
    return kinds.by_gvk(type_meta.api_version or "", type_meta.kind or "")


def _check_type_meta(obj: KubeObject, resource: Resource) -> None:
    """Fills in an empty kind and apiVersion. Raises BadRequest if one is not that of `resource`."""
    if obj.kind not in {"", resource.kind}:
        raise errors.BadRequest(
            f"the kind in the data ({obj.kind[:SHOWN]}) does not match "
            f"the expected kind ({resource.kind})"
        )
    if obj.api_version not in {"", resource.api_version}:
        raise errors.BadRequest(
            f"the API version in the data ({obj.api_version[:SHOWN]}) does not match "
            f"the expected API version ({resource.api_version})"
        )
    obj.kind, obj.api_version = resource.kind, resource.api_version


def _decode_without_nulls(text: bytes, resource: Resource[Kind], error: ValidationError) -> Kind:
    """Decodes again without explicit nulls, which Go treats as absent fields.

    Raises BadRequest or WrongType for what is wrong without the nulls, too. `error` is the error of
    the first attempt.
    """
    if (count := error.error_count()) > MOST_FAULTS:
        raise errors.BadRequest(f"{count} values of the object do not fit its kind")
    if (wrong := describe_whole(error)) is not None:
        raise wrong from None
    faults = error.errors()
    loaded = _load(text)
    if any(fault["input"] is None for fault in faults):
        slim = json.dumps(_without_nulls(loaded)).encode()
        try:
            return resource.model.model_validate_json(slim, by_alias=True, by_name=False)
        except ValidationError as second:
            faults = second.errors()
    raise describe_parts(faults, resource.qualified_kind, find_name(loaded))


def _without_nulls(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _without_nulls(inner) for name, inner in value.items() if inner is not None}
    if isinstance(value, list):
        return [_without_nulls(inner) for inner in value]
    return value


def _load(text: bytes, *, refuse_duplicates: bool = False) -> Any:
    """Parses JSON with Python's own parser, which can reject more than pydantic's does.

    It rejects NaN, Infinity and numbers beyond a float. Raises BadRequest.
    """
    try:
        return json.loads(
            text.decode(),
            parse_constant=_refuse_constant,
            parse_float=_finite,
            parse_int=_within_floats,
            object_pairs_hook=_unique if refuse_duplicates else None,
        )
    except (ValueError, RecursionError) as error:
        raise errors.NotJson.because(str(error)) from None


def _refuse_constant(name: str) -> None:
    raise ValueError(f"{name} is not a JSON value")


def _finite(text: str) -> float:
    number = float(text)
    if number in {float("inf"), float("-inf")}:
        raise ValueError(f"number {text[:SHOWN]} is out of range")
    return number


def _within_floats(text: str) -> int:
    if len(text) > _SAFE_DIGITS:
        _finite(text)
    return int(text)


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    unique = dict(pairs)
    if len(unique) != len(pairs):
        seen: set[str] = set()
        twice = next(name for name, _ in pairs if name in seen or seen.add(name))  # type: ignore[func-returns-value]  # add returns None, so the test goes on
        raise ValueError(f'strict decoding error: duplicate field "{twice}"')
    return unique
