"""admissionregistration.k8s.io/v1: configurations of webhooks, ValidatingAdmissionPolicy and its
binding.

Source: staging/src/k8s.io/api/admissionregistration/v1/types.go, Kubernetes 1.33.
"""

from __future__ import annotations

from typing import Annotated, ClassVar

from pydantic import Field

from kcm.apimachinery.base import Int32, Int64, MergeKey, MergeSet, Model
from kcm.apimachinery.meta_v1 import Condition, KubeObject, LabelSelector

GROUP = "admissionregistration.k8s.io"
ALL = "*"
CREATE, UPDATE, DELETE, CONNECT = "CREATE", "UPDATE", "DELETE", "CONNECT"
FAIL, IGNORE = "Fail", "Ignore"
EXACT, EQUIVALENT = "Exact", "Equivalent"
DENY, WARN, AUDIT = "Deny", "Warn", "Audit"
CLUSTER, NAMESPACED = "Cluster", "Namespaced"
NONE, NONE_ON_DRY_RUN = "None", "NoneOnDryRun"
NEVER, IF_NEEDED = "Never", "IfNeeded"


class NamedRuleWithOperations(Model):
    """Operations on resources, and perhaps names of objects."""

    resource_names: list[str] | None = None
    operations: list[str] | None = None
    api_groups: list[str] | None = Field(default=None, alias="apiGroups")
    api_versions: list[str] | None = Field(default=None, alias="apiVersions")
    resources: list[str] | None = None
    scope: str | None = None


class MatchResources(Model):
    """Requests: those that some rule and all selectors match, and no excluding rule."""

    kubernetes_atomic: ClassVar[bool] = True

    namespace_selector: LabelSelector | None = None
    object_selector: LabelSelector | None = None
    resource_rules: list[NamedRuleWithOperations] | None = None
    exclude_resource_rules: list[NamedRuleWithOperations] | None = None
    match_policy: str | None = None


class ParamKind(Model):
    """The kind of the objects that parametrize a policy."""

    kubernetes_atomic: ClassVar[bool] = True

    api_version: str | None = Field(default=None, alias="apiVersion")
    kind: str | None = None


class Validation(Model):
    """An expression that must be true for a request to be admitted, and what is said if not."""

    expression: str = ""
    message: str | None = None
    reason: str | None = None
    message_expression: str | None = None


class MatchCondition(Model):
    """An expression that must be true for a policy to apply to a request."""

    name: str = ""
    expression: str = ""


class AuditAnnotation(Model):
    """An annotation of a request in the audit log, whose value an expression computes."""

    key: str = ""
    value_expression: str = ""


class Variable(Model):
    """An expression whose value other expressions can use."""

    name: str = ""
    expression: str = ""


class ValidatingAdmissionPolicySpec(Model):
    """To which requests a policy may apply, and what must be true of them."""

    param_kind: ParamKind | None = None
    match_constraints: MatchResources | None = None
    validations: list[Validation] | None = None
    failure_policy: str | None = None
    audit_annotations: list[AuditAnnotation] | None = None
    match_conditions: Annotated[list[MatchCondition] | None, MergeKey("name")] = None
    variables: Annotated[list[Variable] | None, MergeKey("name")] = None


class ExpressionWarning(Model):
    """What is likely wrong with an expression."""

    field_ref: str = ""
    warning: str = ""


class TypeChecking(Model):
    """What the types of a policy's expressions tell."""

    expression_warnings: list[ExpressionWarning] | None = None


class ValidatingAdmissionPolicyStatus(Model):
    """The faults that the check of a policy has found."""

    observed_generation: Int64 | None = None
    type_checking: TypeChecking | None = None
    conditions: Annotated[list[Condition] | None, MergeKey("type", patches=False)] = None


class ValidatingAdmissionPolicy(KubeObject):
    """Expressions that decide whether requests are admitted, where bindings apply them."""

    api_version: str = f"{GROUP}/v1"
    kind: str = "ValidatingAdmissionPolicy"
    spec: ValidatingAdmissionPolicySpec = Field(default_factory=ValidatingAdmissionPolicySpec)
    status: ValidatingAdmissionPolicyStatus = Field(default_factory=ValidatingAdmissionPolicyStatus)


class ParamRef(Model):
    """The objects that parametrize a policy: one by its name, or several by a selector."""

    kubernetes_atomic: ClassVar[bool] = True

    name: str | None = None
    namespace: str | None = None
    selector: LabelSelector | None = None
    parameter_not_found_action: str | None = None


class ValidatingAdmissionPolicyBindingSpec(Model):
    """The policy, its parameters, the requests that it is narrowed to, and what it does."""

    policy_name: str | None = None
    param_ref: ParamRef | None = None
    match_resources: MatchResources | None = None
    validation_actions: Annotated[list[str] | None, MergeSet(patches=False)] = None


class ValidatingAdmissionPolicyBinding(KubeObject):
    """Applies a policy to requests."""

    api_version: str = f"{GROUP}/v1"
    kind: str = "ValidatingAdmissionPolicyBinding"
    spec: ValidatingAdmissionPolicyBindingSpec = Field(
        default_factory=ValidatingAdmissionPolicyBindingSpec
    )


class ApplyConfiguration(Model):
    """An expression whose value is applied to the object, as by server-side apply."""

    expression: str | None = None


class JSONPatch(Model):
    """An expression whose value is a JSON patch."""

    expression: str | None = None


class Mutation(Model):
    """A change of the object. The patch type says which of the two fields is set."""

    patch_type: str = ""
    apply_configuration: ApplyConfiguration | None = None
    json_patch: JSONPatch | None = Field(default=None, alias="jsonPatch")


class MutatingAdmissionPolicySpec(Model):
    """To which requests a policy may apply, and what it changes."""

    param_kind: ParamKind | None = None
    match_constraints: MatchResources | None = None
    variables: list[Variable] | None = None
    mutations: list[Mutation] | None = None
    failure_policy: str | None = None
    match_conditions: Annotated[list[MatchCondition] | None, MergeKey("name")] = None
    reinvocation_policy: str | None = None


class MutatingAdmissionPolicy(KubeObject):
    """Expressions that change the objects of requests, where bindings apply them."""

    api_version: str = f"{GROUP}/v1"
    kind: str = "MutatingAdmissionPolicy"
    spec: MutatingAdmissionPolicySpec = Field(default_factory=MutatingAdmissionPolicySpec)


class MutatingAdmissionPolicyBindingSpec(Model):
    """The policy, its parameters, and the requests that it is narrowed to."""

    policy_name: str | None = None
    param_ref: ParamRef | None = None
    match_resources: MatchResources | None = None


class MutatingAdmissionPolicyBinding(KubeObject):
    """Applies a policy to requests."""

    api_version: str = f"{GROUP}/v1"
    kind: str = "MutatingAdmissionPolicyBinding"
    spec: MutatingAdmissionPolicyBindingSpec = Field(
        default_factory=MutatingAdmissionPolicyBindingSpec
    )


class RuleWithOperations(Model):
    """Operations on resources."""

    operations: list[str] | None = None
    api_groups: list[str] | None = Field(default=None, alias="apiGroups")
    api_versions: list[str] | None = Field(default=None, alias="apiVersions")
    resources: list[str] | None = None
    scope: str | None = None


class ServiceReference(Model):
    """The Service behind which a webhook's server listens."""

    namespace: str = ""
    name: str = ""
    path: str | None = None
    port: Int32 | None = None


class WebhookClientConfig(Model):
    """Where a webhook's server is, and which authority signed its certificate."""

    url: str | None = None
    service: ServiceReference | None = None
    ca_bundle: str | None = None  # PEM in base64


class ValidatingWebhook(Model):
    """A server that admits or refuses requests, and the requests that it is asked about."""

    name: str = ""
    client_config: WebhookClientConfig = Field(default_factory=WebhookClientConfig)
    rules: list[RuleWithOperations] | None = None
    failure_policy: str | None = None
    match_policy: str | None = None
    namespace_selector: LabelSelector | None = None
    object_selector: LabelSelector | None = None
    side_effects: str | None = None
    timeout_seconds: Int32 | None = None
    admission_review_versions: list[str] = Field(default_factory=list)
    match_conditions: Annotated[list[MatchCondition] | None, MergeKey("name")] = None


class MutatingWebhook(ValidatingWebhook):
    """A server that may also change the objects of requests."""

    reinvocation_policy: str | None = None


class ValidatingWebhookConfiguration(KubeObject):
    """Webhooks that admit or refuse requests."""

    api_version: str = f"{GROUP}/v1"
    kind: str = "ValidatingWebhookConfiguration"
    webhooks: Annotated[list[ValidatingWebhook] | None, MergeKey("name")] = None


class MutatingWebhookConfiguration(KubeObject):
    """Webhooks that may change the objects of requests."""

    api_version: str = f"{GROUP}/v1"
    kind: str = "MutatingWebhookConfiguration"
    webhooks: Annotated[list[MutatingWebhook] | None, MergeKey("name")] = None
