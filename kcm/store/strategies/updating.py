"""What updates of a kind may do: create, leave out the version, change metadata by the status."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeVar

from kcm.api.custom.kinds import CustomResource
from kcm.api.scheme import Resource
from kcm.apimachinery.meta_v1 import KubeObject

T = TypeVar("T", bound=KubeObject)

# The metadata that a request for the status may change, and what stays for some kinds; the
# PrepareForUpdate of upstream's status strategies.
_STATUS_METADATA = frozenset({"labels", "annotations", "finalizers", "owner_references"})
_NOT_BY_STATUS: Mapping[str, frozenset[str]] = {
    "deployments.apps": frozenset({"labels"}),
    "pods": frozenset({"owner_references"}),
    **dict.fromkeys(
        (
            "apiservices.apiregistration.k8s.io",
            "customresourcedefinitions.apiextensions.k8s.io",
            "flowschemas.flowcontrol.apiserver.k8s.io",
            "prioritylevelconfigurations.flowcontrol.apiserver.k8s.io",
            "resourceclaims.resource.k8s.io",
            "servicecidrs.networking.k8s.io",
            "storageversionmigrations.storagemigration.k8s.io",
            "validatingadmissionpolicies.admissionregistration.k8s.io",
            "volumeattachments.storage.k8s.io",
        ),
        _STATUS_METADATA,
    ),
}

# Kinds that a PUT may create; AllowCreateOnUpdate of upstream's strategies.
_CREATED_BY_UPDATE = frozenset(
    {
        "clusterrolebindings.rbac.authorization.k8s.io",
        "clusterroles.rbac.authorization.k8s.io",
        "endpoints",
        "events",
        "leases.coordination.k8s.io",
        "limitranges",
        "rolebindings.rbac.authorization.k8s.io",
        "roles.rbac.authorization.k8s.io",
        "services",
    }
)
# Kinds whose PUT must have a resourceVersion; AllowUnconditionalUpdate is false upstream.
_CONDITIONAL = frozenset(
    {
        "apiservices.apiregistration.k8s.io",
        "csidrivers.storage.k8s.io",
        "csinodes.storage.k8s.io",
        "csistoragecapacities.storage.k8s.io",
        "customresourcedefinitions.apiextensions.k8s.io",
        "leases.coordination.k8s.io",
        "mutatingadmissionpolicies.admissionregistration.k8s.io",
        "mutatingadmissionpolicybindings.admissionregistration.k8s.io",
        "mutatingwebhookconfigurations.admissionregistration.k8s.io",
        "poddisruptionbudgets.policy",
        "serviceaccounts",
        "validatingadmissionpolicies.admissionregistration.k8s.io",
        "validatingadmissionpolicybindings.admissionregistration.k8s.io",
        "validatingwebhookconfigurations.admissionregistration.k8s.io",
        "volumeattachments.storage.k8s.io",
    }
)


def creates_on_update(resource: Resource) -> bool:
    """Reports whether an update of an object that does not exist creates it."""
    return resource.name in _CREATED_BY_UPDATE


def needs_version(resource: Resource) -> bool:
    """Reports whether an update must have the resourceVersion that it replaces."""
    return resource.name in _CONDITIONAL


def take_status_metadata(updated: T, new: KubeObject) -> T:
    """Returns `updated` with the metadata of `new` that a request for the status may change."""
    resource = updated.resource
    if isinstance(resource, CustomResource):
        return updated
    taken = _STATUS_METADATA - _NOT_BY_STATUS.get(resource.name, frozenset())
    changes = {name: getattr(new.metadata, name) for name in taken}
    if all(getattr(updated.metadata, name) == value for name, value in changes.items()):
        return updated
    return updated.with_metadata(**changes)
