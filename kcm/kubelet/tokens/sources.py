"""Where a kubelet gets tokens from: an API server, or the key itself.

A kubelet that works on Redis can write everything there, so it is trusted with the key, too. One
that works for an API server requests tokens of it, as upstream.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from typing import Any

from kcm import errors
from kcm.api.core_v1 import Node, Pod, ServiceAccount
from kcm.apimachinery.meta_v1 import KubeObject
from kcm.clock import Clock
from kcm.helpers.serviceaccount.claims import BoundObjects
from kcm.helpers.serviceaccount.issuing import Issuer
from kcm.kubelet.tokens.manager import IssuedToken
from kcm.store.objects import ObjectStore

Post = Callable[[str, Mapping[str, Any]], bytes]
"""Sends a body to a path of an API server, and returns the body of its response."""


class SignedTokens:
    """Signs tokens itself, after a look at the account and the node in the store."""

    def __init__(self, store: ObjectStore, issuer: Issuer, clock: Clock) -> None:
        self._store = store
        self._issuer = issuer
        self._clock = clock

    def request(self, pod: Pod, audience: str, seconds: int) -> IssuedToken:
        """Returns a new token. Raises NotFound for a missing account, and StoreUnavailable."""
        name = pod.spec.service_account_name or "default"
        node_name = pod.spec.node_name or ""
        account, node = self._read(f"{pod.namespace}/{name}", node_name)
        now = self._clock.now()
        text = self._issuer.issue(
            account,
            BoundObjects(pod=pod, node=node or Node().with_metadata(name=node_name)),
            now,
            audiences=[audience] if audience else self._issuer.audiences,
            seconds=seconds,
        )
        return IssuedToken(text, now + timedelta(seconds=seconds), seconds)

    def _read(self, key: str, node_name: str) -> tuple[ServiceAccount, Node | None]:
        wanted = [
            (ServiceAccount.resource, key),
            (Node.resource, node_name),
        ]
        objects: list[KubeObject | None] = list(self._store.get_all(wanted))
        account, node = objects
        if not isinstance(account, ServiceAccount):
            raise errors.NotFound.of("serviceaccounts", key.partition("/")[2])
        return account, node if isinstance(node, Node) else None


class RequestedTokens:
    """Requests tokens of an API server."""

    def __init__(self, post: Post) -> None:
        self._post = post

    def request(self, pod: Pod, audience: str, seconds: int) -> IssuedToken:
        """Returns a new token. Raises ApiError and Temporary."""
        name = pod.spec.service_account_name or "default"
        path = f"/api/v1/namespaces/{pod.namespace}/serviceaccounts/{name}/token"
        reference = {"apiVersion": "v1", "kind": "Pod", "name": pod.name, "uid": pod.uid}
        spec: dict[str, Any] = {"expirationSeconds": seconds, "boundObjectRef": reference}
        if audience:
            spec["audiences"] = [audience]
        body = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": spec}
        try:
            answer = json.loads(self._post(path, body))
            status, given = answer["status"], answer["spec"]["expirationSeconds"]
            expires = datetime.fromisoformat(status["expirationTimestamp"])
            return IssuedToken(str(status["token"]), expires, int(given))
        except (ValueError, KeyError, TypeError) as error:
            raise errors.StoreUnavailable(f"the answer is no TokenRequest: {error}") from None


class NoTokens:
    """Issues no tokens, and says why."""

    def request(self, pod: Pod, audience: str, seconds: int) -> IssuedToken:
        """Raises ContainerConfigError."""
        raise errors.ContainerConfigError(
            "this node has no key for service account tokens: name one with "
            "--service-account-signing-key-file, or use --kubeconfig"
        )
