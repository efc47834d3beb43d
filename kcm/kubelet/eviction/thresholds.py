"""Eviction signals and thresholds: pure functions.

There is one disk, which is nodefs, imagefs and containerfs at once, as on a node of upstream
without a dedicated image file system.

Source: pkg/kubelet/eviction/helpers.go (ParseThresholdConfig, UpdateContainerFsThresholds,
thresholdsMet), pkg/kubelet/eviction/api/types.go and DefaultEvictionHard in
pkg/kubelet/eviction/defaults_linux.go, Kubernetes 1.33. Departure: there is no signal
allocatableMemory.available.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from kcm.apimachinery.quantity import Format, Quantity, parse
from kcm.errors import ConfigurationError
from kcm.kubelet.stats.machine import MachineUsage

_NANOS = 10**9


class Signal(StrEnum):
    """An eviction signal: a measure of how much of a resource is left."""

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
        """The type of the node condition that is True when too little is left."""
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
"""The resource that is reclaimed for each signal, as Events name it."""

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
class ThresholdValue:
    """The amount of a threshold: a quantity, or a fraction of the capacity (0.1 for 10%)."""

    quantity: Quantity | None = None
    fraction: float = 0.0

    def of(self, capacity: int) -> int:
        """Returns the amount in the unit of `capacity`: bytes, inodes or PIDs."""
        return int(capacity * self.fraction) if self.quantity is None else self.quantity.value()

    def format(self, signal: Signal, capacity: int) -> Quantity:
        """Returns the amount as a quantity, for messages."""
        return self.quantity or format_amount(signal, self.of(capacity))


@dataclass(frozen=True)
class Threshold:
    """An eviction threshold, which is met while less than `value` of its signal's resource is left.

    A hard threshold acts at once, a soft one after it was met for `grace_period` seconds. It then
    acts until `min_reclaim` more than `value` is left.
    """

    signal: Signal
    value: ThresholdValue
    grace_period: float = 0.0
    min_reclaim: ThresholdValue | None = None

    @property
    def hard(self) -> bool:
        return self.grace_period == 0


@dataclass(frozen=True)
class EvictionConfig:
    """When pods are evicted, and with which grace periods. Times are in seconds."""

    thresholds: Sequence[Threshold] = ()
    pressure_transition_period: float = 300.0  # how long a condition stays True at least
    max_pod_grace_period: int = 0  # the longest of soft evictions


@dataclass(frozen=True)
class Observation:
    """How much of a signal's resource is left, and its capacity: in bytes, inodes or PIDs."""

    available: int
    capacity: int


Observations = Mapping[Signal, Observation]


def observe(machine: MachineUsage) -> dict[Signal, Observation]:
    """Returns the signals' observations, without resources that the machine does not report."""
    by_resource = {
        MEMORY: Observation(machine.memory_available, machine.memory),
        DISK: Observation(machine.disk_available, machine.disk),
        INODES: Observation(machine.inodes_free, machine.inodes),
        PIDS: Observation(machine.max_pids - machine.pids, machine.max_pids),
    }
    return {
        signal: by_resource[resource]
        for signal, resource in RESOURCES.items()
        if by_resource[resource].capacity > 0
    }


def format_amount(signal: Signal, amount: int) -> Quantity:
    """Returns an amount of the signal's resource as a quantity, in binary units for bytes."""
    binary = RESOURCES[signal] in (MEMORY, DISK)
    quantity_format = Format.BINARY_SI if binary else Format.DECIMAL_SI
    return Quantity.of_nanos(amount * _NANOS, quantity_format)


def drop_containerfs(thresholds: Iterable[Threshold]) -> list[Threshold]:
    """Returns the thresholds without those of containerfs.

    Upstream replaces them by the thresholds of nodefs. Those are of the same disk, so nothing
    changes without them.
    """
    ignored = (Signal.CONTAINER_DISK, Signal.CONTAINER_INODES)
    return [threshold for threshold in thresholds if threshold.signal not in ignored]


def find_met(
    thresholds: Iterable[Threshold], observed: Observations, *, enforce_min_reclaim: bool = False
) -> list[Threshold]:
    """Returns the thresholds for which too little of the resource is left.

    With `enforce_min_reclaim`, a threshold is met until its minimum reclaim is left as well.
    """
    met = []
    for threshold in thresholds:
        observation = observed.get(threshold.signal)
        if observation is None:
            continue
        required = threshold.value.of(observation.capacity)
        if enforce_min_reclaim and threshold.min_reclaim is not None:
            required += threshold.min_reclaim.of(observation.capacity)
        if observation.available < required:
            met.append(threshold)
    return met


# --- flags


def parse_thresholds(
    hard: str, soft: str, grace_periods: Mapping[str, float], min_reclaims: str
) -> list[Threshold]:
    """Returns the enabled thresholds of the flags. Raises ConfigurationError.

    `hard` and `soft` are like `memory.available<100Mi,nodefs.available<10%`. `grace_periods` are
    seconds by signal. `min_reclaims` is like `nodefs.available=1Gi`.
    """
    reclaims = dict(_parse_pairs("--eviction-minimum-reclaim", min_reclaims, "="))
    for name in grace_periods:
        _parse_signal("--eviction-soft-grace-period", name)
    thresholds = [
        Threshold(signal, value) for signal, value in _parse_pairs("--eviction-hard", hard, "<")
    ]
    for signal, value in _parse_pairs("--eviction-soft", soft, "<"):
        if not _is_enabled(value):
            continue
        if grace_periods.get(signal.value, 0) <= 0:
            raise ConfigurationError(
                f"grace period must be specified for the soft eviction threshold {signal}"
            )
        thresholds.append(Threshold(signal, value, grace_periods[signal.value]))
    return [
        replace(threshold, min_reclaim=reclaims.get(threshold.signal))
        for threshold in thresholds
        if _is_enabled(threshold.value)
    ]


def _is_enabled(value: ThresholdValue) -> bool:
    """Reports whether a threshold is enabled: percentages of 0% and 100% disable it."""
    return value.quantity is not None or 0 < value.fraction < 1


def _parse_pairs(flag: str, text: str, operator: str) -> Iterable[tuple[Signal, ThresholdValue]]:
    for part in filter(None, (part.strip() for part in text.split(","))):
        name, separator, value = part.partition(operator)
        if not separator:
            raise ConfigurationError(
                f"{flag}: {part!r} is not of the form {Signal.MEMORY}{operator}100Mi"
            )
        yield _parse_signal(flag, name.strip()), _parse_value(flag, value.strip())


def _parse_signal(flag: str, name: str) -> Signal:
    try:
        return Signal(name)
    except ValueError:
        signals = ", ".join(signal.value for signal in Signal)
        raise ConfigurationError(
            f"{flag}: {name!r} is not an eviction signal; the signals are {signals}"
        ) from None


def _parse_value(flag: str, text: str) -> ThresholdValue:
    try:
        if text.endswith("%"):
            fraction = float(text[:-1]) / 100
            if not 0 <= fraction <= 1:
                raise ValueError("a percentage must be between 0% and 100%")
            return ThresholdValue(fraction=fraction)
        quantity = parse(text)
        if quantity.sign() < 0:
            raise ValueError("the amount must not be negative")
    except ValueError as error:
        raise ConfigurationError(f"{flag}: {text!r}: {error}") from None
    return ThresholdValue(quantity)
