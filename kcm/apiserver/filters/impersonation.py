"""Impersonation (`kubectl --as`): requests that act on behalf of another user.

Source: staging/src/k8s.io/apiserver/pkg/endpoints/filters/impersonation.go, Kubernetes 1.33.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from urllib.parse import unquote

from kcm import errors
from kcm.apiserver.auth.attributes import (
    ANONYMOUS,
    AUTHENTICATED,
    UNAUTHENTICATED,
    Attributes,
    User,
    forbidden,
    service_account,
    service_account_groups,
)
from kcm.apiserver.auth.authorizer import Authorizer
from kcm.apiserver.exchange import Exchange, Handler
from kcm.apiserver.http.responses import Response

_GROUP = "authentication.k8s.io"
_PREFIX = b"impersonate-"
_EXTRA = b"impersonate-extra-"

Fields = Sequence[tuple[bytes, bytes]]


class Impersonation:
    """Sets the user on whose behalf a request acts, if its headers ask for one."""

    def __init__(self, authorizer: Authorizer) -> None:
        self._authorizer = authorizer

    async def serve(self, exchange: Exchange, proceed: Handler) -> Response | None:
        """Raises: as `impersonate`."""
        sender = exchange.sender
        if sender is not None:
            acting = impersonate(sender, exchange.request.fields, self._authorizer)
            exchange.user = acting or sender
        return await proceed(exchange)


def impersonate(real: User, fields: Fields, authorizer: Authorizer) -> User | None:
    """Returns the user that a request's headers ask to act as, None if they ask for no one.

    Raises BadRequest if there are headers for groups, uid or extra, but none for the user;
    Forbidden if the sender may not impersonate that user; and StoreUnavailable.
    """
    asked = [(name, value) for name, value in fields if name.startswith(_PREFIX)]
    if not asked:
        return None
    wanted = _read_requested_user(asked)
    for attributes in _checks(wanted):
        decision = authorizer.authorize(real, attributes)
        if not decision.allowed:
            raise forbidden(real.name, attributes, decision.reason)
    return _with_implicit_groups(wanted)


def _read_requested_user(asked: Fields) -> User:
    def values(name: bytes) -> list[str]:
        return [value.decode("utf-8", "replace") for key, value in asked if key == name]

    names, uids = values(b"impersonate-user"), values(b"impersonate-uid")
    extra = {key[len(_EXTRA) :]: () for key, _ in asked if key.startswith(_EXTRA)}
    if len(names) != 1 or not names[0] or len(uids) > 1:
        raise errors.BadRequest("impersonation needs the header Impersonate-User, once")
    return User(
        names[0],
        "".join(uids),
        tuple(values(b"impersonate-group")),
        tuple(
            (unquote(key.decode("latin-1")).lower(), tuple(values(_EXTRA + key))) for key in extra
        ),
    )


def _checks(wanted: User) -> Iterator[Attributes]:
    account = service_account(wanted.name)
    if account:
        namespace, name = account
        yield Attributes(
            "impersonate", version="v1", resource="serviceaccounts", namespace=namespace, name=name
        )
    else:
        yield Attributes("impersonate", version="v1", resource="users", name=wanted.name)
    for group in wanted.groups:
        yield Attributes("impersonate", version="v1", resource="groups", name=group)
    for key, values in wanted.extra:
        for value in values:
            yield Attributes("impersonate", _GROUP, "v1", "userextras", key, name=value)
    if wanted.uid:
        yield Attributes("impersonate", _GROUP, "v1", "uids", name=wanted.uid)


def _with_implicit_groups(wanted: User) -> User:
    """Returns the user with the groups that the server adds, such as system:authenticated."""
    account = service_account(wanted.name)
    if account and not wanted.groups:
        wanted = wanted.with_groups(*service_account_groups(account[0]))
    if wanted.name == ANONYMOUS:
        return wanted.with_groups(UNAUTHENTICATED)
    if UNAUTHENTICATED in wanted.groups:
        return wanted
    return wanted.with_groups(AUTHENTICATED)
