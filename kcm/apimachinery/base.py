"""`Model`, the base class of all API types, and the names of fields in Python and in JSON.

Unknown fields are kept until `drop_unknown`, so that a request can be told about them. `None` means
absent and is never encoded. Copies share what they do not change. Assignments to attributes are not
checked, only decoding and construction are; an object that is shared by a cache refuses them.
"""

from __future__ import annotations

import operator
from collections.abc import Iterator
from copy import deepcopy
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, NoReturn, Self, TypeVar, get_args, get_origin

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


class _SharedFields(frozenset[str]):
    """The names of the fields that were set. It marks an object that is shared, see `compact`."""

    def __copy__(self) -> set[str]:
        return set(self)  # the copy of an object is not shared

    def __deepcopy__(self, memo: Any) -> set[str]:
        return set(self)


class _SharedExtra(dict[str, Any]):
    """The unknown fields of an object that is shared: a dict that cannot be changed."""

    def _refuse(self, *_: Any, **__: Any) -> NoReturn:
        raise TypeError(_SHARED)

    __setitem__ = __delitem__ = __ior__ = _refuse
    clear = pop = popitem = setdefault = update = _refuse

    def __copy__(self) -> dict[str, Any]:
        return dict(self)

    def __deepcopy__(self, memo: Any) -> dict[str, Any]:
        return deepcopy(dict(self), memo)


_SHARED = "cached objects are shared: use replace()"


class Model(BaseModel):
    """A struct of the Kubernetes API."""

    # Whether server-side apply treats it as one field (structType=atomic in upstream's types.go).
    kubernetes_atomic: ClassVar[bool] = False

    # Whether all fields are data of the object, also those that the class has not.
    kubernetes_open: ClassVar[bool] = False

    # Whether the class is made while the process runs, with the fields of its base class. It may go
    # again, so nothing may keep it.
    kubernetes_generated: ClassVar[bool] = False

    # Whether clients compare bytes of its JSON, which is then written as Go writes it.
    kubernetes_raw: ClassVar[bool] = False

    model_config = ConfigDict(
        extra="allow",
        alias_generator=to_wire,
        populate_by_name=True,
        defer_build=True,
        protected_namespaces=(),
    )

    @classmethod
    def model_rebuild(cls, *, _parent_namespace_depth: int = 2, **options: Any) -> bool | None:
        """Builds pydantic's schema of the class, and before it those of the structs that it has.

        The schema of a class refers to those that are built, and includes the others: without the
        order, each kind with a pod template would have a pod's whole schema once more, and take
        five times as long.
        """
        for struct in _list_structs_without_schema(cls, {cls}):
            super(Model, struct).model_rebuild(raise_errors=False)
        # The names of the caller's frame, which is one further away than pydantic counts.
        depth = _parent_namespace_depth + 1
        return super().model_rebuild(_parent_namespace_depth=depth, **options)

    def __setattr__(self, name: str, value: Any) -> None:
        """Raises TypeError for an object that is shared by a cache."""
        if is_shared(self):
            raise TypeError(f"{_SHARED} ({type(self).__name__}.{name})")
        super().__setattr__(name, value)

    def __delattr__(self, name: str) -> None:
        if is_shared(self):
            raise TypeError(f"{_SHARED} ({type(self).__name__}.{name})")
        super().__delattr__(name)

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
        _set(copy, "__pydantic_fields_set__", {*self.__pydantic_fields_set__, *changes})
        _set(copy, "__pydantic_private__", None)
        return copy


ModelT = TypeVar("ModelT", bound=Model)


def is_shared(model: Model) -> bool:
    """Reports whether an object is shared by a cache, so that nothing may be assigned to it."""
    fields: object = model.__pydantic_fields_set__
    return fields.__class__ is _SharedFields


_MOST_FIELDS = 10_000  # that are remembered; then all are forgotten
_FIELDS: dict[_SharedFields, _SharedFields] = {}
_NO_FIELDS = _SharedFields()
_NO_EXTRA = _SharedExtra()


def compact(model: ModelT) -> ModelT:
    """Makes an object ready for a cache, and returns it, changed in place.

    From then on an assignment to the object or its structs raises TypeError, since others read it,
    and its structs may be parts of other objects, too. Lists and maps are not guarded: the mutation
    detector finds changes of them in tests. A copy may be changed, but not the structs that it
    shares.

    It frees memory, too: that for unknown fields where there are none, and for distinguishing set
    fields from defaults, half of a running pod's. Equality, encoding and copies stay as they are;
    `model_fields_set` stays right for the object itself, but not for its structs.
    """
    if not is_shared(model):
        _set(model, "__pydantic_fields_set__", _share_fields(model.__pydantic_fields_set__))
        _share_extra(model)
    _compact_structs(model)
    return model


def _share_fields(names: set[str]) -> _SharedFields:
    """Returns the names; equal ones are one object, of which there are few."""
    if len(_FIELDS) >= _MOST_FIELDS:
        _FIELDS.clear()
    shared = _SharedFields(names)
    return _FIELDS.setdefault(shared, shared)


def _share_extra(model: Model) -> None:
    extra = model.__pydantic_extra__
    _set(model, "__pydantic_extra__", _SharedExtra(extra) if extra else _NO_EXTRA)


def _compact_structs(model: Model) -> None:
    values = model.__dict__
    for name in _STRUCTS[model.__class__]:
        value = values[name]
        if value is None:
            continue
        for part in value if value.__class__ is list else (value,):
            fields: object = part.__pydantic_fields_set__
            if fields is not _NO_FIELDS:
                _set(part, "__pydantic_fields_set__", _NO_FIELDS)
                _share_extra(part)
                _compact_structs(part)


class _Structs(dict[type[Model], tuple[str, ...]]):
    """The attributes that hold structs, by class. Generated classes are not kept alive."""

    def __init__(self, *, in_maps: bool) -> None:
        super().__init__()
        self._in_maps = in_maps  # whether the values of maps count, too

    def __missing__(self, model: type[Model]) -> tuple[str, ...]:
        if model.kubernetes_generated:
            return self[model.__bases__[0]]
        fields = model.model_fields.items()
        self[model] = tuple(
            name for name, field in fields if _holds_structs(field.annotation, self._in_maps)
        )
        return self[model]


_STRUCTS = _Structs(in_maps=False)
_STRUCTS_AND_MAPS = _Structs(in_maps=True)


def structs_of(model: type[Model]) -> tuple[str, ...]:
    """Returns the names of the attributes that hold a struct, or a list of structs."""
    return _STRUCTS[model]


def _list_structs_without_schema(
    model: type[Model], listed: set[type[Model]]
) -> Iterator[type[Model]]:
    """Yields the structs below a class, each after those that it has itself."""
    for field in model.model_fields.values():
        for struct in _list_structs(field.annotation):
            if struct not in listed and not struct.__pydantic_complete__:
                listed.add(struct)
                yield from _list_structs_without_schema(struct, listed)
                yield struct


def _list_structs(annotation: Any) -> Iterator[type[Model]]:
    if isinstance(annotation, type) and issubclass(annotation, Model):
        yield annotation
    for argument in get_args(annotation):
        yield from _list_structs(argument)


def _holds_structs(annotation: Any, in_maps: bool) -> bool:
    if isinstance(annotation, type):
        return issubclass(annotation, Model)
    if get_origin(annotation) is dict and not in_maps:
        return False
    return any(_holds_structs(argument, in_maps) for argument in get_args(annotation))


def drop_unknown(model: ModelT) -> ModelT:
    """Returns the model without the fields that its class and those of its structs have not.

    Returns the model itself if it has no such fields.
    """
    changes: dict[str, Any] = {}
    values = model.__dict__
    for name in _STRUCTS_AND_MAPS[model.__class__]:
        value = values[name]
        if value is not None and (kept := drop_unknown_within(value)) is not value:
            changes[name] = kept
    is_whole = not model.__pydantic_extra__ or model.kubernetes_open
    if is_whole and not changes:
        return model
    copy = model.replace(**changes)
    if not is_whole:
        _set(copy, "__pydantic_extra__", {})
    return copy


def drop_unknown_within(value: Any) -> Any:
    """Returns the value of a field, such as a list of structs, without unknown fields."""
    if value.__class__ is list:
        items = [drop_unknown_within(item) for item in value]
        return items if any(map(operator.is_not, items, value)) else value
    if value.__class__ is dict:
        kept = {key: drop_unknown_within(inner) for key, inner in value.items()}
        return kept if any(kept[key] is not value[key] for key in kept) else value
    return drop_unknown(value) if isinstance(value, Model) else value


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
    merge the list, `applies` whether server-side apply does. Source: patchStrategy, patchMergeKey
    and listMapKey in upstream's types.go, Kubernetes 1.36.
    """

    key: str
    map_keys: tuple[str, ...] = ()
    retain_keys: bool = False
    key_defaults: tuple[tuple[str, str], ...] = ()
    patches: bool = True
    applies: bool = True


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
