"""What the flags of `kcm apiserver` become."""

from __future__ import annotations

from pathlib import Path

import click
import pytest

from kcm import errors
from kcm.apiserver.command import command, read_options
from kcm.apiserver.credentials import Certificate
from kcm.apiserver.running import ServerOptions
from kcm.apiserver.serving import Address


def read(folder: Path, *arguments: str) -> ServerOptions:
    """Returns the options for flags in whose values FILE is a file that exists."""
    file = folder / "file"
    file.touch()
    given = [argument.replace("FILE", str(file)) for argument in arguments]
    return read_options(**command.make_context("apiserver", given).params)


def test_a_certificate_is_served_and_another_shown_to_kubelets(tmp_path: Path) -> None:
    pair = Certificate(tmp_path / "file", tmp_path / "file")
    served = read(tmp_path, "--tls-cert-file=FILE", "--tls-private-key-file=FILE")
    assert (served.certificate, served.kubelet_client) == (pair, None)
    shown = read(
        tmp_path,
        "--kubelet-client-certificate=FILE",
        "--kubelet-client-key=FILE",
        "--kubelet-certificate-authority=FILE",
    )
    assert (shown.certificate, shown.kubelet_client) == (None, pair)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--tls-cert-file=FILE"], "--tls-private-key-file must be used together"),
        (["--tls-private-key-file=FILE"], "--tls-private-key-file must be used together"),
        (
            ["--tls-cert-file=FILE", "--tls-private-key-file=FILE", "--no-tls"],
            "must be used together, and with TLS",
        ),
        (
            ["--kubelet-client-certificate=FILE", "--kubelet-client-key=FILE"],
            "--kubelet-certificate-authority must be used together",
        ),
        (
            ["--kubelet-client-key=FILE", "--kubelet-certificate-authority=FILE"],
            "--kubelet-certificate-authority must be used together",
        ),
        (["--client-ca-file=FILE", "--no-tls"], "--client-ca-file needs TLS"),
        (["--cluster-authority", "--no-tls"], "--cluster-authority needs TLS"),
    ],
)
def test_what_belongs_together_is_given_together(
    tmp_path: Path, arguments: list[str], words: str
) -> None:
    with pytest.raises(errors.ConfigurationError) as raised:
        read(tmp_path, *arguments)
    assert words in str(raised.value)


def test_an_authority_of_kubelets_needs_no_certificate(tmp_path: Path) -> None:
    options = read(tmp_path, "--kubelet-certificate-authority=FILE")
    assert options.kubelet_authority == tmp_path / "file"
    assert options.kubelet_client is None


@pytest.mark.parametrize(("text", "seconds"), [("0s", 0.0), ("1m5s", 65.0)])
def test_a_server_serves_on_for_as_long_as_upstreams_flag_says(
    tmp_path: Path, text: str, seconds: float
) -> None:
    assert read(tmp_path, f"--shutdown-delay-duration={text}").shutdown_delay == seconds


@pytest.mark.parametrize("text", ["-1s", "soon", "5"])
def test_a_delay_is_a_duration(tmp_path: Path, text: str) -> None:
    with pytest.raises(click.BadParameter):
        read(tmp_path, f"--shutdown-delay-duration={text}")


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("api.example.com", Address("api.example.com", 0)),
        ("10.0.0.7:6443", Address("10.0.0.7", 6443)),
        ("[fd00::7]", Address("fd00::7", 0)),
        ("[fd00::7]:6443", Address("fd00::7", 6443)),
    ],
)
def test_the_control_plane_has_an_endpoint(tmp_path: Path, text: str, address: Address) -> None:
    assert read(tmp_path, f"--control-plane-endpoint={text}").endpoint == address


@pytest.mark.parametrize(
    "text", ["", "https://h", "h:", "h:0", "h:65536", "fd00::7", "[h]:1", "[1:]", "h/x", "a b"]
)
def test_an_endpoint_is_a_host_with_or_without_a_port(tmp_path: Path, text: str) -> None:
    with pytest.raises(click.BadParameter, match="must be HOST or HOST:PORT"):
        read(tmp_path, f"--control-plane-endpoint={text}")
