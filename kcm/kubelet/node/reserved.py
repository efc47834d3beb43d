"""What of a machine is kept from pods: pure.

Source: getNodeAllocatableAbsolute in pkg/kubelet/cm/node_container_manager_linux.go and
cmd/kubelet/app/server.go (parseResourceList), Kubernetes 1.33.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from kcm.apimachinery.quantity import Quantity, ResourceList, parse
from kcm.errors import ConfigurationError
from kcm.kubelet.eviction.thresholds import RESOURCES, Signal, Threshold, shown

KNOWN = ("cpu", "memory", "ephemeral-storage", "pid")
_KEPT = (Signal.MEMORY, Signal.DISK)


def parse_reserved(flag: str, text: str) -> ResourceList:
    """`cpu=100m,memory=500Mi`. Raises ConfigurationError."""
    found: ResourceList = {}
    for part in filter(None, (part.strip() for part in text.split(","))):
        name, equals, amount = part.partition("=")
        if not equals or name not in KNOWN:
            raise ConfigurationError(f"--{flag}: {part!r} is not like cpu=100m; of {KNOWN}")
        try:
            found[name] = parse(amount)
        except ValueError as error:
            raise ConfigurationError(f"--{flag}: {part!r}: {error}") from None
        if found[name].sign() < 0:
            raise ConfigurationError(f"--{flag}: {part!r} must not be negative")
    return found


def kept_back(
    capacity: Mapping[str, Quantity],
    reserved: Iterable[ResourceList],
    thresholds: Iterable[Threshold],
) -> ResourceList:
    """Of each resource, what is reserved, and what must be left over by the hard thresholds;
    never more than there is."""
    found: ResourceList = {}
    for amounts in reserved:
        for name, amount in amounts.items():
            found[name] = found.get(name, Quantity()) + amount
    for threshold in thresholds:
        name = RESOURCES[threshold.signal]
        if threshold.hard and threshold.signal in _KEPT and name in capacity:
            least = shown(threshold.signal, threshold.value.of(capacity[name].value()))
            found[name] = found.get(name, Quantity()) + least
    return {name: min(amount, capacity[name]) for name, amount in found.items() if name in capacity}
