"""Builders that several tests of Deployments share."""

from __future__ import annotations

from kcm.api.apps_v1 import DeploymentStrategy, RollingUpdateDeployment


def build_rolling_update(surge: int | str, unavailable: int | str) -> DeploymentStrategy:
    update = RollingUpdateDeployment(max_surge=surge, max_unavailable=unavailable)
    return DeploymentStrategy(type="RollingUpdate", rolling_update=update)
