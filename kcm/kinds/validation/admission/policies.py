"""Validation of ValidatingAdmissionPolicies and their bindings.

Expressions that have not changed are not compiled again, so that a policy that was stored can be
changed elsewhere.

Source: pkg/apis/admissionregistration/validation/validation.go, Kubernetes 1.33. Departure: the
cost of an expression is not estimated before it runs.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from kcm.api.admissionregistration_v1 import (
    AUDIT,
    DENY,
    FAIL,
    IGNORE,
    WARN,
    AuditAnnotation,
    MatchCondition,
    MutatingAdmissionPolicyBindingSpec,
    MutatingAdmissionPolicySpec,
    ParamKind,
    ParamRef,
    ValidatingAdmissionPolicy,
    ValidatingAdmissionPolicyBinding,
    ValidatingAdmissionPolicyBindingSpec,
    ValidatingAdmissionPolicySpec,
    Validation,
    Variable,
)
from kcm.apiextensions.cel.policy_programs import Scope
from kcm.apimachinery import names
from kcm.apimachinery.field_errors import (
    Faults,
    duplicate,
    forbidden,
    invalid,
    invalid_all,
    not_supported,
    required,
    too_long,
    too_many,
)
from kcm.kinds.validation import meta
from kcm.kinds.validation.admission.expressions import (
    BOOL,
    NULL,
    STRING,
    expression,
    match_conditions,
    repeated,
    type_of,
)
from kcm.kinds.validation.admission.rules import match_resources

_REASONS = ("Forbidden", "Invalid", "RequestEntityTooLarge", "Unauthorized")
_MOST_ANNOTATIONS = 20
_LONGEST_VALUE_EXPRESSION = 5 * 1024
_IDENTIFIER = re.compile(r"[_a-zA-Z][_a-zA-Z0-9]*")
_RESERVED = frozenset(
    {
        "true", "false", "null", "in", "as", "break", "const", "continue", "else", "for",
        "function", "if", "import", "let", "loop", "package", "namespace", "return", "var",
        "void", "while",
    }
)  # fmt: skip
_TRUTH, _TEXT, _OPTIONAL_TEXT, _ANY = (BOOL,), (STRING,), (STRING, NULL), ()
_Expressions = frozenset[str]
PolicySpec = ValidatingAdmissionPolicySpec | MutatingAdmissionPolicySpec


def create(policy: ValidatingAdmissionPolicy) -> Faults:
    faults = meta.metadata(policy, namespaced=False, name_rule=names.subdomain_faults)
    return faults + _Policy(policy, frozenset()).check()


def update(new: ValidatingAdmissionPolicy, old: ValidatingAdmissionPolicy) -> Faults:
    kept = _expressions(old.spec) if _has_params(new) == _has_params(old) else frozenset()
    return meta.metadata_update(new, old) + _Policy(new, kept).check()


def _has_params(policy: ValidatingAdmissionPolicy) -> bool:
    return policy.spec.param_kind is not None


def list_shared_expressions(spec: PolicySpec) -> Iterator[str]:
    """Yields the expressions that validating and mutating policies have."""
    for one in (*(spec.match_conditions or ()), *(spec.variables or ())):
        yield one.expression


def _expressions(spec: ValidatingAdmissionPolicySpec) -> _Expressions:
    return frozenset(
        [
            *list_shared_expressions(spec),
            *(one.expression for one in spec.validations or ()),
            *(one.message_expression or "" for one in spec.validations or ()),
            *(one.value_expression for one in spec.audit_annotations or ()),
        ]
    )


class SpecCheck:
    """Checks what validating and mutating policies share. `kept` are expressions that the policy
    had before.
    """

    def __init__(self, spec: PolicySpec, kept: _Expressions) -> None:
        self._shared = spec
        self._kept = kept
        self._params = spec.param_kind is not None
        self._types: dict[str, str] = {}  # of the variables that an expression may use

    def check(self) -> Faults:
        spec = self._shared
        faults = _failure_policy(spec.failure_policy)
        if spec.param_kind is not None:
            faults += _param_kind(spec.param_kind, "spec.paramKind")
        path = "spec.matchConstraints"
        if spec.match_constraints is None:
            faults.append(required(path))
        else:
            faults += match_resources(spec.match_constraints, path)
            if not spec.match_constraints.resource_rules:
                faults.append(required(f"{path}.resourceRules"))
        faults += self._variables(spec.variables or ())
        return faults + self._conditions(spec.match_conditions or ())

    def _conditions(self, conditions: Sequence[MatchCondition]) -> Faults:
        def check(text: str, path: str) -> Faults:
            return self._expression(text, path, _TRUTH)

        return match_conditions(conditions, "spec.matchConditions", check)

    def _variables(self, variables: Sequence[Variable]) -> Faults:
        faults: Faults = []
        for index, variable in enumerate(variables):
            where = f"spec.variables[{index}]"
            if not variable.name:
                faults.append(required(f"{where}.name", "name is not specified"))
            elif not _IDENTIFIER.fullmatch(variable.name) or variable.name in _RESERVED:
                why = "name is not a valid CEL identifier"
                faults.append(invalid(f"{where}.name", variable.name, why))
            if not variable.expression.strip():
                faults.append(required(f"{where}.expression", "expression is not specified"))
            else:
                faults += self._expression(variable.expression, f"{where}.expression", _ANY)
            scope = Scope(self._params, authorizer=True)
            self._types[variable.name] = type_of(variable.expression, scope, self._types)
        return faults + repeated("spec.variables", "name", [one.name for one in variables])

    def _expression(
        self, text: str, path: str, types: Sequence[str], *, authorizer: bool = True
    ) -> Faults:
        """Checks that an expression compiles, and that its value has one of these types."""
        if text in self._kept:
            return []
        return expression(text, path, Scope(self._params, authorizer), types, self._types)

    def check_mutation(self, text: str, path: str) -> Faults:
        """Checks that the expression of a mutation compiles."""
        if text in self._kept:
            return []
        scope = Scope(self._params, authorizer=True, patches=True)
        return expression(text, path, scope, _ANY, self._types)


class _Policy(SpecCheck):
    """Checks the spec of a validating policy."""

    def __init__(self, policy: ValidatingAdmissionPolicy, kept: _Expressions) -> None:
        super().__init__(policy.spec, kept)
        self._name = policy.name
        self._spec = policy.spec

    def check(self) -> Faults:
        spec, faults = self._spec, super().check()
        if not spec.validations and not spec.audit_annotations:
            why = "validations or auditAnnotations must contain at least one item"
            fields = "spec.validations", "spec.auditAnnotations"
            return faults + [required(field, why) for field in fields]
        for index, validation in enumerate(spec.validations or ()):
            faults += self._validation(validation, f"spec.validations[{index}]")
        return faults + self._annotations(spec.audit_annotations or ())

    def _validation(self, validation: Validation, path: str) -> Faults:
        text, message = validation.expression.strip(), (validation.message or "").strip()
        faults = _message(validation, message, path)
        if not text:
            faults.append(required(f"{path}.expression", "expression is not specified"))
        else:
            faults += self._expression(validation.expression, f"{path}.expression", _TRUTH)
            if "\n" in text and not message:
                why = "message must be specified if expression contains line breaks"
                faults.append(required(f"{path}.message", why))
        words = validation.message_expression
        if words:
            where = f"{path}.messageExpression"
            if not words.strip():
                faults.append(invalid(where, words, "must be non-empty if specified"))
            else:
                faults += self._expression(words, where, _TEXT, authorizer=False)
        if validation.reason is not None and validation.reason not in _REASONS:
            faults.append(not_supported(f"{path}.reason", validation.reason, _REASONS))
        return faults

    def _annotations(self, annotations: Sequence[AuditAnnotation]) -> Faults:
        path = "spec.auditAnnotations"
        if len(annotations) > _MOST_ANNOTATIONS:
            return [too_many(path, len(annotations), _MOST_ANNOTATIONS)]
        faults: Faults = []
        for index, annotation in enumerate(annotations):
            where = f"{path}[{index}]"
            key = f"{self._name}/{annotation.key}" if self._name else annotation.key
            faults += invalid_all(f"{where}.key", annotation.key, names.qualified_name_faults(key))
            text = annotation.value_expression
            if not text.strip():
                why = "valueExpression is not specified"
                faults.append(required(f"{where}.valueExpression", why))
            elif len(text) > _LONGEST_VALUE_EXPRESSION:
                faults.append(too_long(f"{where}.valueExpression", _LONGEST_VALUE_EXPRESSION))
            else:
                faults += self._expression(text, f"{where}.valueExpression", _OPTIONAL_TEXT)
        return faults + repeated(path, "key", [one.key for one in annotations])


def _failure_policy(value: str | None) -> Faults:
    if not value:
        return [required("spec.failurePolicy")]
    if value not in (FAIL, IGNORE):
        return [not_supported("spec.failurePolicy", value, (FAIL, IGNORE))]
    return []


def _message(validation: Validation, message: str, path: str) -> Faults:
    given = validation.message
    if given and not message:
        why = "message must be non-empty if specified"
        return [invalid(f"{path}.message", given, why)]
    if "\n" in message:
        return [invalid(f"{path}.message", given, "message must not contain line breaks")]
    return []


def _param_kind(kind: ParamKind, path: str) -> Faults:
    faults: Faults = []
    if not kind.api_version:
        faults.append(required(f"{path}.apiVersion"))
    else:
        group, slash, version = kind.api_version.rpartition("/")
        if "/" in group:
            why = f"unexpected GroupVersion string: {kind.api_version}"
            faults.append(invalid(f"{path}.apiVersion", kind.api_version, why))
        elif slash:
            details = names.subdomain_faults(group)
            faults += invalid_all(f"{path}.apiVersion", group, details)
        if not faults:
            details = names.label_1035_faults(version)
            faults += invalid_all(f"{path}.apiVersion", version, details)
    if not kind.kind:
        faults.append(required(f"{path}.kind"))
    elif details := names.label_1035_faults(kind.kind.lower()):
        why = f"may have mixed case, but should otherwise match: {','.join(details)}"
        faults.append(invalid(f"{path}.kind", kind.kind, why))
    return faults


# --- bindings


def create_binding(binding: ValidatingAdmissionPolicyBinding) -> Faults:
    faults = meta.metadata(binding, namespaced=False, name_rule=names.subdomain_faults)
    return faults + _validating_binding(binding.spec)


def update_binding(
    new: ValidatingAdmissionPolicyBinding, old: ValidatingAdmissionPolicyBinding
) -> Faults:
    return meta.metadata_update(new, old) + _validating_binding(new.spec)


def _validating_binding(spec: ValidatingAdmissionPolicyBindingSpec) -> Faults:
    return binding_spec(spec) + _actions(spec.validation_actions or (), "spec.validationActions")


def binding_spec(
    spec: ValidatingAdmissionPolicyBindingSpec | MutatingAdmissionPolicyBindingSpec,
) -> Faults:
    """Checks what the bindings of validating and mutating policies share."""
    faults: Faults = []
    if not spec.policy_name:
        faults.append(required("spec.policyName"))
    else:
        details = names.subdomain_faults(spec.policy_name)
        faults += invalid_all("spec.policyName", spec.policy_name, details)
    if spec.param_ref is not None:
        faults += _param_ref(spec.param_ref, "spec.paramRef")
    if spec.match_resources is not None:
        faults += match_resources(spec.match_resources, "spec.matchResources")
    return faults


def _param_ref(reference: ParamRef, path: str) -> Faults:
    faults: Faults = []
    if reference.name:
        details = names.path_segment_faults(reference.name)
        faults += invalid_all(f"{path}.name", reference.name, details)
        if reference.selector is not None:
            why = "name and selector are mutually exclusive"
            faults.append(forbidden(f"{path}.name", why))
    if reference.selector is not None:
        faults += meta.label_selector(reference.selector, f"{path}.selector")
        if reference.name:
            why = "name and selector are mutually exclusive"
            faults.append(forbidden(f"{path}.selector", why))
    if not reference.name and reference.selector is None:
        faults.append(required(path, "one of name or selector must be specified"))
    action, where = reference.parameter_not_found_action, f"{path}.parameterNotFoundAction"
    if not action:
        faults.append(required(where))
    elif action not in ("Allow", DENY):
        faults.append(not_supported(where, action, ("Allow", DENY)))
    return faults


def _actions(actions: Sequence[str], path: str) -> Faults:
    if not actions:
        return [required(path, "at least one validation action is required")]
    faults: Faults = []
    seen: set[str] = set()
    for index, action in enumerate(actions):
        if action not in (AUDIT, DENY, WARN):
            faults.append(not_supported(f"{path}[{index}]", action, (AUDIT, DENY, WARN)))
        if action in seen:
            faults.append(duplicate(f"{path}[{index}]", action))
        seen.add(action)
    if {DENY, WARN} <= seen:
        why = (
            "must not contain both Deny and Warn (repeating the same validation failure "
            "information in the API response and headers serves no purpose)"
        )
        faults.append(invalid(path, list(actions), why))
    return faults
