"""Where others reach the server."""

from __future__ import annotations

import pytest

from kcm.apiserver.running import ServerOptions, find_public_endpoint
from kcm.apiserver.serving import Address


@pytest.mark.parametrize(
    ("host", "names", "endpoint", "public"),
    [
        ("127.0.0.1", (), None, None),
        ("127.0.0.1", ("10.0.0.7",), None, None),
        ("0.0.0.0", (), None, None),
        ("0.0.0.0", ("10.0.0.7", "desk"), None, Address("10.0.0.7", 0)),
        ("::", ("desk",), None, Address("desk", 0)),
        ("0.0.0.0", ("10.0.0.7",), Address("lb", 443), Address("lb", 443)),
    ],
)
def test_a_server_that_listens_everywhere_is_reached_by_its_name(
    host: str, names: tuple[str, ...], endpoint: Address | None, public: Address | None
) -> None:
    options = ServerOptions(Address(host), True, True, None, None, names=names, endpoint=endpoint)
    assert find_public_endpoint(options) == public
