"""Functions that fill in defaults without changing anything in place."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from kcm.apimachinery.base import Model
from kcm.apimachinery.quantity import ResourceList

ModelT = TypeVar("ModelT", bound=Model)

_MILLI = -3  # a power of ten: the precision of upstream's resource lists


def fill_defaults(model: ModelT, **defaults: Any) -> ModelT:
    """Returns the model with these values for those of its attributes that are None or ""."""
    present = model.__dict__
    missing = {name: value for name, value in defaults.items() if present[name] in (None, "")}
    return change_fields(model, **missing) if missing else model


def fill_absent(model: ModelT, **defaults: Any) -> ModelT:
    """Returns the model with these values for those of its attributes that are None.

    Upstream has a pointer in such a field, so that "" is a value, which validation refuses.
    """
    present = model.__dict__
    missing = {name: value for name, value in defaults.items() if present[name] is None}
    return change_fields(model, **missing) if missing else model


def change_fields(model: ModelT, **values: Any) -> ModelT:
    """Returns the model with these values, or the model itself if it already has all of them."""
    present = model.__dict__
    changes = {
        name: value
        for name, value in values.items()
        if present[name] is not value and present[name] != value
    }
    return model.replace(**changes) if changes else model


def fill_each(items: list[ModelT] | None, fill: Callable[[ModelT], ModelT]) -> list[ModelT] | None:
    """Returns the items after `fill`, or the same list if it changes none of them."""
    if not items:
        return items
    filled = [fill(item) for item in items]
    same = all(after is before for after, before in zip(filled, items, strict=True))
    return items if same else filled


def round_to_milli(amounts: ResourceList | None) -> ResourceList | None:
    """Returns the amounts rounded up to thousandths, as upstream stores them."""
    if not amounts:
        return amounts
    rounded = {name: amount.round_up(_MILLI) for name, amount in amounts.items()}
    return amounts if rounded == amounts else rounded
