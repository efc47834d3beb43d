"""Arithmetic on amounts of resources, by name.

Source: staging/src/k8s.io/apiserver/pkg/quota/v1/resources.go, Kubernetes 1.33.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

from kcm.apimachinery.quantity import Quantity, ResourceList

Amounts = Mapping[str, Quantity]
ONE = Quantity(1)
ZERO = Quantity(0)


def growth(new: Amounts, old: Amounts) -> ResourceList:
    """Returns by how much each amount has grown, 0 for one that has shrunk."""
    return {name: max(amount - old.get(name, ZERO), ZERO) for name, amount in new.items()}


def only(amounts: Amounts, names: Collection[str]) -> ResourceList:
    """Returns the amounts with these names."""
    return {name: amount for name, amount in amounts.items() if name in names}


def format_amounts(amounts: Amounts) -> str:
    """Returns amounts as upstream's errors show them: `cpu=1,pods=2`."""
    return ",".join(f"{name}={amounts[name]}" for name in sorted(amounts))


def format_names(names: Iterable[str]) -> str:
    """Returns names sorted and joined by commas, as upstream's errors show them."""
    return ",".join(sorted(names))
