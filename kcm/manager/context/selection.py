"""Selects the controllers that a process runs: those that are enabled and whose kinds are
served.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from kcm.api.scheme import Scheme
from kcm.manager.context.discovery import Discovery
from kcm.options.manager import (
    ManagerOptions,
    controllers_disabled_by_default,
    is_controller_enabled,
    resolve_names,
)
from kcm.options.names import BY_NAME
from kcm.reconcile.cloudprovider.interface import CloudProvider
from kcm.reconcile.contract import Controller


@dataclass(frozen=True)
class Selection:
    """The controllers that are started, disabled and skipped."""

    started: tuple[Controller, ...]
    disabled: tuple[str, ...] = ()
    skipped: Mapping[str, str] | None = None  # by name, the reason


def select(
    options: ManagerOptions,
    discovery: Discovery | None = None,
    cloud: CloudProvider | None = None,
) -> Selection:
    """Returns the selection for the options.

    `cloud` is the provider that --cloud-provider names, None if it was not created: then it counts
    as one that has every interface.

    Raises ConfigurationError as `resolve_names` does.
    """
    discovery = discovery or Discovery(Scheme())
    types = options.types()
    wanted = resolve_names(options.generic.controllers, types)
    off = controllers_disabled_by_default(types)
    started: list[Controller] = []
    disabled: list[str] = []
    skipped: dict[str, str] = {}
    for kind in sorted(types, key=_starts_later):
        if not is_controller_enabled(kind.name, off, wanted):
            disabled.append(kind.name)
            continue
        controller = kind(options.of(kind))
        lacking = _describe_lack_of_cloud(controller, options.cloud.cloud_provider, cloud)
        lacking = lacking or controller.missing_option()
        missing = discovery.list_missing(controller)
        if kind.local_only and options.generic.kubeconfig:
            skipped[kind.name] = "another API server cannot check the guards of its writes"
        elif lacking:
            skipped[kind.name] = lacking
        elif missing:
            skipped[kind.name] = f"the store does not serve {', '.join(missing)}"
        else:
            started.append(controller)
    return Selection(tuple(started), tuple(disabled), skipped)


def _describe_lack_of_cloud(
    controller: Controller, provider: str, cloud: CloudProvider | None
) -> str:
    """Returns why a controller cannot call the cloud, "" if it can or need not."""
    if controller.cloud is None:
        return ""
    if not provider:
        return "no cloud provider is set (--cloud-provider)"
    if cloud is not None and getattr(cloud, controller.cloud.interface) is None:
        what = controller.cloud.interface.replace("_", " ")
        return f"the cloud provider {cloud.name} does not support {what}"
    return ""


def _starts_later(kind: type[Controller]) -> bool:
    return not (kind.name in BY_NAME and BY_NAME[kind.name].first)


def create_enabled(options: ManagerOptions) -> list[Controller]:
    """Returns an instance of every controller that is enabled and whose kinds are served."""
    return list(select(options).started)
