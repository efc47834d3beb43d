"""Who may name parameters in admission policies: those who may read them.

Otherwise a policy could tell, by its messages, what its author may not see.

Source: pkg/registry/admissionregistration/validatingadmissionpolicy/authz.go and
validatingadmissionpolicybinding/authz.go, Kubernetes 1.33.
"""

from __future__ import annotations

from collections.abc import Callable

from kcm import errors
from kcm.api.admissionregistration_v1 import (
    ParamKind,
    ParamRef,
    ValidatingAdmissionPolicy,
    ValidatingAdmissionPolicyBinding,
)
from kcm.api.scheme import Kinds
from kcm.apimachinery.field_errors import forbidden
from kcm.apimachinery.meta_v1 import KubeObject
from kcm.apiserver.auth.attributes import Attributes
from kcm.apiserver.auth.authorizer import Caller
from kcm.store import Store

_ALL = "*"


def check_parameters(caller: Caller, store: Store, new: KubeObject, old: KubeObject | None) -> None:
    """Raises Invalid if a policy or binding names parameters that its author may not read.

    What was named before may stay. `store` has the policy of a binding.
    """
    if isinstance(new, ValidatingAdmissionPolicy):
        before = old.spec.param_kind if isinstance(old, ValidatingAdmissionPolicy) else None
        kind = new.spec.param_kind
        if kind is not None and kind != before and not _may_read_all(caller, kind, store.scheme):
            why = (
                f'user {caller.user.name} must have "get" permission on all objects of the '
                f"referenced paramKind (kind={kind.kind}, apiVersion={kind.api_version})"
            )
            raise _refused(new, "spec.paramKind", why)
    if isinstance(new, ValidatingAdmissionPolicyBinding):
        named = old.spec if isinstance(old, ValidatingAdmissionPolicyBinding) else None
        spec = new.spec
        if spec.param_ref is None or (
            named is not None
            and (named.param_ref, named.policy_name) == (spec.param_ref, spec.policy_name)
        ):
            return
        kind = _find_kind(store, spec.policy_name or "")
        if kind is not None and not _may_read(caller, kind, spec.param_ref, store.scheme):
            why = 'user does not have "get" permission on the object referenced by paramRef'
            raise _refused(new, "spec.paramRef", why)


def check_change(
    caller: Caller, store: Store, change: Callable[[KubeObject], KubeObject]
) -> Callable[[KubeObject], KubeObject]:
    """Returns a function that applies `change`, and checks its result as `check_parameters`."""

    def inner(old: KubeObject) -> KubeObject:
        new = change(old)
        check_parameters(caller, store, new, old)
        return new

    return inner


def _find_kind(store: Store, name: str) -> ParamKind | None:
    """Returns the kind of a policy's parameters, None if it has none or does not exist."""
    try:
        policy = store.get(ValidatingAdmissionPolicy.resource, name)
    except errors.ApiError:
        return None
    return policy.spec.param_kind


def _may_read_all(caller: Caller, kind: ParamKind, served: Kinds) -> bool:
    return _may_read(caller, kind, ParamRef(), served)


def _may_read(caller: Caller, kind: ParamKind, reference: ParamRef, served: Kinds) -> bool:
    namespace, name = reference.namespace or _ALL, reference.name or _ALL
    group, _, version = (kind.api_version or "").rpartition("/")
    try:
        resource = served.by_gvk(kind.api_version or "", kind.kind or "")
        plural, inside = resource.plural, namespace if resource.namespaced else ""
    except errors.UnknownKind:  # as upstream: then the user must be allowed to read all kinds
        plural, inside = _ALL, namespace
    return caller.may(Attributes("get", group, version, plural, namespace=inside, name=name))


def _refused(obj: KubeObject, path: str, why: str) -> errors.Invalid:
    return errors.Invalid([forbidden(path, why)], kind=obj.kind, name=obj.name)
