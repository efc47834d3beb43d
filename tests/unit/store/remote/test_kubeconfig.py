from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from kcm import errors
from kcm.apiserver import credentials
from kcm.store.remote.credentials import Credential, Identity
from kcm.store.remote.kubeconfig import load, load_in_cluster


def write_kubeconfig(
    folder: Path, cluster: dict[str, Any], user: dict[str, Any], **more: Any
) -> Path:
    config = {
        "clusters": [{"name": "c", "cluster": cluster}],
        "users": [{"name": "u", "user": user}],
        "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}],
        "current-context": "x",
    }
    path = folder / "kubeconfig"
    path.write_text(yaml.safe_dump(config | more))
    return path


def test_what_kcm_up_writes_is_understood(tmp_path: Path) -> None:
    certificate = credentials.certificate(tmp_path).certificate
    path = tmp_path / "config"
    credentials.write_kubeconfig(path, "https://localhost:8001", "secret", certificate)
    connection = load(path)
    assert (connection.server, connection.credential.current().token) == (
        "https://localhost:8001",
        "secret",
    )
    assert connection.trust is not None
    assert len(connection.trust.get_ca_certs()) == 1


def test_files_are_relative_to_the_kubeconfig(tmp_path: Path) -> None:
    (tmp_path / "token").write_text("from-a-file\n")
    path = write_kubeconfig(tmp_path, {"server": "http://localhost"}, {"tokenFile": "token"})
    connection = load(path)
    assert (connection.credential.current().token, connection.trust) == ("from-a-file", None)


def test_a_client_certificate_is_loaded(tmp_path: Path) -> None:
    certificate = credentials.certificate(tmp_path)
    user = {"client-certificate": certificate.certificate.name, "client-key": certificate.key.name}
    assert load(write_kubeconfig(tmp_path, {"server": "https://localhost"}, user)).trust is not None


def test_the_token_is_never_shown(tmp_path: Path) -> None:
    assert "secret" not in repr(
        load(write_kubeconfig(tmp_path, {"server": "http://h"}, {"token": "secret"}))
    )


@pytest.mark.parametrize(
    ("cluster", "user", "more", "words"),
    [
        pytest.param({}, {}, {}, "has no server", id="no server"),
        pytest.param(
            {"server": "http://h"}, {"exec": {"apiVersion": "v0"}}, {}, "'v0'", id="a plugin"
        ),
        pytest.param({"server": "http://h"}, {}, {"current-context": "y"}, "'y'", id="context"),
        pytest.param(
            {"server": "http://h"}, {"token": "a\nb"}, {}, "token has characters", id="two lines"
        ),
        pytest.param(
            {"server": "http://h"}, {"token": "ä"}, {}, "token has characters", id="no ASCII"
        ),
        pytest.param({"server": "http://h"}, {}, {"clusters": None}, "'c'", id="cluster"),
        pytest.param(
            {"server": "https://h", "certificate-authority": "none"}, {}, {}, "none", id="no file"
        ),
        pytest.param(
            {"server": "https://h", "certificate-authority-data": "!"}, {}, {}, "64", id="base64"
        ),
        pytest.param(
            {"server": "https://h", "certificate-authority-data": "AAAA"},
            {},
            {},
            "kubeconfig",
            id="no pem",
        ),
    ],
)
def test_what_is_wrong_is_told_with_the_file(
    tmp_path: Path, cluster: Any, user: Any, more: Any, words: str
) -> None:
    path = write_kubeconfig(tmp_path, cluster, user, **more)
    with pytest.raises(errors.ConfigurationError, match=words) as refused:
        load(path)
    assert str(path) in str(refused.value)


@pytest.mark.parametrize("text", ["[]", "a: [", "- 1", "clusters: 3", "\x00"])
def test_rubbish_is_a_configuration_error(tmp_path: Path, text: str) -> None:
    path = tmp_path / "kubeconfig"
    path.write_text(text)
    with pytest.raises(errors.ConfigurationError, match="kubeconfig"):
        load(path)


def test_files_are_read_again(tmp_path: Path) -> None:
    (tmp_path / "token").write_text("first")
    path = write_kubeconfig(tmp_path, {"server": "http://localhost"}, {"tokenFile": "token"})
    credential = load(path).credential
    (tmp_path / "token").write_text("second")
    assert credential.current().token == "first"
    credential.drop()
    assert credential.current().token == "second"


def test_a_pod_has_the_account_that_its_cluster_gave_it(tmp_path: Path) -> None:
    made = credentials.certificate(tmp_path)
    (tmp_path / "ca.crt").write_bytes(made.certificate.read_bytes())
    (tmp_path / "token").write_text("of-the-pod\n")
    service = {"KUBERNETES_SERVICE_HOST": "10.0.0.1", "KUBERNETES_SERVICE_PORT": "443"}
    connection = load_in_cluster(service, tmp_path)
    assert connection.server == "https://10.0.0.1:443"
    assert connection.credential.current().token == "of-the-pod"
    six = load_in_cluster(service | {"KUBERNETES_SERVICE_HOST": "fd00::1"}, tmp_path)
    assert six.server == "https://[fd00::1]:443"


def test_outside_of_a_cluster_there_is_no_such_account(tmp_path: Path) -> None:
    with pytest.raises(errors.ConfigurationError, match="KUBERNETES_SERVICE_HOST"):
        load_in_cluster({}, tmp_path)
    service = {"KUBERNETES_SERVICE_HOST": "h", "KUBERNETES_SERVICE_PORT": "443"}
    with pytest.raises(errors.ConfigurationError, match=r"ca\.crt"):
        load_in_cluster(service, tmp_path)


def test_another_identity_has_nothing_of_the_first(tmp_path: Path) -> None:
    made = credentials.certificate(tmp_path)
    user = {"client-certificate": made.certificate.name, "client-key": made.key.name}
    first = load(write_kubeconfig(tmp_path, {"server": "https://localhost"}, user))
    other = first.identify(Credential(lambda: Identity("t")))
    assert other.server == first.server
    assert other.trust is not first.trust
    assert other.credential.current() == Identity("t")
