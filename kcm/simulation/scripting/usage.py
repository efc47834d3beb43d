"""The usage of simulated containers: that of their scripts, or a small default."""

from __future__ import annotations

from collections.abc import Mapping

from kcm.apimachinery.quantity import Quantity, ResourceList
from kcm.simulation.scripting.profiles import Profile
from kcm.simulation.scripting.scripts import ContainerScript

IDLE: ResourceList = {"cpu": Quantity("1m"), "memory": Quantity("8Mi")}


def find_profiles(script: ContainerScript) -> Mapping[str, Profile]:
    """Returns the script's profiles by resource, without those that it does not set."""
    profiles = {"cpu": script.cpu, "memory": script.memory}
    return {name: profile for name, profile in profiles.items() if profile is not None}


def compute_usage(script: ContainerScript, since: float) -> ResourceList:
    """Returns a container's usage at `since` seconds after its start.

    Nothing is divided by sharers.
    """
    return {**IDLE, **{name: profile.at(since) for name, profile in find_profiles(script).items()}}


def compute_cpu_time(script: ContainerScript, since: float) -> int:
    """Returns the nanoseconds of CPU that a container has used `since` seconds after its start."""
    if script.cpu is None:
        return int(IDLE["cpu"].nanos * since)
    return int(script.cpu.sum(since))
