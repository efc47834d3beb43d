"""The flags of the program `etcd`."""

from __future__ import annotations

import pytest

from kcm.testing.envtest.etcd import read_address, read_options


def test_the_url_and_the_folder_are_read_and_others_are_ignored() -> None:
    options = read_options(
        ["--data-dir=/d", "--listen-client-urls", "http://127.0.0.1:7", "--unsafe-no-fsync=true"]
    )
    assert options == ("/d", "127.0.0.1", 7)


@pytest.mark.parametrize("url", ["https://127.0.0.1:7", "unix://socket", "http://127.0.0.1"])
def test_only_plain_http_is_served(url: str) -> None:
    with pytest.raises(ValueError, match="use http://127"):
        read_options([f"--listen-client-urls={url}"])


@pytest.mark.parametrize(
    ("urls", "address"),
    [
        ("http://127.0.0.1:7", ("127.0.0.1", 7)),
        ("http://[::1]:7/,http://127.0.0.1:8", ("::1", 7)),
        ("https://127.0.0.1:7", None),
        ("", None),
    ],
)
def test_the_first_url_is_the_address(urls: str, address: tuple[str, int] | None) -> None:
    assert read_address(urls) == address
