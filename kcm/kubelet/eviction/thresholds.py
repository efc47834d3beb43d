"""Signals and thresholds: pure.

There is one disk, which is nodefs, imagefs and containerfs at once, as on a node of upstream
without a dedicated image file system.

Source: pkg/kubelet/eviction/helpers.go (ParseThresholdConfig, UpdateContainerFsThresholds,
thresholdsMet), pkg/kubelet/eviction/api/types.go and DefaultEvictionHard in
pkg/kubelet/eviction/defaults_linux.go, Kubernetes 1.33. Departure: allocatableMemory is not
watched.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum

from kcm.apimachinery.quantity import Format, Quantity, parse
from kcm.errors import ConfigurationError
from kcm.kubelet.stats.machine import MachineUse

_BILLION = 10**9


class Signal(StrEnum):
    """What is watched: how much of it is left."""

    MEMORY = "memory.available"
    DISK = "nodefs.available"
    INODES = "nodefs.inodesFree"
    IMAGE_DISK = "imagefs.available"
    IMAGE_INODES = "imagefs.inodesFree"
    CONTAINER_DISK = "containerfs.available"
    CONTAINER_INODES = "containerfs.inodesFree"
    PIDS = "pid.available"

    @property
    def condition(self) -> str:
        """What a node reports when too little is left."""
        return _CONDITIONS[RESOURCES[self]]


MEMORY, DISK, INODES, PIDS = "memory", "ephemeral-storage", "inodes", "pids"
RESOURCES = {
    Signal.MEMORY: MEMORY,
    Signal.DISK: DISK,
    Signal.INODES: INODES,
    Signal.IMAGE_DISK: DISK,
    Signal.IMAGE_INODES: INODES,
    Signal.CONTAINER_DISK: DISK,
    Signal.CONTAINER_INODES: INODES,
    Signal.PIDS: PIDS,
}
"""What is reclaimed, as events name it."""

_CONDITIONS = {
    MEMORY: "MemoryPressure",
    DISK: "DiskPressure",
    INODES: "DiskPressure",
    PIDS: "PIDPressure",
}

DEFAULT_HARD = (
    "memory.available<100Mi,nodefs.available<10%,nodefs.inodesFree<5%,"
    "imagefs.available<15%,imagefs.inodesFree<5%"
)


@dataclass(frozen=True)
class Amount:
    """A quantity, or a part of the capacity (0.1 for 10%)."""

    quantity: Quantity | None = None
    part: float = 0.0

    def of(self, capacity: int) -> int:
        """The amount, in the capacity's unit."""
        return int(capacity * self.part) if self.quantity is None else self.quantity.value()

    def shown(self, signal: Signal, capacity: int) -> Quantity:
        """As messages tell it."""
        return self.quantity or shown(signal, self.of(capacity))


@dataclass(frozen=True)
class Threshold:
    """Less than `value` left for `grace` seconds (0: at once, a hard threshold) is too little.

    Once it was, it is so until `reclaim` more is left.
    """

    signal: Signal
    value: Amount
    grace: float = 0.0
    reclaim: Amount | None = None

    @property
    def hard(self) -> bool:
        return self.grace == 0


@dataclass(frozen=True)
class Observation:
    """How much of a signal's resource is left, of how much."""

    available: int
    capacity: int


Observations = Mapping[Signal, Observation]


def observe(machine: MachineUse) -> dict[Signal, Observation]:
    """What a look at the machine says; nothing about what it does not know."""
    by_resource = {
        MEMORY: Observation(machine.memory_available, machine.memory),
        DISK: Observation(machine.disk_available, machine.disk),
        INODES: Observation(machine.inodes_free, machine.inodes),
        PIDS: Observation(machine.most_pids - machine.pids, machine.most_pids),
    }
    found = {signal: by_resource[resource] for signal, resource in RESOURCES.items()}
    return {signal: one for signal, one in found.items() if one.capacity > 0}


def shown(signal: Signal, amount: int) -> Quantity:
    """An amount of a signal's resource as people read it."""
    binary = RESOURCES[signal] in (MEMORY, DISK)
    kind = Format.BINARY_SI if binary else Format.DECIMAL_SI
    return Quantity.of_nanos(amount * _BILLION, kind)


def on_one_disk(thresholds: Iterable[Threshold]) -> list[Threshold]:
    """Those that count. Upstream gives containerfs the thresholds of nodefs, whatever was asked
    for: the same amounts of the same disk, which change nothing and are left out here."""
    ignored = (Signal.CONTAINER_DISK, Signal.CONTAINER_INODES)
    return [one for one in thresholds if one.signal not in ignored]


def met(
    thresholds: Iterable[Threshold], observed: Observations, *, reclaimed: bool = False
) -> list[Threshold]:
    """Those of which too little is left; `reclaimed`: counting what they want to get back."""
    found = []
    for threshold in thresholds:
        one = observed.get(threshold.signal)
        if one is None:
            continue
        least = threshold.value.of(one.capacity)
        if reclaimed and threshold.reclaim is not None:
            least += threshold.reclaim.of(one.capacity)
        if one.available < least:
            found.append(threshold)
    return found


# --- flags


def parse_thresholds(
    hard: str, soft: str, grace: Mapping[str, float], reclaim: str
) -> list[Threshold]:
    """What the flags say: `memory.available<100Mi,nodefs.available<10%`, seconds by signal,
    `nodefs.available=1Gi`. Raises ConfigurationError."""
    least = dict(_pairs("--eviction-minimum-reclaim", reclaim, "="))
    for name in grace:
        _signal("--eviction-soft-grace-period", name)
    found = [Threshold(s, amount) for s, amount in _pairs("--eviction-hard", hard, "<")]
    for signal, amount in _pairs("--eviction-soft", soft, "<"):
        if not _counts(amount):
            continue
        if grace.get(signal.value, 0) <= 0:
            raise ConfigurationError(
                f"grace period must be specified for the soft eviction threshold {signal}"
            )
        found.append(Threshold(signal, amount, grace[signal.value]))
    return [replace(one, reclaim=least.get(one.signal)) for one in found if _counts(one.value)]


def _counts(amount: Amount) -> bool:
    """0% and 100% switch a threshold off."""
    return amount.quantity is not None or 0 < amount.part < 1


def _pairs(flag: str, text: str, sign: str) -> Iterable[tuple[Signal, Amount]]:
    for part in filter(None, (part.strip() for part in text.split(","))):
        name, found, value = part.partition(sign)
        if not found:
            raise ConfigurationError(f"{flag}: {part!r} is not like {Signal.MEMORY}{sign}100Mi")
        yield _signal(flag, name.strip()), _amount(flag, value.strip())


def _signal(flag: str, name: str) -> Signal:
    try:
        return Signal(name)
    except ValueError:
        known = ", ".join(signal.value for signal in Signal)
        raise ConfigurationError(f"{flag}: {name!r} is not watched; signals are {known}") from None


def _amount(flag: str, text: str) -> Amount:
    try:
        if text.endswith("%"):
            part = float(text[:-1]) / 100
            if not 0 <= part <= 1:
                raise ValueError("a percentage is between 0% and 100%")
            return Amount(part=part)
        quantity = parse(text)
        if quantity.sign() < 0:
            raise ValueError("it must not be negative")
    except ValueError as error:
        raise ConfigurationError(f"{flag}: {text!r}: {error}") from None
    return Amount(quantity)
