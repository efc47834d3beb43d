"""The strategy of APIServices.

Source: staging/src/k8s.io/kube-aggregator/pkg/registry/apiservice/strategy.go, Kubernetes 1.33.
"""

from __future__ import annotations

from kcm.api.apiregistration_v1 import APIService, local_condition, with_condition
from kcm.store.strategies.base import WithoutGeneration


class APIServiceStrategy(WithoutGeneration[APIService]):
    """An API that the server itself serves is available at once."""

    def for_create(self, obj: APIService) -> APIService:
        created = super().for_create(obj)
        if created.spec.service is not None:
            return created
        created_at = created.metadata.creation_timestamp
        assert created_at is not None  # rules.complete_new has set it
        return with_condition(created, local_condition(created_at))
