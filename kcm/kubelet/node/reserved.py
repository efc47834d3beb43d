"""Computes the resources that are reserved on the node, and that pods cannot use: pure functions.

Source: getNodeAllocatableAbsolute in pkg/kubelet/cm/node_container_manager_linux.go and
parseResourceList in cmd/kubelet/app/server.go, Kubernetes 1.33.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from kcm.apimachinery.quantity import Quantity, ResourceList, parse
from kcm.errors import ConfigurationError
from kcm.kubelet.eviction.thresholds import RESOURCES, Signal, Threshold, format_amount

RESERVABLE = ("cpu", "memory", "ephemeral-storage", "pid")
_RESERVED_BY_EVICTION = (Signal.MEMORY, Signal.DISK)


def parse_reserved(flag: str, text: str) -> ResourceList:
    """Parses the value of a flag, like `cpu=100m,memory=500Mi`. Raises ConfigurationError."""
    resources: ResourceList = {}
    for part in filter(None, (part.strip() for part in text.split(","))):
        name, equals, amount = part.partition("=")
        if not equals or name not in RESERVABLE:
            raise ConfigurationError(
                f"--{flag}: {part!r} is not of the form cpu=100m, for one of {RESERVABLE}"
            )
        try:
            resources[name] = parse(amount)
        except ValueError as error:
            raise ConfigurationError(f"--{flag}: {part!r}: {error}") from None
        if resources[name].sign() < 0:
            raise ConfigurationError(f"--{flag}: {part!r} must not be negative")
    return resources


def sum_reserved(
    capacity: Mapping[str, Quantity],
    reserved: Iterable[ResourceList],
    thresholds: Iterable[Threshold],
) -> ResourceList:
    """Returns the reserved amount of each resource, at most its capacity.

    It is the sum of what the flags reserve and of the hard eviction thresholds of memory and disk.
    """
    total: ResourceList = {}
    for amounts in reserved:
        for name, amount in amounts.items():
            total[name] = total.get(name, Quantity()) + amount
    for threshold in thresholds:
        name = RESOURCES[threshold.signal]
        if threshold.hard and threshold.signal in _RESERVED_BY_EVICTION and name in capacity:
            value = threshold.value.of(capacity[name].value())
            total[name] = total.get(name, Quantity()) + format_amount(threshold.signal, value)
    return {name: min(amount, capacity[name]) for name, amount in total.items() if name in capacity}
