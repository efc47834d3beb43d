"""Validation of ReplicationControllers.

Source: pkg/apis/core/validation/validation.go, Kubernetes 1.33.
"""

from __future__ import annotations

from kcm.api.core_v1 import PodTemplateSpec, ReplicationController
from kcm.apimachinery import names
from kcm.apimachinery.field_errors import Faults, not_negative, required
from kcm.kinds.validation import meta
from kcm.kinds.validation.apps import workloads
from kcm.kinds.validation.apps.replicasets import status_faults
from kcm.kinds.validation.podspec import pods


def create(controller: ReplicationController) -> Faults:
    metadata = meta.metadata(controller, namespaced=True, name_rule=names.subdomain_faults)
    return metadata + _spec(controller)


def update(new: ReplicationController, old: ReplicationController) -> Faults:
    return meta.metadata_update(new, old) + _spec(new)


def status_update(new: ReplicationController, old: ReplicationController) -> Faults:
    return meta.metadata_update(new, old) + status_faults(new.status)


def _spec(controller: ReplicationController) -> Faults:
    spec = controller.spec
    faults = not_negative("spec.minReadySeconds", spec.min_ready_seconds)
    if not spec.selector:
        faults.append(required("spec.selector"))
    faults += not_negative("spec.replicas", spec.replicas)
    if spec.template is None:
        return [*faults, required("spec.template")]
    return faults + _template(spec.template, spec.selector or {})


def _template(template: PodTemplateSpec, selector: dict[str, str]) -> Faults:
    faults: Faults = []
    if not selector.items() <= (template.metadata.labels or {}).items():
        faults += workloads.selector_mismatch(template)
    faults += pods.template(template, "spec.template")
    return faults + workloads.stays_up(template, "ReplicationController")
