from __future__ import annotations

import asyncio

import pytest

from kcm import errors
from kcm.http.reachable import require_global, resolve


@pytest.mark.parametrize("address", ["10.0.0.7", "192.168.1.2", "8.8.8.8", "2001:db8::1"])
def test_addresses_of_other_machines_may_be_reached(address: str) -> None:
    assert str(require_global(address)) == address


@pytest.mark.parametrize(
    "address",
    ["127.0.0.1", "127.64.0.1", "0.0.0.0", "169.254.169.254", "224.0.0.1", "255.255.255.255",
     "::1", "::", "fe80::1", "fe80::1%eth0", "ff02::1", "::ffff:127.0.0.1", "localhost", "127.1"],
)  # fmt: skip
def test_addresses_of_this_machine_or_link_may_not(address: str) -> None:
    with pytest.raises(errors.BadRequest, match="address not allowed"):
        require_global(address)


@pytest.mark.parametrize("host", ["localhost", "127.1", "2130706433", "0x7f000001"])
def test_a_name_may_not_lead_to_this_machine_either(host: str) -> None:
    with pytest.raises(errors.BadRequest, match="address not allowed"):
        asyncio.run(resolve(host, 80, to_global=True))
