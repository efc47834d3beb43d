"""The total usage of all objects in a namespace.

Source: CalculateUsage in staging/src/k8s.io/apiserver/pkg/quota/v1/resources.go and
CalculateUsageStats in staging/src/k8s.io/apiserver/pkg/quota/v1/generic/evaluator.go, Kubernetes
1.33.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import datetime

from kcm.api.core_v1 import ResourceQuota
from kcm.api.scheme import Resource
from kcm.apimachinery.meta_v1 import KubeObject
from kcm.apimachinery.quantity import ResourceList
from kcm.kinds.quota.amounts import ZERO, add_amounts, only
from kcm.kinds.quota.evaluators import evaluator_of


def used_by(
    quota: ResourceQuota,
    resources: Iterable[Resource],
    objects: Callable[[Resource], Iterable[KubeObject]],
    now: datetime,
) -> ResourceList:
    """Returns how much of the quota's limits the objects of its namespace use.

    `objects` is called only for kinds to which a limit applies. A limit that applies to none of
    `resources` has no entry.
    """
    hard = quota.spec.hard or {}
    total: ResourceList = {}
    for resource in resources:
        evaluator = evaluator_of(resource)
        limited = [name for name in hard if evaluator.tracks(name)]
        if not limited:
            continue
        total = add_amounts(dict.fromkeys(limited, ZERO), total)
        for obj in objects(resource):
            if evaluator.in_scopes(obj, quota):
                total = add_amounts(total, only(evaluator.usage(obj, now), limited))
    return total
