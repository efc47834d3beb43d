"""The plugin PolicyParameters: who names parameters in admission policies must be able to read
them.

Otherwise a policy could tell, by its messages, what its author may not see.

Source: authz.go in pkg/registry/admissionregistration/{validating,mutating}admissionpolicy and
{validating,mutating}admissionpolicybinding, Kubernetes 1.36.
"""

from __future__ import annotations

from collections.abc import Mapping

from kcm import errors
from kcm.api.admissionregistration_v1 import (
    CREATE,
    UPDATE,
    MutatingAdmissionPolicy,
    MutatingAdmissionPolicyBinding,
    ParamKind,
    ParamRef,
    ValidatingAdmissionPolicy,
    ValidatingAdmissionPolicyBinding,
)
from kcm.api.scheme import Kinds
from kcm.apimachinery.field_errors import forbidden
from kcm.apimachinery.meta_v1 import KubeObject
from kcm.apiserver.admission.request import request_of
from kcm.apiserver.auth.attributes import Attributes
from kcm.apiserver.auth.authorizer import Caller
from kcm.store import Store
from kcm.store.admission.plugin import Plugin, Write

_ALL = "*"
_Policy = ValidatingAdmissionPolicy | MutatingAdmissionPolicy
_Binding = ValidatingAdmissionPolicyBinding | MutatingAdmissionPolicyBinding
_POLICIES: Mapping[type[KubeObject], type[_Policy]] = {  # by the types of their bindings
    ValidatingAdmissionPolicyBinding: ValidatingAdmissionPolicy,
    MutatingAdmissionPolicyBinding: MutatingAdmissionPolicy,
}
_NAMING = frozenset(model.resource.name for pair in _POLICIES.items() for model in pair)


class PolicyParameters(Plugin):
    """Refuses policies and bindings that name parameters which their author may not read.

    What was named before may stay.
    """

    name = "PolicyParameters"

    def __init__(self, store: Store) -> None:
        self._store = store  # has the policies of bindings

    def handles(self, resource: str, subresource: str, operation: str) -> bool:
        return resource in _NAMING and operation in (CREATE, UPDATE)

    def admit(self, write: Write) -> Write:
        """Raises: Invalid, StoreUnavailable."""
        request, new, old = request_of(write), write.new, write.old
        if request is not None and isinstance(new, _Policy):
            self._check_kind(request.caller, new, old)
        elif request is not None and isinstance(new, _Binding):
            self._check_reference(request.caller, new, old)
        return write

    def _check_kind(self, caller: Caller, new: _Policy, old: KubeObject | None) -> None:
        before = old.spec.param_kind if isinstance(old, _Policy) else None
        kind = new.spec.param_kind
        if kind is None or kind == before:
            return
        if not _may_read(caller, kind, ParamRef(), self._store.scheme):
            why = (
                f'user {caller.user.name} must have "get" permission on all objects of the '
                f"referenced paramKind (kind={kind.kind}, apiVersion={kind.api_version})"
            )
            raise _refused(new, "spec.paramKind", why)

    def _check_reference(self, caller: Caller, new: _Binding, old: KubeObject | None) -> None:
        before = old.spec if isinstance(old, _Binding) else None
        spec = new.spec
        if spec.param_ref is None or (
            before is not None
            and (before.param_ref, before.policy_name) == (spec.param_ref, spec.policy_name)
        ):
            return
        kind = _find_kind(self._store, _POLICIES[type(new)], spec.policy_name or "")
        if kind is not None and not _may_read(caller, kind, spec.param_ref, self._store.scheme):
            why = 'user does not have "get" permission on the object referenced by paramRef'
            raise _refused(new, "spec.paramRef", why)


def _find_kind(store: Store, model: type[_Policy], name: str) -> ParamKind | None:
    """Returns the kind of a policy's parameters, None if it has none or does not exist."""
    try:
        policy = store.get(model.resource, name)
    except errors.ApiError:
        return None
    return policy.spec.param_kind if isinstance(policy, model) else None


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
