"""What simulated containers use, by their scripts or next to nothing."""

from __future__ import annotations

from collections.abc import Mapping

from kcm.apimachinery.quantity import Quantity, ResourceList
from kcm.simulated.profiles import Profile
from kcm.simulated.scripts import ContainerScript

IDLE: ResourceList = {"cpu": Quantity("1m"), "memory": Quantity("8Mi")}


def scripted(script: ContainerScript) -> Mapping[str, Profile]:
    """The profiles that a container has, by resource."""
    found = {"cpu": script.cpu, "memory": script.memory}
    return {name: profile for name, profile in found.items() if profile is not None}


def used(script: ContainerScript, since: float) -> ResourceList:
    """What a container uses `since` seconds after its start, if nobody shares its load."""
    return {**IDLE, **{name: found.at(since) for name, found in scripted(script).items()}}


def spent(script: ContainerScript, since: float) -> int:
    """Nanoseconds of CPU that a container has used so far."""
    if script.cpu is None:
        return int(IDLE["cpu"].nanos * since)
    return int(script.cpu.sum(since))
