"""How a request for another server says who sends it: by headers.

The server trusts the headers because the client's certificate is signed by the front proxy's
authority.

Source: staging/src/k8s.io/client-go/transport/round_trippers.go (SetAuthProxyHeaders),
staging/src/k8s.io/apimachinery/pkg/util/proxy and net/http/httputil of Go 1.24, Kubernetes 1.33.
"""

from __future__ import annotations

import re
import string

from kcm import errors
from kcm.apiserver.auth.attributes import MASTERS, User

USER, UID, GROUP, EXTRA = "X-Remote-User", "X-Remote-Uid", "X-Remote-Group", "X-Remote-Extra-"
AGGREGATOR = User("system:kube-aggregator", groups=(MASTERS,))  # asks for discovery
OPENAPI_AGGREGATOR = User("system:aggregator")

Headers = list[tuple[bytes, bytes]]

# The bytes of a header's name, as RFC 7230 has them, but %, by which others are written.
_NAME_BYTES = frozenset((string.ascii_letters + string.digits + "!#$&'*+-.^_`|~").encode())


_CONTROLS = re.compile(r"[\x00-\x1f\x7f]")


class NoHeader(errors.KcmError):
    """A header cannot have this value."""


def identify(user: User) -> Headers:
    """Returns the headers that say who the user is.

    Raises NoHeader for a name that a server would read as another one.
    """
    pairs = [(USER, user.name)]
    if user.uid:
        pairs.append((UID, user.uid))
    pairs += [(GROUP, group) for group in user.groups]
    pairs += [
        (EXTRA + escape_header_key(name), value) for name, values in user.extra for value in values
    ]
    return [(name.encode(), _encode(name, value)) for name, value in pairs]


def escape_header_key(name: str) -> str:
    """Returns a name of an extra attribute as it may stand in a header's name."""
    return "".join(chr(byte) if byte in _NAME_BYTES else f"%{byte:02X}" for byte in name.encode())


def _encode(name: str, value: str) -> bytes:
    """Returns the bytes of a header's value. Servers drop spaces around it."""
    if _CONTROLS.search(value) or value != value.strip():
        raise NoHeader(f'net/http: invalid header field value for "{name}"')
    try:
        return value.encode()
    except UnicodeEncodeError:
        raise NoHeader(f'net/http: invalid header field value for "{name}"') from None
