"""Defaults of APIServices.

Source: staging/src/k8s.io/kube-aggregator/pkg/apis/apiregistration/v1/defaults.go, Kubernetes 1.33.
"""

from __future__ import annotations

from kcm.api.apiregistration_v1 import DEFAULT_PORT, APIService
from kcm.kinds.defaults.defaulting import fill_defaults


def api_service(obj: APIService) -> APIService:
    reference = obj.spec.service
    if reference is None or reference.port is not None:
        return obj
    filled = fill_defaults(reference, port=DEFAULT_PORT)
    return obj.with_spec(obj.spec.replace(service=filled))
