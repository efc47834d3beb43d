"""Validation of FlowSchemas and PriorityLevelConfigurations.

Source: pkg/apis/flowcontrol/validation/validation.go, Kubernetes 1.33.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from kcm.api.flowcontrol_v1 import (
    FlowSchema,
    FlowSchemaSpec,
    LimitedPriorityLevelConfiguration,
    LimitResponse,
    NonResourcePolicyRule,
    PolicyRulesWithSubjects,
    PriorityLevelConfiguration,
    PriorityLevelConfigurationSpec,
    QueuingConfiguration,
    ResourcePolicyRule,
    ServiceAccountSubject,
    Subject,
)
from kcm.api.priority_levels import EXEMPT, MANDATORY_LEVELS, MANDATORY_SCHEMAS
from kcm.apimachinery import names
from kcm.apimachinery.field_errors import (
    Faults,
    duplicate,
    forbidden,
    invalid,
    invalid_all,
    not_supported,
    required,
)
from kcm.kinds.validation import meta

_OF_V1BETA3 = "flowcontrol.k8s.io/v1beta3-preserve-zero-concurrency-shares"
_MOST_PRECEDENCE = 10_000
_MOST_QUEUES = 10_000_000
_MOST_ENTROPY = 60  # bits of a hash that chooses queues
_ALL = "*"
_METHODS = ("ByNamespace", "ByUser")
_VERBS = (
    *("create", "delete", "deletecollection", "get", "list", "patch", "proxy", "update"),
    "watch",
)
_SUBJECTS = {"Group": "group", "ServiceAccount": "service_account", "User": "user"}
_WIRE = {"group": "group", "service_account": "serviceAccount", "user": "user"}
_NAMESPACE = "each member of this list must be '*' or a DNS-1123 label; "


# --- FlowSchemas


def create_schema(obj: FlowSchema) -> Faults:
    faults = meta.metadata(obj, namespaced=False, name_rule=names.subdomain_faults)
    return faults + _schema(obj)


def update_schema(new: FlowSchema, old: FlowSchema) -> Faults:
    return meta.metadata_update(new, old) + _schema(new)


def update_schema_status(new: FlowSchema, old: FlowSchema) -> Faults:
    return meta.metadata_update(new, old) + _conditions(new.status.conditions or ())


def _schema(obj: FlowSchema) -> Faults:
    spec = obj.spec
    faults = _precedence(obj.name, spec)
    method = spec.distinguisher_method
    if method is not None and method.type not in _METHODS:
        faults.append(not_supported("spec.distinguisherMethod.type", method.type, _METHODS))
    level, path = spec.priority_level_configuration.name, "spec.priorityLevelConfiguration.name"
    if level:
        faults += invalid_all(path, level, names.subdomain_faults(level))
    else:
        faults.append(required(path, "must reference a priority level"))
    for index, rule in enumerate(spec.rules or ()):
        faults += _rule(rule, f"spec.rules[{index}]")
    fixed = MANDATORY_SCHEMAS.get(obj.name)
    if fixed is not None and spec != fixed.spec:
        faults.append(invalid("spec", spec, f"spec of '{obj.name}' must equal the fixed value"))
    return faults + _conditions(obj.status.conditions or ())


def _precedence(name: str, spec: FlowSchemaSpec) -> Faults:
    value, path = spec.matching_precedence or 0, "spec.matchingPrecedence"
    if value <= 0:
        return [invalid(path, value, "must be a positive value")]
    if value > _MOST_PRECEDENCE:
        return [invalid(path, value, f"must not be greater than {_MOST_PRECEDENCE}")]
    if value == 1 and name != EXEMPT:
        why = "only the schema named 'exempt' may have matchingPrecedence 1"
        return [invalid(path, value, why)]
    return []


def _rule(rule: PolicyRulesWithSubjects, path: str) -> Faults:
    faults: Faults = []
    if not rule.subjects:
        faults.append(required(f"{path}.subjects", "subjects must contain at least one value"))
    for index, subject in enumerate(rule.subjects):
        faults += _subject(subject, f"{path}.subjects[{index}]")
    if not rule.resource_rules and not rule.non_resource_rules:
        why = "at least one of resourceRules and nonResourceRules has to be non-empty"
        faults.append(required(path, why))
    for index, resources in enumerate(rule.resource_rules or ()):
        faults += _resource_rule(resources, f"{path}.resourceRules[{index}]")
    for index, paths in enumerate(rule.non_resource_rules or ()):
        faults += _path_rule(paths, f"{path}.nonResourceRules[{index}]")
    return faults


def _subject(subject: Subject, path: str) -> Faults:
    own = _SUBJECTS.get(subject.kind)
    if own is None:
        return [not_supported(f"{path}.kind", subject.kind, sorted(_SUBJECTS))]
    value: Any = getattr(subject, own)
    where, word = f"{path}.{_WIRE[own]}", _WIRE[own]
    if value is None:
        faults = [required(where, f"{word} is required when subject kind is '{subject.kind}'")]
    elif isinstance(value, ServiceAccountSubject):
        faults = _service_account(value, where)
    else:
        faults = [] if value.name else [required(f"{where}.name")]
    for kind, other in _SUBJECTS.items():
        if other != own and getattr(subject, other) is not None:
            why = f"{_WIRE[other]} is forbidden when subject kind is not '{kind}'"
            faults.append(forbidden(f"{path}.{_WIRE[other]}", why))
    return faults


def _service_account(subject: ServiceAccountSubject, path: str) -> Faults:
    faults: Faults = []
    if not subject.name:
        faults.append(required(f"{path}.name"))
    elif subject.name != _ALL:
        why = names.subdomain_faults(subject.name)
        faults += invalid_all(f"{path}.name", subject.name, why)
    if not subject.namespace:
        return [
            *faults,
            required(f"{path}.namespace", "must specify namespace for service account"),
        ]
    why = names.label_faults(subject.namespace)
    return faults + invalid_all(f"{path}.namespace", subject.namespace, why)


def _resource_rule(rule: ResourcePolicyRule, path: str) -> Faults:
    faults = _verbs(rule.verbs, path)
    faults += _listed(
        rule.api_groups,
        f"{path}.apiGroups",
        "resource rules must supply at least one api group",
        "if '*' is present, must not specify other api groups",
    )
    faults += _listed(
        rule.resources,
        f"{path}.resources",
        "resource rules must supply at least one resource",
        "if '*' is present, must not specify other resources",
    )
    namespaces, where = rule.namespaces or [], f"{path}.namespaces"
    if not namespaces and not rule.cluster_scope:
        why = "resource rules that are not cluster scoped must supply at least one namespace"
        return [*faults, required(where, why)]
    if _ALL in namespaces:
        why = "if '*' is present, must not specify other namespaces"
        return faults if len(namespaces) == 1 else [*faults, invalid(where, namespaces, why)]
    for index, namespace in enumerate(namespaces):
        details = [_NAMESPACE + detail for detail in names.label_faults(namespace)]
        faults += invalid_all(f"{where}[{index}]", namespace, details)
    return faults


def _path_rule(rule: NonResourcePolicyRule, path: str) -> Faults:
    faults = _verbs(rule.verbs, path)
    urls, where = rule.non_resource_urls, f"{path}.nonResourceURLs"
    faults += _listed(
        urls,
        where,
        "nonResourceURLs must contain at least one value",
        "if '*' is present, must not specify other non-resource URLs",
    )
    if _ALL not in urls:
        for index, url in enumerate(urls):
            faults += _url(url, f"{where}[{index}]")
    return faults


def _url(url: str, path: str) -> Faults:
    if url == "/":
        return []
    wrong = (
        (not url, "must not be empty"),
        (not url.startswith("/"), "must start with slash"),
        (" " in url, "must not contain white-space"),
        ("//" in url, "must not contain double slash"),
        (
            url.count("*") > 1 or ("*" in url and not url.endswith("/*")),
            "wildcard can only do suffix matching",
        ),
    )
    return next(([invalid(path, url, why)] for is_wrong, why in wrong if is_wrong), [])


def _verbs(verbs: Sequence[str], path: str) -> Faults:
    faults = _listed(
        verbs,
        f"{path}.verbs",
        "verbs must contain at least one value",
        "if '*' is present, must not specify other verbs",
    )
    if _ALL not in verbs and not set(verbs) <= set(_VERBS):
        faults.append(not_supported(f"{path}.verbs", list(verbs), _VERBS))
    return faults


def _listed(values: Sequence[str], path: str, if_none: str, if_all: str) -> Faults:
    """Checks that there are values, and that `*` stands alone."""
    if not values:
        return [required(path, if_none)]
    if _ALL in values and len(values) > 1:
        return [invalid(path, list(values), if_all)]
    return []


def _conditions(conditions: Sequence[Any]) -> Faults:
    faults: Faults = []
    seen = set()
    for index, condition in enumerate(conditions):
        path = f"status.conditions[{index}].type"
        if condition.type in seen:
            faults.append(duplicate(path, condition.type))
        seen.add(condition.type)
        if not condition.type:
            faults.append(required(path, "must not be empty"))
    return faults


# --- priority levels


def create_level(obj: PriorityLevelConfiguration) -> Faults:
    faults = meta.metadata(obj, namespaced=False, name_rule=names.subdomain_faults)
    if _OF_V1BETA3 in obj.annotations:
        detail = f"annotation '{_OF_V1BETA3}' is forbidden"
        faults.append(forbidden("metadata.annotations", detail))
    return faults + _level(obj)


def update_level(new: PriorityLevelConfiguration, old: PriorityLevelConfiguration) -> Faults:
    return meta.metadata_update(new, old) + _level(new)


def update_level_status(new: PriorityLevelConfiguration, old: PriorityLevelConfiguration) -> Faults:
    return meta.metadata_update(new, old) + _conditions(new.status.conditions or ())


def _level(obj: PriorityLevelConfiguration) -> Faults:
    faults = _level_spec(obj.name, obj.spec) + _fixed_level(obj.name, obj.spec)
    return faults + _conditions(obj.status.conditions or ())


def _fixed_level(name: str, spec: PriorityLevelConfigurationSpec) -> Faults:
    fixed = MANDATORY_LEVELS.get(name)
    if fixed is None:
        return []
    if name != EXEMPT:
        why = f"spec of '{name}' must equal the fixed value"
        return [] if spec == fixed.spec else [invalid("spec", spec, why)]
    if spec.replace(exempt=None) == fixed.spec.replace(exempt=None):
        return []
    why = "spec of 'exempt' except the 'spec.exempt' field must equal the fixed value"
    return [invalid("spec", spec, why)]


def _level_spec(name: str, spec: PriorityLevelConfigurationSpec) -> Faults:
    faults: Faults = []
    if (name == EXEMPT) != (spec.type == "Exempt"):
        why = "type must be 'Exempt' if and only if name is 'exempt'"
        faults.append(invalid("spec.type", spec.type, why))
    if spec.type == "Exempt":
        if spec.limited is not None:
            faults.append(forbidden("spec.limited", "must be nil if the type is not Limited"))
        if spec.exempt is not None:
            faults += _shares(spec.exempt, "spec.exempt")
    elif spec.type == "Limited":
        if spec.exempt is not None:
            faults.append(forbidden("spec.exempt", "must be nil if the type is Limited"))
        if spec.limited is None:
            faults.append(required("spec.limited", "must not be empty when type is Limited"))
        else:
            faults += _limited(spec.limited, "spec.limited")
    else:
        faults.append(not_supported("spec.type", spec.type, ("Exempt", "Limited")))
    return faults


def _shares(level: Any, path: str) -> Faults:
    """Checks what limited and exempt levels have in common."""
    faults: Faults = []
    shares, percent = level.nominal_concurrency_shares, level.lendable_percent
    if shares is not None and shares < 0:
        where = f"{path}.nominalConcurrencyShares"
        faults.append(invalid(where, shares, "must be a non-negative integer"))
    if percent is not None and not 0 <= percent <= 100:
        where = f"{path}.lendablePercent"
        faults.append(invalid(where, percent, "must be between 0 and 100, inclusive"))
    return faults


def _limited(level: LimitedPriorityLevelConfiguration, path: str) -> Faults:
    faults = _shares(level, path)
    most = level.borrowing_limit_percent
    if most is not None and most < 0:
        why = "if specified, must be a non-negative integer"
        faults.append(invalid(f"{path}.borrowingLimitPercent", most, why))
    return faults + _response(level.limit_response, f"{path}.limitResponse")


def _response(response: LimitResponse, path: str) -> Faults:
    queuing, where = response.queuing, f"{path}.queuing"
    if response.type == "Reject":
        why = "must be nil if limited.limitResponse.type is not Limited"
        return [] if queuing is None else [forbidden(where, why)]
    if response.type != "Queue":
        return [not_supported(f"{path}.type", response.type, ("Queue", "Reject"))]
    if queuing is None:
        why = "must not be empty if limited.limitResponse.type is Limited"
        return [required(where, why)]
    return _queuing(queuing, where)


def _queuing(queuing: QueuingConfiguration, path: str) -> Faults:
    length, queues, hand = (
        queuing.queue_length_limit or 0,
        queuing.queues or 0,
        queuing.hand_size or 0,
    )
    faults: Faults = []
    if length <= 0:
        faults.append(invalid(f"{path}.queueLengthLimit", length, "must be positive"))
    if queues <= 0:
        faults.append(invalid(f"{path}.queues", queues, "must be positive"))
    elif queues > _MOST_QUEUES:
        faults.append(invalid(f"{path}.queues", queues, f"must not be greater than {_MOST_QUEUES}"))
    where = f"{path}.handSize"
    if hand <= 0:
        faults.append(invalid(where, hand, "must be positive"))
    elif hand > queues:
        faults.append(invalid(where, hand, f"should not be greater than queues ({queues})"))
    elif _entropy_bits(queues, hand) > _MOST_ENTROPY:
        why = (
            f"required entropy bits of deckSize {queues} and handSize {hand} should not be "
            f"greater than {_MOST_ENTROPY}"
        )
        faults.append(invalid(where, hand, why))
    return faults


def _entropy_bits(queues: int, hand: int) -> int:
    """Returns the bits of a hash that can choose each hand of queues, or more than enough."""
    if hand > _MOST_ENTROPY:
        return _MOST_ENTROPY + 1
    return math.ceil(math.log2(math.prod(queues - taken for taken in range(hand))))
