"""The flags of `kcm kubelet` about its kubeconfig and certificates."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from kcm import errors
from kcm.cli.kubelet.joining import CertificateFlags
from kcm.kubelet.options import KubeletOptions


def flags(
    folder: Path,
    *,
    kubeconfig: str = "",
    bootstrap: str = "",
    server: bool = False,
) -> CertificateFlags:
    return CertificateFlags(
        folder / kubeconfig if kubeconfig else None,
        folder / bootstrap if bootstrap else None,
        folder / "pki",
        rotate_certificates=True,
        rotate_server_certificates=server,
    )


def test_a_kubelet_on_redis_has_no_certificates(tmp_path: Path) -> None:
    plain = flags(tmp_path)
    plain.check()
    options = KubeletOptions(node_name="n1", root_dir=tmp_path)
    assert plain.join(options, threading.Event()) == (options, None)
    with pytest.raises(errors.ConfigurationError, match="certificates are requested of an API"):
        flags(tmp_path, server=True).check()


@pytest.mark.parametrize(
    ("kubeconfig", "bootstrap", "words"),
    [
        ("absent", "", "--kubeconfig: there is no file"),
        ("absent", "gone", "--bootstrap-kubeconfig: there is no file"),
    ],
)
def test_a_file_that_is_missing_is_named(
    tmp_path: Path, kubeconfig: str, bootstrap: str, words: str
) -> None:
    with pytest.raises(errors.ConfigurationError, match=words):
        flags(tmp_path, kubeconfig=kubeconfig, bootstrap=bootstrap).check()


def test_the_bootstrap_file_may_be_removed_once_there_is_a_kubeconfig(tmp_path: Path) -> None:
    (tmp_path / "kubeconfig").write_text("")
    flags(tmp_path, kubeconfig="kubeconfig", bootstrap="gone").check()


def test_with_a_kubeconfig_the_api_gets_a_first_certificate_if_it_is_to_rotate(
    tmp_path: Path,
) -> None:
    options = KubeletOptions(node_name="n1", root_dir=tmp_path)
    for server in (True, False):
        joined = flags(tmp_path, kubeconfig="kubeconfig", server=server).join(
            options, threading.Event()
        )
        assert joined is not None
        assert bool(joined[0].certificate) is server
        assert joined[1] is not None
        assert joined[1].rotate_server_certificates is server
