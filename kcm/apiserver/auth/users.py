"""Users and their groups.

Source: staging/src/k8s.io/apiserver/pkg/authentication/user and pkg/authentication/serviceaccount,
Kubernetes 1.33.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

MASTERS = "system:masters"  # may send every request, whatever the roles are
AUTHENTICATED = "system:authenticated"
UNAUTHENTICATED = "system:unauthenticated"
ANONYMOUS = "system:anonymous"
SERVICE_ACCOUNTS = "system:serviceaccounts"
NODES = "system:nodes"
_SERVICE_ACCOUNT = "system:serviceaccount:"


@dataclass(frozen=True)
class User:
    """A user as authentication identifies it: name, uid, groups and further attributes
    (`extra`).
    """

    name: str
    uid: str = ""
    groups: tuple[str, ...] = ()
    extra: tuple[tuple[str, tuple[str, ...]], ...] = ()

    def with_groups(self, *groups: str) -> User:
        """Returns this user with these groups added."""
        new = [group for group in groups if group not in self.groups]
        return replace(self, groups=(*self.groups, *new)) if new else self


ANYBODY = User(ANONYMOUS, groups=(UNAUTHENTICATED,))
ADMIN = User("kubernetes-admin", groups=(MASTERS,))  # the user of the generated token


def as_authenticated(user: User) -> User:
    """Returns the user with the group system:authenticated, unless it is system:anonymous."""
    return user if user.name == ANONYMOUS else user.with_groups(AUTHENTICATED)


def service_account(name: str) -> tuple[str, str] | None:
    """Returns namespace and name of the service account with this user name.

    Returns None for the name of another user.
    """
    namespace, colon, account = name.removeprefix(_SERVICE_ACCOUNT).partition(":")
    if not name.startswith(_SERVICE_ACCOUNT) or not (namespace and colon and account):
        return None
    return None if ":" in account else (namespace, account)


def service_account_name(namespace: str, name: str) -> str:
    """Returns the user name of a service account."""
    return f"{_SERVICE_ACCOUNT}{namespace}:{name}"


def service_account_groups(namespace: str) -> tuple[str, str]:
    """Returns the groups in which all service accounts of a namespace are."""
    return (SERVICE_ACCOUNTS, f"{SERVICE_ACCOUNTS}:{namespace}")


def quote_list(words: Iterable[str]) -> str:
    """Returns a list as upstream's messages print it: `["a" "b"]`."""
    return "[" + " ".join(f'"{word}"' for word in words) + "]"
