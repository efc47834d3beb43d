"""Gets the tokens of service accounts, with whose rights controllers work.

Source: staging/src/k8s.io/controller-manager/pkg/clientbuilder/client_builder_dynamic.go,
Kubernetes 1.36.
"""

from __future__ import annotations

import json
from contextlib import suppress

from kcm import errors
from kcm.store.remote.credentials import Identity, seconds_until
from kcm.store.remote.rest import RestClient

LIFETIME = 3600  # seconds for which a token is asked
SHORTEST = 600.0  # seconds that a token lives at least; less is a difference of clocks
USED = 0.8  # the share of its lifetime after which it is asked for again


def request_token(client: RestClient, namespace: str, account: str) -> Identity:
    """Returns the identity of a service account, which is created if it is missing.

    Raises StoreUnavailable, also if the server refuses, as one does that has just started.
    """
    try:
        return _request_token(client, namespace, account)
    except errors.ApiError as error:
        raise errors.StoreUnavailable(f"no token for the account {account}: {error}") from error


def _request_token(client: RestClient, namespace: str, account: str) -> Identity:
    accounts = f"/api/v1/namespaces/{namespace}/serviceaccounts"
    try:
        client.request("GET", f"{accounts}/{account}")
    except errors.NotFound:
        _create_account(client, namespace, account)
    body = {"spec": {"expirationSeconds": LIFETIME}}
    answer = json.loads(client.request("POST", f"{accounts}/{account}/token", body=body))
    status = answer["status"]
    lifetime = max(seconds_until(status["expirationTimestamp"]), SHORTEST)
    return Identity(status["token"], good_for=lifetime * USED)


def _create_account(client: RestClient, namespace: str, account: str) -> None:
    body = {"metadata": {"name": account, "namespace": namespace}}
    with suppress(errors.AlreadyExists):  # another process was faster
        client.request("POST", f"/api/v1/namespaces/{namespace}/serviceaccounts", body=body)
