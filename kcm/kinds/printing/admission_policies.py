"""The columns of admission policies, their bindings, and configurations of webhooks.

Source: pkg/printers/internalversion/printers.go, Kubernetes 1.33.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

from kcm.api.admissionregistration_v1 import (
    MutatingAdmissionPolicy,
    MutatingAdmissionPolicyBinding,
    MutatingWebhookConfiguration,
    ValidatingAdmissionPolicy,
    ValidatingAdmissionPolicyBinding,
    ValidatingWebhookConfiguration,
)
from kcm.apimachinery.meta_v1 import KubeObject
from kcm.kinds.printing.column import AGE, NAME, Column

_UNSET = "<unset>"


def _param_kind(policy: ValidatingAdmissionPolicy | MutatingAdmissionPolicy, _: datetime) -> str:
    kind = policy.spec.param_kind
    return f"{kind.api_version or ''}/{kind.kind or ''}" if kind is not None else _UNSET


def _param_ref(
    binding: ValidatingAdmissionPolicyBinding | MutatingAdmissionPolicyBinding, _: datetime
) -> str:
    reference = binding.spec.param_ref
    if reference is None:
        return _UNSET
    if reference.name:
        inside = f"{reference.namespace}/" if reference.namespace else "*/"
        return f"{inside}{reference.name}"
    return f"{reference.namespace}/*" if reference.namespace else "*/*"


_WEBHOOKS = Column("Webhooks", lambda item, _: str(len(item.webhooks or ())), type="integer")

_BINDING = (
    NAME,
    Column("PolicyName", lambda item, _: item.spec.policy_name or ""),
    Column("ParamRef", _param_ref),
    AGE,
)

COLUMNS: Mapping[type[KubeObject], tuple[Column, ...]] = {
    ValidatingAdmissionPolicy: (
        NAME,
        Column(
            "Validations", lambda item, _: str(len(item.spec.validations or ())), type="integer"
        ),
        Column("ParamKind", _param_kind),
        AGE,
    ),
    MutatingAdmissionPolicy: (
        NAME,
        Column("Mutations", lambda item, _: str(len(item.spec.mutations or ())), type="integer"),
        Column("ParamKind", _param_kind),
        AGE,
    ),
    ValidatingAdmissionPolicyBinding: _BINDING,
    MutatingAdmissionPolicyBinding: _BINDING,
    ValidatingWebhookConfiguration: (NAME, _WEBHOOKS, AGE),
    MutatingWebhookConfiguration: (NAME, _WEBHOOKS, AGE),
}
