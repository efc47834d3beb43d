"""The Node authorizer: a kubelet may read and write what its own node and pods need.

Source: plugin/pkg/auth/authorizer/node/node_authorizer.go, Kubernetes 1.36.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from kcm import errors
from kcm.api.rbac_v1 import PolicyRule, RoleRef
from kcm.apiserver.auth.attributes import Attributes, User
from kcm.apiserver.auth.authorizer import AuthorizerDecision, PreparedRule, UserRules
from kcm.apiserver.auth.node import graph
from kcm.apiserver.auth.node.graph_feed import GraphFeed
from kcm.apiserver.auth.node.identity import node_of
from kcm.apiserver.auth.policy import node_rules

NODE_LEASES = "kube-node-lease"
_LEASE_VERBS = ("get", "create", "update", "patch", "delete")
_COLLECTION_VERBS = ("watch", "list", "deletecollection")
_ALLOWED = AuthorizerDecision(True)
_NO_OPINION = AuthorizerDecision(False)

Rule = Callable[["NodeAuthorizer", str, Attributes], AuthorizerDecision]


class NodeAuthorizer:
    """Decides about requests of nodes. It has no opinion about those of other users."""

    def __init__(self, objects: GraphFeed) -> None:
        self._objects = objects
        self._rules = [PreparedRule(rule) for rule in node_rules()]

    def authorize(self, user: User, asked: Attributes) -> AuthorizerDecision:
        """Returns the decision. Raises StoreUnavailable while the watch caches are not filled."""
        node = node_of(user)
        if node is None:
            return _NO_OPINION
        if not node:
            return _denied(f'unknown node for user "{user.name}"')
        rule = None if asked.path else _RULES.get((asked.group, asked.resource))
        if rule is not None:
            return rule(self, node, asked)
        return _ALLOWED if any(rule.allows(asked) for rule in self._rules) else _NO_OPINION

    def rights(self, user: User, namespace: str) -> UserRules:
        """Returns no rules, since those of a node depend on its pods."""
        if node_of(user) is None:
            return UserRules(())
        return UserRules((), ("node authorizer does not support user rule resolution",))

    def role_rules(self, reference: RoleRef, namespace: str) -> Sequence[PolicyRule]:
        """Raises NotFound: there are no roles here."""
        raise errors.NotFound(f'{reference.kind.lower()} "{reference.name}" not found')

    def catch_up(self) -> None:
        return

    # --- rules by kind

    def _read_named(self, node: str, asked: Attributes) -> AuthorizerDecision:
        if asked.verb not in {"get", "list", "watch"}:
            return _denied("can only read resources of this type")
        if asked.subresource:
            return _denied("cannot read subresource")
        if not asked.namespace:
            return _denied("can only read namespaced object of this type")
        return self._own(node, asked)

    def _get(self, node: str, asked: Attributes) -> AuthorizerDecision:
        if asked.verb != "get":
            return _denied("can only get individual resources of this type")
        if asked.subresource:
            return _denied("cannot get subresource")
        return self._own(node, asked)

    def _claim(self, node: str, asked: Attributes) -> AuthorizerDecision:
        if asked.subresource != "status":
            return self._get(node, asked)
        if asked.verb not in {"update", "patch"}:
            return _denied("can only get/update/patch this type")
        return self._own(node, asked)

    def _own(self, node: str, asked: Attributes) -> AuthorizerDecision:
        if not asked.name:
            return _denied("No Object name found")
        key = f"{asked.namespace}/{asked.name}" if asked.namespace else asked.name
        if self._objects.belongs(node, (asked.resource, key)):
            return _ALLOWED
        return _denied(f"no relationship found between node '{node}' and this object")

    def _account(self, node: str, asked: Attributes) -> AuthorizerDecision:
        if asked.verb == "get" and not asked.subresource:
            return self._read_named(node, asked)
        if asked.verb != "create" or not asked.name:
            return _denied("can only create tokens for individual service accounts")
        if asked.subresource != "token":
            return _denied("can only create token subresource of serviceaccount")
        return self._own(node, asked)

    def _lease(self, node: str, asked: Attributes) -> AuthorizerDecision:
        if asked.verb not in _LEASE_VERBS:
            return _denied("can only get, create, update, patch, or delete a node lease")
        if asked.namespace != NODE_LEASES:
            return _denied(f'can only access leases in the "{NODE_LEASES}" system namespace')
        # The name of a new lease is not known here; NodeRestriction checks it.
        if asked.verb != "create" and asked.name != node:
            return _denied("can only access node lease with the same name as the requesting node")
        return _ALLOWED

    def _csi_node(self, node: str, asked: Attributes) -> AuthorizerDecision:
        if asked.verb not in _LEASE_VERBS:
            return _denied("can only get, create, update, patch, or delete a CSINode")
        if asked.subresource:
            return _denied("cannot authorize CSINode subresources")
        if asked.verb != "create" and asked.name != node:
            return _denied("can only access CSINode with the same name as the requesting node")
        return _ALLOWED

    def _slice(self, node: str, asked: Attributes) -> AuthorizerDecision:
        """Decides about resource slices. NodeRestriction restricts new ones to the node's own."""
        if asked.subresource:
            return _denied("cannot authorize ResourceSlice subresources")
        if asked.verb == "create":
            return _ALLOWED
        if asked.verb in {"get", "update", "patch", "delete"}:
            return self._own(node, asked)
        if asked.verb not in _COLLECTION_VERBS:
            return _denied(
                "only the following verbs are allowed for a ResourceSlice: get, watch, list, "
                "create, update, patch, delete, deletecollection"
            )
        if ("spec.nodeName", node) in asked.fields:
            return _ALLOWED
        return _denied(
            "can only list/watch/deletecollection resourceslices with nodeName field selector"
        )

    def _node(self, node: str, asked: Attributes) -> AuthorizerDecision:
        """Decides about nodes. NodeRestriction restricts writes to the node's own object."""
        writes = {"": ("create", "update", "patch"), "status": ("update", "patch")}
        if asked.verb in writes.get(asked.subresource, ()):
            return _ALLOWED
        if asked.subresource or asked.verb not in {"get", "list", "watch"}:
            return _NO_OPINION
        if asked.name == node:
            return _ALLOWED
        if not asked.name:
            return _denied(f"node '{node}' cannot read all nodes, only its own Node object")
        return _denied(f"node '{node}' cannot read '{asked.name}', only its own Node object")

    def _pod(self, node: str, asked: Attributes) -> AuthorizerDecision:
        """Decides about pods. NodeRestriction restricts writes to the node's own pods."""
        writes = {"": ("create", "delete"), "status": ("update", "patch"), "eviction": ("create",)}
        if asked.verb in writes.get(asked.subresource, ()):
            return _ALLOWED
        if asked.subresource or asked.verb not in {"get", "list", "watch"}:
            return _NO_OPINION
        if asked.verb == "get":
            return self._get(node, asked)
        if ("spec.nodeName", node) in asked.fields:
            return _ALLOWED
        if asked.name:
            return self._own(node, asked)
        return _denied("can only list/watch pods with spec.nodeName field selector")


def _denied(reason: str) -> AuthorizerDecision:
    return AuthorizerDecision(False, reason)


_RULES: Mapping[tuple[str, str], Rule] = {
    ("", graph.SECRET): NodeAuthorizer._read_named,
    ("", graph.CONFIG_MAP): NodeAuthorizer._read_named,
    ("", graph.CLAIM): NodeAuthorizer._claim,
    ("", graph.VOLUME): NodeAuthorizer._get,
    ("storage.k8s.io", graph.ATTACHMENT): NodeAuthorizer._get,
    ("", graph.ACCOUNT): NodeAuthorizer._account,
    ("coordination.k8s.io", "leases"): NodeAuthorizer._lease,
    ("storage.k8s.io", "csinodes"): NodeAuthorizer._csi_node,
    ("", "nodes"): NodeAuthorizer._node,
    ("", graph.POD): NodeAuthorizer._pod,
    ("resource.k8s.io", graph.RESOURCE_CLAIM): NodeAuthorizer._get,
    ("resource.k8s.io", graph.SLICE): NodeAuthorizer._slice,
}
"""The rules of kinds whose objects belong to nodes, by group and plural."""
