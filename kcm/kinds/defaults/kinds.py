"""Defaults of kinds that have few.

Source: pkg/apis/{core,scheduling,rbac,storage,networking}/v1/{defaults,conversion}.go and
staging/src/k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1/defaults.go, Kubernetes 1.33.
"""

from __future__ import annotations

import base64
from typing import TypeVar

from kcm.api import rbac_v1
from kcm.api.apiextensions_v1 import CustomResourceConversion, CustomResourceDefinition
from kcm.api.core_v1 import PodTemplate, Secret
from kcm.api.networking_v1 import (
    IngressClass,
    NetworkPolicy,
    NetworkPolicyEgressRule,
    NetworkPolicyIngressRule,
)
from kcm.api.scheduling_v1 import PriorityClass
from kcm.api.storage_v1 import CSIDriver, StorageClass
from kcm.kinds.defaults import pods
from kcm.kinds.defaults.defaulting import change_fields, fill_defaults, fill_each

_HTTPS_PORT = 443  # of a conversion webhook's Service

RuleT = TypeVar("RuleT", NetworkPolicyIngressRule, NetworkPolicyEgressRule)
BindingT = TypeVar("BindingT", rbac_v1.RoleBinding, rbac_v1.ClusterRoleBinding)


def secret(secret: Secret) -> Secret:
    if secret.string_data is not None:
        data = {**(secret.data or {})}
        data |= {name: _base64(text) for name, text in secret.string_data.items()}
        secret = secret.replace(data=data or None, string_data=None)
    return fill_defaults(secret, type="Opaque")


def _base64(text: str) -> str:
    return base64.b64encode(text.encode(errors="replace")).decode()


def priority_class(priority_class: PriorityClass) -> PriorityClass:
    return fill_defaults(priority_class, preemption_policy="PreemptLowerPriority")


def pod_template(template_object: PodTemplate) -> PodTemplate:
    template = change_fields(
        template_object.template, spec=pods.pod_spec(template_object.template.spec)
    )
    return change_fields(template_object, template=template)


def storage_class(obj: StorageClass) -> StorageClass:
    return fill_defaults(obj, reclaim_policy="Delete", volume_binding_mode="Immediate")


def csi_driver(driver: CSIDriver) -> CSIDriver:
    spec = fill_defaults(
        driver.spec,
        attach_required=True,
        pod_info_on_mount=False,
        storage_capacity=False,
        fs_group_policy="ReadWriteOnceWithFSType",
        requires_republish=False,
        se_linux_mount=False,
    )
    modes = spec.volume_lifecycle_modes or ["Persistent"]
    # The second field belongs to a feature that is off by default (VolumeLimitScaling).
    spec = change_fields(spec, volume_lifecycle_modes=modes, prevent_pod_scheduling_if_missing=None)
    return change_fields(driver, spec=spec)


def network_policy(policy: NetworkPolicy) -> NetworkPolicy:
    """Fills in TCP as the protocol of ports, and the policy types that follow from the rules."""
    spec = policy.spec
    incoming = fill_each(spec.ingress, _with_ports)
    outgoing = fill_each(spec.egress, _with_ports)
    types = spec.policy_types or (["Ingress", "Egress"] if spec.egress else ["Ingress"])
    return change_fields(
        policy, spec=change_fields(spec, ingress=incoming, egress=outgoing, policy_types=types)
    )


def _with_ports(rule: RuleT) -> RuleT:
    return change_fields(
        rule, ports=fill_each(rule.ports, lambda port: fill_defaults(port, protocol="TCP"))
    )


def ingress_class(obj: IngressClass) -> IngressClass:
    parameters = obj.spec.parameters
    if parameters is None:
        return obj
    spec = change_fields(obj.spec, parameters=fill_defaults(parameters, scope="Cluster"))
    return change_fields(obj, spec=spec)


def binding(binding: BindingT) -> BindingT:
    reference = fill_defaults(binding.role_ref, api_group=rbac_v1.GROUP)
    return change_fields(
        binding, role_ref=reference, subjects=fill_each(binding.subjects, _subject)
    )


def _subject(subject: rbac_v1.Subject) -> rbac_v1.Subject:
    if subject.kind not in ("User", "Group"):
        return subject
    return fill_defaults(subject, api_group=rbac_v1.GROUP)


def _conversion(conversion: CustomResourceConversion) -> CustomResourceConversion:
    if conversion.webhook is None:
        return conversion
    config = conversion.webhook.client_config
    if config is None or config.service is None:
        return conversion
    config = change_fields(config, service=fill_defaults(config.service, port=_HTTPS_PORT))
    webhook = change_fields(conversion.webhook, client_config=config)
    return change_fields(conversion, webhook=webhook)


def definition(definition: CustomResourceDefinition) -> CustomResourceDefinition:
    names = definition.spec.names
    if names.kind:
        names = fill_defaults(names, singular=names.kind.lower(), list_kind=f"{names.kind}List")
    conversion = definition.spec.conversion or CustomResourceConversion()
    conversion = _conversion(fill_defaults(conversion, strategy="None"))
    return change_fields(
        definition, spec=change_fields(definition.spec, names=names, conversion=conversion)
    )
