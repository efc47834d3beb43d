"""Fills in defaults without changing anything in place."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from kcm.apimachinery.base import Model
from kcm.apimachinery.quantity import ResourceList

ModelT = TypeVar("ModelT", bound=Model)

_MILLI = -3  # a power of ten: the finest that upstream keeps in a resource list


def fill_defaults(model: ModelT, **defaults: Any) -> ModelT:
    """Returns the model with these values where it has none (absent, or empty text)."""
    present = model.__dict__
    missing = {name: value for name, value in defaults.items() if present[name] in (None, "")}
    return change_fields(model, **missing) if missing else model


def change_fields(model: ModelT, **values: Any) -> ModelT:
    """Returns the model with those of these values that differ from its own."""
    present = model.__dict__
    changes = {
        name: value
        for name, value in values.items()
        if present[name] is not value and present[name] != value
    }
    return model.replace(**changes) if changes else model


def fill_each(items: list[ModelT] | None, fill: Callable[[ModelT], ModelT]) -> list[ModelT] | None:
    """Returns the items with their defaults, the same list if none changed."""
    if not items:
        return items
    filled = [fill(item) for item in items]
    same = all(after is before for after, before in zip(filled, items, strict=True))
    return items if same else filled


def round_to_milli(amounts: ResourceList | None) -> ResourceList | None:
    """Returns the amounts rounded up to thousandths, as upstream keeps them."""
    if not amounts:
        return amounts
    rounded = {name: amount.round_up(_MILLI) for name, amount in amounts.items()}
    return amounts if rounded == amounts else rounded
