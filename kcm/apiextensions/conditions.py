"""The accepted names and the conditions of CustomResourceDefinitions.

Source:
staging/src/k8s.io/apiextensions-apiserver/pkg/controller/{status/naming_controller,establish/establishing_controller,finalizer/crd_finalizer}.go
and pkg/apihelpers, Kubernetes 1.33. Departure: names of built-in kinds are not accepted.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

from kcm.api.apiextensions_v1 import (
    CustomResourceDefinition,
    CustomResourceDefinitionCondition,
    CustomResourceDefinitionNames,
)
from kcm.apiextensions import builtin

CLEANUP = "customresourcecleanup.apiextensions.k8s.io"
"""The finalizer that keeps a deleted definition until its objects are deleted."""

_Names = CustomResourceDefinitionNames
_Outcome = tuple[str, str, str]  # status, reason, message


def find(
    definition: CustomResourceDefinition, kind: str
) -> CustomResourceDefinitionCondition | None:
    """Returns the condition of the type `kind`, or None."""
    return next((c for c in definition.status.conditions or () if c.type == kind), None)


def is_true(definition: CustomResourceDefinition, kind: str) -> bool:
    """Reports whether the condition of the type `kind` has the status True."""
    condition = find(definition, kind)
    return condition is not None and condition.status == "True"


def with_condition(
    definition: CustomResourceDefinition, kind: str, outcome: _Outcome, now: datetime
) -> CustomResourceDefinition:
    """Returns the definition with a condition of the type `kind`.

    Returns the definition itself if it already has this condition.
    """
    status, reason, message = outcome
    old = find(definition, kind)
    if old is not None and (old.status, old.reason, old.message) == outcome:
        return definition
    since = now.replace(microsecond=0)
    if old is not None and old.status == status and old.last_transition_time is not None:
        since = old.last_transition_time
    new = CustomResourceDefinitionCondition(
        type=kind,
        status=status,
        reason=reason,
        message=message,
        last_transition_time=since,
    )
    others = list(definition.status.conditions or ())
    places = [n for n, condition in enumerate(others) if condition.type == kind]
    if places:
        others[places[0]] = new
    else:
        others.append(new)
    return definition.with_status(definition.status.replace(conditions=others))


def settle(
    definition: CustomResourceDefinition, others: Iterable[CustomResourceDefinition], now: datetime
) -> CustomResourceDefinition:
    """Returns the definition with its accepted names, and the conditions that follow from them.

    Returns the definition itself if nothing changes. `others` are all definitions; the definition
    itself may be among them.
    """
    if definition.deleting or is_settled(definition):
        return definition
    accepted, outcome = _accept_names(definition, others)
    result = definition
    if definition.status.accepted_names != accepted:
        result = result.with_status(result.status.replace(accepted_names=accepted))
    result = with_condition(result, "NamesAccepted", outcome, now)
    if is_true(result, "Established") and not builtin.shadows(definition):
        return result
    if outcome[0] == "True":
        established = ("True", "InitialNamesAccepted", "the initial names have been accepted")
    else:
        established = ("False", "NotAccepted", "not all names are accepted")
    return with_condition(result, "Established", established, now)


def is_settled(definition: CustomResourceDefinition) -> bool:
    """Reports whether all names of the definition are accepted, so that no other can take them."""
    return (
        definition.status.accepted_names == definition.spec.names
        and is_true(definition, "NamesAccepted")
        and is_true(definition, "Established")
        and not builtin.shadows(definition)
    )


def _accept_names(
    definition: CustomResourceDefinition, others: Iterable[CustomResourceDefinition]
) -> tuple[_Names, _Outcome]:
    resources, kinds = _collect_taken_names(definition, others)
    wanted, new = definition.spec.names, definition.status.accepted_names or _Names()
    outcome: _Outcome = ("True", "NoConflicts", "no conflicts found")
    for attribute, label, taken in (
        ("plural", "Plural", resources),
        ("singular", "Singular", resources),
        ("short_names", "ShortNames", resources),
        ("kind", "Kind", kinds),
        ("list_kind", "ListKind", kinds),
    ):
        value = getattr(wanted, attribute)
        words = [value] if isinstance(value, str) else list(value or ())
        clashes = [word for word in words if word in taken]
        if clashes:
            problems = [f'"{word}" is already in use' for word in clashes]
            if builtin.shadows(definition):
                problems = [f"{words} by a built-in kind" for words in problems]
            message = problems[0] if len(problems) == 1 else f"[{', '.join(problems)}]"
            outcome = ("False", f"{label}Conflict", message)
        else:
            new = new.replace(**{attribute: value})
    return new.replace(categories=wanted.categories), outcome


def _collect_taken_names(
    definition: CustomResourceDefinition, others: Iterable[CustomResourceDefinition]
) -> tuple[set[str], set[str]]:
    """Returns the names of resources and the kinds that others have in the definition's group."""
    group, own = definition.spec.group, definition.metadata.name
    resources = set(builtin.words(group))
    kinds = set(builtin.kinds(group))
    for other in others:
        spec, names = other.spec, other.status.accepted_names
        if spec.group != group or names is None or other.metadata.name == own:
            continue
        resources.add(names.plural)
        kinds.add(names.kind)
        if names.singular:
            resources.add(names.singular)
        if names.short_names:
            resources.update(names.short_names)
        if names.list_kind:
            kinds.add(names.list_kind)
    return resources - {""}, kinds - {""}


def mark_terminating(
    definition: CustomResourceDefinition, now: datetime, *, left: int
) -> CustomResourceDefinition:
    """Returns a definition that is being deleted, with its condition Terminating updated.

    `left` is the number of its objects that are left. Without any, its finalizer is removed.
    """
    if not is_true(definition, "Established"):
        outcome: _Outcome = ("False", "NeverEstablished", "resource was never established")
    elif left:
        message = "CustomResource deletion is in progress"
        outcome = ("True", "InstanceDeletionInProgress", message)
    else:
        outcome = ("False", "InstanceDeletionCompleted", "removed all instances")
    result = with_condition(definition, "Terminating", outcome, now)
    if outcome[0] == "True":
        return result
    finalizers = [name for name in result.metadata.finalizers or () if name != CLEANUP]
    return result.with_metadata(finalizers=finalizers or None)


def begin_termination(
    definition: CustomResourceDefinition, now: datetime
) -> CustomResourceDefinition:
    """Returns a definition whose deletion begins, with its condition and finalizer."""
    outcome = (
        "True",
        "InstanceDeletionPending",
        "CustomResourceDefinition marked for deletion; CustomResource deletion will begin soon",
    )
    finalizers = list(definition.metadata.finalizers or ())
    result = with_condition(definition, "Terminating", outcome, now)
    return result.with_metadata(finalizers=[*finalizers, CLEANUP])
