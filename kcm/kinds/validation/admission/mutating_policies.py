"""Validation of MutatingAdmissionPolicies and their bindings.

Source: pkg/apis/admissionregistration/validation/validation.go, Kubernetes 1.36.
"""

from __future__ import annotations

from collections.abc import Iterator

from kcm.api.admissionregistration_v1 import (
    ALL,
    CONNECT,
    CREATE,
    IF_NEEDED,
    NEVER,
    UPDATE,
    ApplyConfiguration,
    JSONPatch,
    MatchResources,
    MutatingAdmissionPolicy,
    MutatingAdmissionPolicyBinding,
    MutatingAdmissionPolicySpec,
    Mutation,
)
from kcm.apimachinery import names
from kcm.apimachinery.field_errors import Faults, invalid, not_supported, one_of, required
from kcm.kinds.validation import meta
from kcm.kinds.validation.admission.policies import SpecCheck, binding_spec, list_shared_expressions

_OPERATIONS = (ALL, CONNECT, CREATE, UPDATE)
_FIELDS = {"ApplyConfiguration": "applyConfiguration", "JSONPatch": "jsonPatch"}


def create(policy: MutatingAdmissionPolicy) -> Faults:
    faults = meta.metadata(policy, namespaced=False, name_rule=names.subdomain_faults)
    return faults + _spec(policy.spec, frozenset())


def update(new: MutatingAdmissionPolicy, old: MutatingAdmissionPolicy) -> Faults:
    same_params = (new.spec.param_kind is None) == (old.spec.param_kind is None)
    kept = frozenset(_list_expressions(old.spec)) if same_params else frozenset()
    return meta.metadata_update(new, old) + _spec(new.spec, kept)


def _list_expressions(spec: MutatingAdmissionPolicySpec) -> Iterator[str]:
    yield from list_shared_expressions(spec)
    for mutation in spec.mutations or ():
        for one in (mutation.apply_configuration, mutation.json_patch):
            yield (one.expression if one else None) or ""


def _spec(spec: MutatingAdmissionPolicySpec, kept: frozenset[str]) -> Faults:
    shared = SpecCheck(spec, kept)
    faults = shared.check()
    if spec.match_constraints is not None:
        faults += _operations(spec.match_constraints, "spec.matchConstraints")
    if not spec.mutations:
        faults.append(required("spec.mutations", "mutations must contain at least one item"))
    for index, mutation in enumerate(spec.mutations or ()):
        faults += _mutation(mutation, f"spec.mutations[{index}]", shared)
    policies = (IF_NEEDED, NEVER)
    return faults + one_of("spec.reinvocationPolicy", spec.reinvocation_policy, policies)


def _operations(matching: MatchResources, path: str) -> Faults:
    """Checks that only objects that are created or updated are changed."""
    return [
        not_supported(f"{path}.resourceRules.operations", operation, _OPERATIONS)
        for rule in matching.resource_rules or ()
        for operation in rule.operations or ()
        if operation not in _OPERATIONS
    ]


def _mutation(mutation: Mutation, path: str, shared: SpecCheck) -> Faults:
    kind = mutation.patch_type
    if kind not in _FIELDS:
        return one_of(f"{path}.patchType", kind, tuple(_FIELDS))
    given: dict[str, ApplyConfiguration | JSONPatch | None] = {
        "applyConfiguration": mutation.apply_configuration,
        "jsonPatch": mutation.json_patch,
    }
    field = _FIELDS[kind]
    [other] = given.keys() - {field}
    faults: Faults = []
    wanted = given[field]
    if wanted is None:
        faults.append(required(f"{path}.{field}", f"must be specified when patchType is {kind}"))
    elif not (wanted.expression or "").strip():
        faults.append(required(f"{path}.{field}.expression"))
    else:
        faults += shared.check_mutation(wanted.expression or "", f"{path}.{field}.expression")
    if given[other] is not None:
        detail = f"must not be specified when patchType is {kind}"
        faults.append(invalid(f"{path}.{other}", f"{{{other}}}", detail))
    return faults


def create_binding(binding: MutatingAdmissionPolicyBinding) -> Faults:
    faults = meta.metadata(binding, namespaced=False, name_rule=names.subdomain_faults)
    return faults + _binding(binding)


def update_binding(
    new: MutatingAdmissionPolicyBinding, old: MutatingAdmissionPolicyBinding
) -> Faults:
    return meta.metadata_update(new, old) + _binding(new)


def _binding(binding: MutatingAdmissionPolicyBinding) -> Faults:
    faults, resources = binding_spec(binding.spec), binding.spec.match_resources
    return faults + (_operations(resources, "spec.matchResources") if resources else [])
