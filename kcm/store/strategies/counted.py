"""The strategies of kinds without status whose changes are counted nevertheless.

Source: pkg/registry/core/podtemplate/strategy.go, pkg/registry/storage/csidriver/strategy.go,
pkg/registry/discovery/endpointslice/strategy.go, pkg/registry/scheduling/priorityclass/strategy.go
and pkg/registry/admissionregistration/*/strategy.go, Kubernetes 1.33.
"""

from __future__ import annotations

from kcm.api.admissionregistration_v1 import (
    MutatingWebhookConfiguration,
    ValidatingWebhookConfiguration,
)
from kcm.api.core_v1 import PodTemplate
from kcm.api.discovery_v1 import EndpointSlice
from kcm.api.scheduling_v1 import PriorityClass
from kcm.api.storage_v1 import CSIDriver
from kcm.store.strategies.base import Strategy, T, WithoutGeneration


class CountedStrategy(Strategy[T]):
    """Changes of the spec increase the generation, although the kind has no status."""

    def for_create(self, obj: T) -> T:
        return super().for_create(obj).with_metadata(generation=1)


class PodTemplateStrategy(CountedStrategy[PodTemplate]):
    """Changes of the template increase the generation."""

    def is_revised(self, new: PodTemplate, old: PodTemplate) -> bool:
        return new.template != old.template


class CSIDriverStrategy(WithoutGeneration[CSIDriver]):
    """Changes of what a driver may change make a new generation; upstream starts at 0."""

    def is_revised(self, new: CSIDriver, old: CSIDriver) -> bool:
        return any(
            getattr(new.spec, field) != getattr(old.spec, field)
            for field in ("token_requests", "requires_republish", "se_linux_mount")
        )


class EndpointSliceStrategy(Strategy[EndpointSlice]):
    """Slices have a generation, although they have no spec."""

    def for_create(self, obj: EndpointSlice) -> EndpointSlice:
        return obj.with_metadata(generation=1)

    def is_revised(self, new: EndpointSlice, old: EndpointSlice) -> bool:
        return (
            new.endpoints != old.endpoints
            or (new.ports or []) != (old.ports or [])
            or dict(new.labels) != dict(old.labels)
            or dict(new.annotations) != dict(old.annotations)
            or new.metadata.owner_references != old.metadata.owner_references
        )


class PriorityClassStrategy(Strategy[PriorityClass]):
    """The generation of a class is always 1, since all fields that would count are immutable."""

    def for_create(self, obj: PriorityClass) -> PriorityClass:
        return obj.with_metadata(generation=1)

    def is_revised(self, new: PriorityClass, old: PriorityClass) -> bool:
        return False


class WebhooksStrategy(
    CountedStrategy[ValidatingWebhookConfiguration | MutatingWebhookConfiguration]
):
    """Changes of the webhooks increase the generation."""

    def is_revised(
        self,
        new: ValidatingWebhookConfiguration | MutatingWebhookConfiguration,
        old: ValidatingWebhookConfiguration | MutatingWebhookConfiguration,
    ) -> bool:
        return new.webhooks != old.webhooks
