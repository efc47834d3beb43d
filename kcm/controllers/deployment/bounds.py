"""Computes how many pods more and fewer than wanted a rollout may have.

Source: pkg/controller/deployment/util/deployment_util.go (ResolveFenceposts), Kubernetes 1.33.
"""

from __future__ import annotations

from kcm.api.apps_v1 import Deployment
from kcm.helpers.intstr import scaled_value


def wanted_replicas(deployment: Deployment) -> int:
    """Returns how many pods the Deployment wants."""
    return 1 if deployment.spec.replicas is None else deployment.spec.replicas


def is_rolling(deployment: Deployment) -> bool:
    return deployment.spec.strategy.type == "RollingUpdate"


def max_surge(deployment: Deployment) -> int:
    """Returns how many pods beyond the wanted number may exist. Percentages are rounded up.

    It is 0 except for the strategy RollingUpdate.
    """
    update = deployment.spec.strategy.rolling_update
    if not is_rolling(deployment) or update is None:
        return 0
    return scaled_value(update.max_surge, wanted_replicas(deployment), round_up=True)


def max_unavailable(deployment: Deployment) -> int:
    """Returns how many of the wanted pods may be unavailable. Percentages are rounded down.

    It is 1 where neither maxSurge nor maxUnavailable would let the rollout proceed, and 0 except
    for the strategy RollingUpdate.
    """
    update = deployment.spec.strategy.rolling_update
    replicas = wanted_replicas(deployment)
    if not is_rolling(deployment) or update is None or replicas == 0:
        return 0
    unavailable = scaled_value(update.max_unavailable, replicas, round_up=False)
    if unavailable == 0 and max_surge(deployment) == 0:
        unavailable = 1
    return min(unavailable, replicas)
