"""What policies and webhooks need to know of a write besides the write itself."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractContextManager
from typing import Any

from kcm.api.core_v1 import Namespace
from kcm.api.scheme import Resource
from kcm.apiextensions.cel.library import authorization
from kcm.apiextensions.cel.policies import PolicyInput
from kcm.apiserver.admission.attributes import WriteAttributes
from kcm.apiserver.auth.attributes import (
    Attributes,
    User,
    service_account_groups,
    service_account_name,
)
from kcm.apiserver.auth.authorizer import Authorizer, Caller
from kcm.apiserver.cache.caches import Caches


class WriteContext:
    """A write with its namespace, from the watch cache, and its sender's rights."""

    def __init__(self, caches: Caches, write: WriteAttributes, caller: Caller) -> None:
        self._caches = caches
        self.write = write
        self._caller = caller
        self._inputs: dict[Resource, tuple[PolicyInput, dict[Any, Any]]] = {}
        self._namespace: Namespace | None = None

    def with_write(self, write: WriteAttributes) -> WriteContext:
        """Returns the context of the same write after its object was changed."""
        context = WriteContext(self._caches, write, self._caller)
        context._namespace = self._namespace
        return context

    def namespace_labels(self) -> Mapping[str, str]:
        """Returns the labels of the write's namespace, none if it is not known."""
        namespace = self._find_namespace()
        return namespace.labels if namespace is not None else {}

    def input(self, matched: Resource) -> tuple[PolicyInput, dict[Any, Any]]:
        """Returns the variables of expressions, in a version of the written kind, made once.

        The second value keeps them in the form that the library for CEL holds.
        """
        kept = self._inputs.get(matched)
        if kept is None:
            variables = {
                **self.write.to_json(matched),
                "request": self.write.describe(matched),
                "namespaceObject": self._namespace_json(),
                "authorizer": authorization.authorizer(self.write.to_check()),
            }
            kept = self._inputs[matched] = (PolicyInput(variables), {})
        return kept

    def asking(self) -> AbstractContextManager[None]:
        """Returns a context in which `authorizer` of expressions asks about the write's sender."""
        return authorization.asking(self._ask)

    def _ask(self, check: Mapping[str, str]) -> tuple[bool, str]:
        """Decides a check of `authorizer`, for the user or for the service account that it names.

        Raises StoreUnavailable.
        """
        user = self._caller.user
        if check.get("account"):
            namespace, _, name = check["account"].partition("/")
            groups = service_account_groups(namespace)
            user = User(service_account_name(namespace, name), groups=groups)
        authorizer: Authorizer = self._caller.authorizer
        if path := check.get("path"):
            decision = authorizer.authorize(user, Attributes(check["verb"], path=path))
        else:
            decision = authorizer.authorize(
                user,
                Attributes(
                    check["verb"], check["group"], "*", check["resource"],
                    check["subresource"], check["namespace"], check["name"],
                ),
            )  # fmt: skip
        return decision.allowed, decision.reason

    def _find_namespace(self) -> Namespace | None:
        if self._namespace is None and self.write.namespace_name:
            cache = self._caches.cache(Namespace.resource)
            entry = cache.get(self.write.namespace_name)
            if entry is not None and isinstance(entry.obj, Namespace):
                self._namespace = entry.obj
        return self._namespace

    def _namespace_json(self) -> Any:
        """Returns the namespace as expressions see it: without managed fields and the like."""
        namespace = self._find_namespace()
        if namespace is None:
            return None
        meta = namespace.metadata
        shown = {
            "name": meta.name,
            "labels": dict(meta.labels or {}),
            "annotations": dict(meta.annotations or {}),
            "uid": meta.uid,
            "resourceVersion": meta.resource_version,
        }
        finalizers = list(namespace.spec.finalizers or ())
        return {
            "metadata": {name: value for name, value in shown.items() if value},
            "spec": {"finalizers": finalizers},
            "status": {"phase": namespace.status.phase or ""},
        }
