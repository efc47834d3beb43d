"""Finds cloud providers: kcm's own, and those of installed packages.

A package publishes a provider as an entry point of the group `kcm.cloud_providers`, whose object is
called with `ProviderSettings` and returns the provider.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import dataclass
from importlib.metadata import entry_points

from kcm import errors
from kcm.clock import Clock
from kcm.reconcile.cloudprovider.interface import CloudProvider
from kcm.redisio import RedisIO

ENTRY_POINTS = "kcm.cloud_providers"
BUILT_IN = {"sim": "kcm.reconcile.cloudprovider.sim.provider:create"}


@dataclass(frozen=True)
class ProviderSettings:
    """What a provider is created with."""

    io: RedisIO  # not connected before its first use
    clock: Clock
    config: str = ""  # the path in --cloud-config, "" if there is none


Factory = Callable[[ProviderSettings], CloudProvider]


def list_providers() -> list[str]:
    """Returns the names of all providers, sorted."""
    return sorted({*BUILT_IN, *(point.name for point in entry_points(group=ENTRY_POINTS))})


def create_provider(name: str, settings: ProviderSettings) -> CloudProvider:
    """Returns the provider of this name. Raises ConfigurationError for an unknown name, and for a
    provider that cannot be created.
    """
    factory = _find(name)
    try:
        return factory(settings)
    except errors.KcmError:
        raise
    except Exception as error:  # a user's provider may raise anything
        raise errors.ConfigurationError(
            f"--cloud-provider={name}: {type(error).__name__}: {error}"
        ) from error


def _find(name: str) -> Factory:
    if name in BUILT_IN:
        module, _, attribute = BUILT_IN[name].partition(":")
        built_in: Factory = getattr(importlib.import_module(module), attribute)
        return built_in
    for point in entry_points(group=ENTRY_POINTS, name=name):
        try:
            loaded: Factory = point.load()
        except Exception as error:  # as above
            raise errors.ConfigurationError(
                f"entry point {ENTRY_POINTS}:{name} ({point.value}): "
                f"{type(error).__name__}: {error}"
            ) from error
        return loaded
    raise errors.ConfigurationError(
        f'--cloud-provider: unknown cloud provider "{name}"; there are: '
        f"{', '.join(list_providers())}"
    )
