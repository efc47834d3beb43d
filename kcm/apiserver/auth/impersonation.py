"""`kubectl --as`: acting as somebody else, for those who may impersonate.

Source: staging/src/k8s.io/apiserver/pkg/endpoints/filters/impersonation.go, Kubernetes 1.33.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from urllib.parse import unquote

from kcm import errors
from kcm.apiserver.auth.attributes import Attributes, forbidden
from kcm.apiserver.auth.authorizer import Authorizer
from kcm.apiserver.auth.users import (
    ANONYMOUS,
    AUTHENTICATED,
    UNAUTHENTICATED,
    User,
    service_account,
    service_account_groups,
)

_GROUP = "authentication.k8s.io"
_PREFIX = b"impersonate-"
_EXTRA = b"impersonate-extra-"

Fields = Sequence[tuple[bytes, bytes]]


def impersonated(real: User, fields: Fields, authorizer: Authorizer) -> User | None:
    """Whom a request acts as; None for nobody else.

    Raises: BadRequest for groups and the like without a user, Forbidden, StoreUnavailable.
    """
    asked = [(name, value) for name, value in fields if name.startswith(_PREFIX)]
    if not asked:
        return None
    wanted = _wanted(asked)
    for attributes in _checks(wanted):
        decision = authorizer.authorize(real, attributes)
        if not decision.allowed:
            raise forbidden(real.name, attributes, decision.reason)
    return _completed(wanted)


def _wanted(asked: Fields) -> User:
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


def _completed(wanted: User) -> User:
    """In the groups that the user is in without being asked."""
    account = service_account(wanted.name)
    if account and not wanted.groups:
        wanted = wanted.joined(*service_account_groups(account[0]))
    if wanted.name == ANONYMOUS:
        return wanted.joined(UNAUTHENTICATED)
    if UNAUTHENTICATED in wanted.groups:
        return wanted
    return wanted.joined(AUTHENTICATED)
