from __future__ import annotations

from kcm.simulation.scripting.addresses import AddressRange, PodAddresses


def test_every_address_is_given_once_until_all_are_taken() -> None:
    addresses = AddressRange("10.0.0.0/29")
    assert [addresses.take() for _ in range(7)] == [f"10.0.0.{n}" for n in range(1, 7)] + [None]


def test_an_address_that_was_given_back_is_used_last() -> None:
    addresses = AddressRange("10.0.0.0/29")
    first = addresses.take()
    assert first is not None
    addresses.release(first)
    assert [addresses.take() for _ in range(6)] == [f"10.0.0.{n}" for n in (2, 3, 4, 5, 6, 1)]


def test_what_pods_have_already_is_left_to_them() -> None:
    addresses = AddressRange("10.0.0.0/29")
    assert addresses.occupy("10.0.0.1")
    assert not addresses.occupy("10.0.0.1")
    assert not addresses.occupy("10.9.0.1")
    assert addresses.take() == "10.0.0.2"


def test_nodes_have_ranges_of_their_own_in_both_families() -> None:
    addresses = PodAddresses("10.64.0.0/10")
    assert addresses.take(["10.1.0.0/24", "fd00::/64"]) == ("10.1.0.1", "fd00::1")
    assert addresses.take(["10.1.0.0/24"]) == ("10.1.0.2",)
    assert addresses.take([]) == ("10.64.0.1",)


def test_a_range_that_is_exhausted_gives_nothing_and_keeps_nothing_of_the_other() -> None:
    addresses = PodAddresses("10.64.0.0/10")
    small, large = "10.1.0.0/30", "fd00::/120"
    for _ in range(2):
        assert addresses.take([small])
    assert addresses.take([large, small]) == ()
    addresses.release(["10.1.0.1"])
    assert addresses.take([small]) == ("10.1.0.1",)
