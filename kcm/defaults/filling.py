"""How defaults are filled in without changing anything in place."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from kcm.apimachinery.base import Model
from kcm.apimachinery.quantity import ResourceList

ModelT = TypeVar("ModelT", bound=Model)

_MILLI = -3  # power of ten: the finest that upstream keeps in a resource list


def filled(model: ModelT, **defaults: Any) -> ModelT:
    """The model with these values where it has none (absent, or empty text)."""
    found = model.__dict__
    missing = {name: value for name, value in defaults.items() if found[name] in (None, "")}
    return changed(model, **missing) if missing else model


def changed(model: ModelT, **values: Any) -> ModelT:
    """The model with those of these values that differ from its own."""
    found = model.__dict__
    changes = {
        name: value
        for name, value in values.items()
        if found[name] is not value and found[name] != value
    }
    return model.replace(**changes) if changes else model


def each(items: list[ModelT] | None, fill: Callable[[ModelT], ModelT]) -> list[ModelT] | None:
    """The items filled in; the same list if none changed."""
    if not items:
        return items
    filled = [fill(item) for item in items]
    same = all(after is before for after, before in zip(filled, items, strict=True))
    return items if same else filled


def milli(amounts: ResourceList | None) -> ResourceList | None:
    """Upstream keeps thousandths at most, rounded up."""
    if not amounts:
        return amounts
    rounded = {name: amount.round_up(_MILLI) for name, amount in amounts.items()}
    return amounts if rounded == amounts else rounded
