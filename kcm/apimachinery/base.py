"""`Model`, the base class of all API types, and the names of fields in Python and in JSON.

Unknown fields survive decoding and encoding. `None` means absent and is never encoded. Copies share
what they do not change. Assignments to attributes are not checked, only decoding and construction
are.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Self, TypeVar, get_args, get_origin

from pydantic import BaseModel, ConfigDict, Field

# Go's initialisms inside camelCase names (podIP, systemUUID, podCIDRs). The first word of a name is
# always lower case (uid, ip).
_WORDS = (
    *("API", "CIDR", "CIDRs", "CPU", "FQDN", "ID", "IO", "IP", "IPs", "IPC", "PID"),
    *("URI", "URL", "URLs", "UUID", "WWNs"),
)
_INITIALISMS = {word.lower(): word for word in _WORDS}


def to_wire(name: str) -> str:
    """Returns the camelCase name in JSON of a snake_case attribute."""
    first, *rest = name.split("_")
    return first + "".join(_INITIALISMS.get(word) or word.capitalize() for word in rest)


_set = object.__setattr__


class Model(BaseModel):
    """A struct of the Kubernetes API."""

    # Whether server-side apply treats it as one field (structType=atomic in upstream's types.go).
    kubernetes_atomic: ClassVar[bool] = False

    # Whether the class is made while the process runs and may go again, so that nothing may keep
    # it.
    kubernetes_custom: ClassVar[bool] = False

    model_config = ConfigDict(
        extra="allow",
        alias_generator=to_wire,
        populate_by_name=True,
        defer_build=True,
        protected_namespaces=(),
    )

    def replace(self, **changes: Any) -> Self:
        """Returns a copy with these attributes changed. Everything else is shared.

        Raises TypeError for a name that is not an attribute of this type.
        """
        if not changes.keys() <= self.__pydantic_fields__.keys():
            unknown = sorted(changes.keys() - self.__pydantic_fields__.keys())
            raise TypeError(f"{type(self).__name__} has no field {', '.join(unknown)}")
        # As pydantic's __copy__, in a third of its time: controllers build statuses by replacement.
        cls = type(self)
        copy = cls.__new__(cls)
        extra = self.__pydantic_extra__
        _set(copy, "__dict__", {**self.__dict__, **changes})
        _set(copy, "__pydantic_extra__", dict(extra) if extra is not None else None)
        _set(copy, "__pydantic_fields_set__", self.__pydantic_fields_set__ | changes.keys())
        _set(copy, "__pydantic_private__", None)
        return copy


ModelT = TypeVar("ModelT", bound=Model)

_NO_FIELDS: set[str] = set()
_NO_EXTRA: dict[str, Any] = {}


def compact(model: ModelT) -> ModelT:
    """Frees memory that pydantic keeps inside an object, and returns the object, changed in place.

    That is memory for unknown fields where there are none, and for distinguishing set fields from
    defaults: half of a running pod's memory. Use it for objects that are cached and never changed.
    Equality, encoding and copies stay as they are; `model_fields_set` stays right for the object
    itself, but not for its structs.
    """
    values = model.__dict__
    for name in _STRUCTS[model.__class__]:
        value = values[name]
        if value is None:
            continue
        for part in value if value.__class__ is list else (value,):
            if part.__pydantic_fields_set__ is not _NO_FIELDS:
                object.__setattr__(part, "__pydantic_fields_set__", _NO_FIELDS)
                if not part.__pydantic_extra__:
                    object.__setattr__(part, "__pydantic_extra__", _NO_EXTRA)
                compact(part)
    return model


class _Structs(dict[type[Model], tuple[str, ...]]):
    """The attributes that hold structs, by class. Classes of custom kinds are not kept alive."""

    def __missing__(self, model: type[Model]) -> tuple[str, ...]:
        fields = model.model_fields.items()
        attributes = tuple(name for name, field in fields if _holds_structs(field.annotation))
        if not model.kubernetes_custom:
            self[model] = attributes
        return attributes


_STRUCTS = _Structs()


def structs_of(model: type[Model]) -> tuple[str, ...]:
    """Returns the names of the attributes that hold a struct, or a list of structs."""
    return _STRUCTS[model]


def _holds_structs(annotation: Any) -> bool:
    if isinstance(annotation, type):
        return issubclass(annotation, Model)
    if get_origin(annotation) is dict:
        return False
    return any(map(_holds_structs, get_args(annotation)))


# JSON numbers as Go decodes them: no strings, no fractions, in range.
Int32 = Annotated[int, Field(strict=True, ge=-(2**31), le=2**31 - 1)]
Int64 = Annotated[int, Field(strict=True, ge=-(2**63), le=2**63 - 1)]
Bool = Annotated[bool, Field(strict=True)]


@dataclass(frozen=True)
class MergeKey:
    """Marks a list of structs that patches merge item by item, by the value of `key`.

    Server-side apply identifies items by `map_keys` if `key` is not enough; `key_defaults` has name
    and default of those that may be absent. With `retain_keys`, the other fields of an item are
    alternatives, so patches name those to keep. `patches` says whether strategic merge patches
    merge the list, too, and not only server-side apply. Source: patchStrategy, patchMergeKey and
    listMapKey in upstream's types.go, Kubernetes 1.33.
    """

    key: str
    map_keys: tuple[str, ...] = ()
    retain_keys: bool = False
    key_defaults: tuple[tuple[str, str], ...] = ()
    patches: bool = True


@dataclass(frozen=True)
class MergeSet:
    """Marks a list of scalars that patches merge as a set. `patches` is as in MergeKey."""

    patches: bool = True


@dataclass(frozen=True)
class Atomic:
    """Marks a map that server-side apply treats as one field (mapType=atomic)."""


@dataclass(frozen=True)
class RetainKeys:
    """Marks a struct whose fields are alternatives, so that patches name those to keep.

    It is upstream's patchStrategy=retainKeys.
    """


JsonObject = dict[str, Any]
"""A struct that kcm stores without decoding its fields."""

StringMap = dict[str, str]
