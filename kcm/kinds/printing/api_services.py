"""The columns of APIServices.

Source: staging/src/k8s.io/kube-aggregator/pkg/registry/apiservice/etcd/etcd.go, Kubernetes 1.33.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

from kcm.api.apiregistration_v1 import TRUE, UNKNOWN, APIService, find_condition
from kcm.apimachinery.meta_v1 import KubeObject
from kcm.kinds.printing.column import AGE, NAME, Column


def _service(obj: APIService, _: datetime) -> str:
    reference = obj.spec.service
    if reference is None:
        return "Local"
    return f"{reference.namespace or ''}/{reference.name or ''}"


def _available(obj: APIService, _: datetime) -> str:
    condition = find_condition(obj)
    if condition is None:
        return UNKNOWN
    if condition.status == TRUE or not condition.reason:
        return condition.status
    return f"{condition.status} ({condition.reason})"


COLUMNS: Mapping[type[KubeObject], tuple[Column, ...]] = {
    APIService: (NAME, Column("Service", _service), Column("Available", _available), AGE)
}
