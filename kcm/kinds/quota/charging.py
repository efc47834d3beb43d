"""Charges quotas with an object: adds its usage, or finds that it exceeds a limit.

Source: CheckRequest in
staging/src/k8s.io/apiserver/pkg/admission/plugin/resourcequota/controller.go, Kubernetes 1.33.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from kcm import errors
from kcm.api.core_v1 import ResourceQuota
from kcm.apimachinery.meta_v1 import KubeObject
from kcm.apimachinery.quantity import ResourceList, add_amounts
from kcm.kinds.quota.amounts import format_amounts, format_names, growth, only
from kcm.kinds.quota.evaluators import Evaluator


class Excess(errors.KcmError):
    """The object would exceed a quota, or its usage of the quota is unknown."""


def charged(
    quotas: Sequence[ResourceQuota],
    evaluator: Evaluator,
    obj: KubeObject,
    old: KubeObject | None,
    now: datetime,
) -> list[ResourceQuota]:
    """Returns the quotas after `obj` was charged to them. Unaffected quotas are the same objects.

    `old` is the object that an update replaces. Raises Excess with upstream's message.
    """
    applies = [_applies(quota, evaluator, obj) for quota in quotas]
    usage = evaluator.usage(obj, now) if any(applies) else {}
    negative = [name for name, amount in usage.items() if amount.sign() < 0]
    if negative:
        raise Excess(f"quota usage is negative for resource(s): {format_names(negative)}")
    changed_quotas = []
    for quota, is_limited in zip(quotas, applies, strict=True):
        if not is_limited:
            changed_quotas.append(quota)
            continue
        before = old is not None and evaluator.in_scopes(old, quota)
        more = growth(usage, evaluator.usage(old, now)) if before else usage
        changed_quotas.append(
            _with(quota, {name: amount for name, amount in more.items() if amount})
        )
    return changed_quotas


def _applies(quota: ResourceQuota, evaluator: Evaluator, obj: KubeObject) -> bool:
    """Reports whether the quota limits the object.

    Raises Excess if the object lacks a value that the quota limits, or if the quota's controller
    has not computed its usage yet.
    """
    limited = evaluator.tracked(quota)
    if not limited or not evaluator.in_scopes(obj, quota):
        return False
    why = evaluator.missing(obj, limited)
    if why:
        raise Excess(f"failed quota: {quota.name}: {why}")
    if not set(limited) <= (quota.status.used or {}).keys():
        names = format_names(limited)
        raise Excess(f"status unknown for quota: {quota.name}, resources: {names}")
    return True


def _with(quota: ResourceQuota, usage: ResourceList) -> ResourceQuota:
    hard, used = quota.status.hard or {}, quota.status.used or {}
    requested = only(usage, hard)
    if not requested:
        return quota
    total = add_amounts(used, requested)
    exceeded = [name for name in requested if total[name] > hard[name]]
    if exceeded:
        asked, taken, limited = (
            format_amounts(only(amounts, exceeded)) for amounts in (requested, used, hard)
        )
        raise Excess(
            f"exceeded quota: {quota.name}, requested: {asked}, used: {taken}, limited: {limited}"
        )
    return quota.with_status(quota.status.replace(used=total))
