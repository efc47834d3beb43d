"""Addresses of pods."""

from __future__ import annotations

from ipaddress import IPv4Network
from pathlib import Path

import pytest

from kcm.errors import ContainerRuntimeError
from kcm.kubelet.runtime.process.addresses import Addresses

SMALL = IPv4Network("127.64.0.0/30")  # two addresses for pods


def sandbox(tmp_path: Path, name: str) -> Path:
    folder = tmp_path / name
    folder.mkdir()
    return folder


def test_an_address_is_given_once_whoever_asks(tmp_path: Path) -> None:
    one, other = (Addresses(tmp_path / "shared", SMALL) for _ in range(2))
    taken = {one.take(sandbox(tmp_path, "a")), other.take(sandbox(tmp_path, "b"))}
    assert taken == {"127.64.0.1", "127.64.0.2"}
    with pytest.raises(ContainerRuntimeError, match="all addresses"):
        one.take(sandbox(tmp_path, "c"))


def test_an_address_given_back_is_free(tmp_path: Path) -> None:
    addresses = Addresses(tmp_path / "shared", SMALL)
    a, b = sandbox(tmp_path, "a"), sandbox(tmp_path, "b")
    first, second = addresses.take(a), addresses.take(b)
    addresses.release(first, b)  # not its own
    addresses.release(second, b)
    assert addresses.take(b) == second
    addresses.release("127.64.0.77", a)  # never given


def test_the_address_of_a_sandbox_that_is_gone_is_free(tmp_path: Path) -> None:
    addresses = Addresses(tmp_path / "shared", SMALL)
    a = sandbox(tmp_path, "a")
    first = addresses.take(a)
    addresses.take(sandbox(tmp_path, "b"))
    a.rmdir()
    assert addresses.take(sandbox(tmp_path, "c")) == first
