"""The base of every API type, and the naming rules between Python and the wire.

Guarantees: unknown fields survive a round trip; `None` means absent and is
never printed; copies made here share what they do not change. Does not
guarantee: that an assignment is checked (only decoding and construction are).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, Self, TypeVar

from pydantic import BaseModel, ConfigDict, Field

# Go's initialisms inside camelCase names (podIP, systemUUID, podCIDRs); the
# first word of a name is always lower case (uid, ip).
_WORDS = ("CIDR", "CIDRs", "FQDN", "ID", "IP", "IPs", "IPC", "PID", "UUID", "URL", "URLs")
_INITIALISMS = {word.lower(): word for word in _WORDS}


def to_wire(name: str) -> str:
    """The camelCase name that Kubernetes uses for a snake_case attribute."""
    first, *rest = name.split("_")
    return first + "".join(_INITIALISMS.get(word) or word.capitalize() for word in rest)


class Model(BaseModel):
    """A struct of the Kubernetes API."""

    model_config = ConfigDict(
        extra="allow",
        alias_generator=to_wire,
        populate_by_name=True,
        defer_build=True,
        protected_namespaces=(),
    )

    def replace(self, **changes: Any) -> Self:
        """A copy with these attributes changed and everything else shared.

        Raises TypeError for a name that is not an attribute of this type.
        """
        if not changes.keys() <= self.__pydantic_fields__.keys():
            unknown = sorted(changes.keys() - self.__pydantic_fields__.keys())
            raise TypeError(f"{type(self).__name__} has no field {', '.join(unknown)}")
        copy = self.__copy__()
        copy.__dict__.update(changes)
        copy.__pydantic_fields_set__.update(changes)
        return copy


ModelT = TypeVar("ModelT", bound=Model)

_NO_FIELDS: set[str] = set()


def compact(model: ModelT) -> ModelT:
    """Give back the memory that pydantic keeps inside an object to tell set from defaulted
    fields (half of a running pod); returns the object, changed in place.

    For objects that are cached and never mutated. Equality, printing and copies
    stay as they are; `model_fields_set` stays right for the object itself only.
    """
    for value in model.__dict__.values():
        if isinstance(value, Model):
            _compact_part(value)
        elif type(value) is list and value and isinstance(value[0], Model):
            for item in value:
                _compact_part(item)
    return model


def _compact_part(part: Model) -> None:
    object.__setattr__(part, "__pydantic_fields_set__", _NO_FIELDS)
    compact(part)


# JSON numbers as Go decodes them: no strings, no fractions, in range.
Int32 = Annotated[int, Field(strict=True, ge=-(2**31), le=2**31 - 1)]
Int64 = Annotated[int, Field(strict=True, ge=-(2**63), le=2**63 - 1)]
Bool = Annotated[bool, Field(strict=True)]


@dataclass(frozen=True)
class MergeKey:
    """Mark of a list of structs that patches merge item by item, told apart by `key`.

    `map_keys` tell items apart for server-side apply where `key` does not do;
    `retain_keys`: an item's other fields are alternatives, so patches name those to keep.
    Source: patchStrategy, patchMergeKey and listMapKey in upstream's types.go, Kubernetes 1.33.
    """

    key: str
    map_keys: tuple[str, ...] = ()
    retain_keys: bool = False


@dataclass(frozen=True)
class MergeSet:
    """Mark of a list of plain values that patches merge as a set."""


JsonObject = dict[str, Any]
"""A struct that kcm passes on without reading it."""

StringMap = dict[str, str]
