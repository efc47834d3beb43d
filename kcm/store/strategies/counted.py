"""Which kinds count their changes in `metadata.generation`, and what counts for those whose changes
are not in a spec.

Source: `Generation = 1` in pkg/registry/*/*/strategy.go and in
staging/src/k8s.io/apiextensions-apiserver/pkg/registry/customresourcedefinition/strategy.go,
Kubernetes 1.36.
"""

from __future__ import annotations

from kcm.api.admissionregistration_v1 import (
    MutatingWebhookConfiguration,
    ValidatingWebhookConfiguration,
)
from kcm.api.core_v1 import PodTemplate
from kcm.api.custom.kinds import CustomResource
from kcm.api.discovery_v1 import EndpointSlice
from kcm.api.scheduling_v1 import PriorityClass
from kcm.api.scheme import Resource
from kcm.api.storage_v1 import CSIDriver
from kcm.store.strategies.base import Strategy

_COUNTED = frozenset(
    {
        "pods",
        "podtemplates",
        "replicationcontrollers",
        "customresourcedefinitions.apiextensions.k8s.io",
        "endpointslices.discovery.k8s.io",
        "poddisruptionbudgets.policy",
        "priorityclasses.scheduling.k8s.io",
        *(f"{kind}.apps" for kind in ("daemonsets", "deployments", "replicasets", "statefulsets")),
        *(f"{kind}.batch" for kind in ("cronjobs", "jobs")),
        *(
            f"{kind}.networking.k8s.io"
            for kind in ("ingresses", "ingressclasses", "networkpolicies")
        ),
        *(
            f"{kind}.flowcontrol.apiserver.k8s.io"
            for kind in ("flowschemas", "prioritylevelconfigurations")
        ),
        *(
            f"{kind}.resource.k8s.io"
            for kind in ("deviceclasses", "devicetaintrules", "resourceslices")
        ),
        *(
            f"{kind}.admissionregistration.k8s.io"
            for kind in (
                "mutatingadmissionpolicies",
                "mutatingadmissionpolicybindings",
                "mutatingwebhookconfigurations",
                "validatingadmissionpolicies",
                "validatingadmissionpolicybindings",
                "validatingwebhookconfigurations",
            )
        ),
    }
)


def first_generation(resource: Resource) -> int | None:
    """Returns the generation of a new object, None if its kind has none."""
    return 1 if isinstance(resource, CustomResource) or resource.name in _COUNTED else None


def counts_changes(resource: Resource) -> bool:
    """Reports whether a change of an object may increase its generation."""
    # A driver has no generation until it changes for the first time.
    return first_generation(resource) is not None or resource.name == CSIDriver.resource.name


class PodTemplateStrategy(Strategy[PodTemplate]):
    """Changes of the template increase the generation."""

    def is_revised(self, new: PodTemplate, old: PodTemplate) -> bool:
        return new.template != old.template


class CSIDriverStrategy(Strategy[CSIDriver]):
    """Changes of what a driver may change make a new generation."""

    def is_revised(self, new: CSIDriver, old: CSIDriver) -> bool:
        return any(
            getattr(new.spec, field) != getattr(old.spec, field)
            for field in ("token_requests", "requires_republish", "se_linux_mount")
        )


class EndpointSliceStrategy(Strategy[EndpointSlice]):
    """Changes of what a slice says increase the generation, although it has no spec.

    New slices have no deprecatedTopology, which belongs to the version before v1.
    """

    def for_create(self, obj: EndpointSlice) -> EndpointSlice:
        if not any(endpoint.deprecated_topology for endpoint in obj.endpoints):
            return obj
        endpoints = [endpoint.replace(deprecated_topology=None) for endpoint in obj.endpoints]
        return obj.replace(endpoints=endpoints)

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

    def is_revised(self, new: PriorityClass, old: PriorityClass) -> bool:
        return False


class WebhooksStrategy(Strategy[ValidatingWebhookConfiguration | MutatingWebhookConfiguration]):
    """Changes of the webhooks increase the generation."""

    def is_revised(
        self,
        new: ValidatingWebhookConfiguration | MutatingWebhookConfiguration,
        old: ValidatingWebhookConfiguration | MutatingWebhookConfiguration,
    ) -> bool:
        return new.webhooks != old.webhooks
