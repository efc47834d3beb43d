"""Defaults of ResourceQuota and LimitRange.

Source: pkg/apis/core/v1/defaults.go (SetDefaults_ResourceList, SetDefaults_LimitRangeItem),
Kubernetes 1.33.
"""

from __future__ import annotations

from kcm.api.core_v1 import LimitRange, LimitRangeItem, ResourceQuota
from kcm.defaults.filling import changed, each, milli


def resource_quota(quota: ResourceQuota) -> ResourceQuota:
    spec = changed(quota.spec, hard=milli(quota.spec.hard))
    status = quota.status
    status = changed(status, hard=milli(status.hard), used=milli(status.used))
    return changed(quota, spec=spec, status=status)


def limit_range(found: LimitRange) -> LimitRange:
    limits = each(found.spec.limits, _item)
    return changed(found, spec=changed(found.spec, limits=limits))


def _item(item: LimitRangeItem) -> LimitRangeItem:
    """Of containers: the default limit is the maximum, the default request the default limit,
    else the minimum."""
    amounts = ("max", "min", "default", "default_request", "max_limit_request_ratio")
    item = changed(item, **{name: milli(getattr(item, name)) for name in amounts})
    if item.type != "Container":
        return item
    default = {**(item.max or {}), **(item.default or {})}
    request = {**(item.min or {}), **default, **(item.default_request or {})}
    return changed(item, default=default or item.default, default_request=request or None)
