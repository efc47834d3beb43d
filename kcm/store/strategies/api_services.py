"""The strategy of APIServices.

Source: staging/src/k8s.io/kube-aggregator/pkg/registry/apiservice/strategy.go, Kubernetes 1.33.
"""

from __future__ import annotations

from datetime import UTC, datetime

from kcm.api.apiregistration_v1 import APIService, local_condition, with_condition
from kcm.store.strategies.base import WithoutGeneration


class APIServiceStrategy(WithoutGeneration[APIService]):
    """An API that the server itself serves is available at once."""

    def for_create(self, obj: APIService) -> APIService:
        created = super().for_create(obj)
        if created.spec.service is not None:
            return created
        now = created.metadata.creation_timestamp or datetime.now(UTC)
        return with_condition(created, local_condition(now))
