"""Users and their groups.

Source: staging/src/k8s.io/apiserver/pkg/authentication/user and pkg/authentication/serviceaccount,
Kubernetes 1.33.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

MASTERS = "system:masters"  # may do everything, whatever the roles say
AUTHENTICATED = "system:authenticated"
UNAUTHENTICATED = "system:unauthenticated"
ANONYMOUS = "system:anonymous"
SERVICE_ACCOUNTS = "system:serviceaccounts"
_SERVICE_ACCOUNT = "system:serviceaccount:"


@dataclass(frozen=True)
class User:
    """A user's name, and the groups it is in."""

    name: str
    uid: str = ""
    groups: tuple[str, ...] = ()
    extra: tuple[tuple[str, tuple[str, ...]], ...] = ()

    def with_groups(self, *groups: str) -> User:
        """Returns this user with further groups."""
        new = [group for group in groups if group not in self.groups]
        return replace(self, groups=(*self.groups, *new)) if new else self


ANYBODY = User(ANONYMOUS, groups=(UNAUTHENTICATED,))
ADMIN = User("kubernetes-admin", groups=(MASTERS,))  # the user that has the generated token


def as_authenticated(user: User) -> User:
    """Returns the user in the group of all authenticated users."""
    return user if user.name == ANONYMOUS else user.with_groups(AUTHENTICATED)


def service_account(name: str) -> tuple[str, str] | None:
    """Returns namespace and name in a service account's user name, None for other users."""
    namespace, colon, account = name.removeprefix(_SERVICE_ACCOUNT).partition(":")
    if not name.startswith(_SERVICE_ACCOUNT) or not (namespace and colon and account):
        return None
    return None if ":" in account else (namespace, account)


def service_account_name(namespace: str, name: str) -> str:
    """Returns the user name of a service account."""
    return f"{_SERVICE_ACCOUNT}{namespace}:{name}"


def service_account_groups(namespace: str) -> tuple[str, str]:
    """Returns the groups of a namespace's service accounts."""
    return (SERVICE_ACCOUNTS, f"{SERVICE_ACCOUNTS}:{namespace}")


def quote_list(words: Iterable[str]) -> str:
    """Returns a list as upstream's messages print it: `["a" "b"]`."""
    return "[" + " ".join(f'"{word}"' for word in words) + "]"
