"""The keys and certificates of `kcm up`."""

from __future__ import annotations

import ssl
from pathlib import Path

from cryptography import x509

from kcm.apiserver.bootstrap.kubernetes_service import list_names
from kcm.apiserver.credentials import certificate
from kcm.cli.up.identity import with_identity
from kcm.cli.up.plan import AccessOptions, RealNode, UpOptions
from kcm.settings import Settings

FILES = {
    "KCM_SERVICE_ACCOUNT_PRIVATE_KEY_FILE": "sa.key",
    "KCM_ROOT_CA_FILE": "apiserver.crt",
    "KCM_CLUSTER_SIGNING_CERT_FILE": "ca.crt",
    "KCM_CLUSTER_SIGNING_KEY_FILE": "ca.key",
}


def settings(tmp_path: Path) -> Settings:
    return Settings(state_dir=tmp_path)


def test_keys_are_generated_once_and_only_their_owner_reads_them(tmp_path: Path) -> None:
    with_identity(UpOptions(), settings(tmp_path))
    private = (
        "sa.key",
        "ca.key",
        "apiserver.key",
        "apiserver-kubelet-client.key",
        "front-proxy-ca.key",
        "front-proxy-client.key",
    )
    assert {(tmp_path / name).stat().st_mode & 0o777 for name in private} == {0o600}
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    with_identity(UpOptions(), settings(tmp_path))
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before


def test_controllers_and_the_api_server_get_the_files(tmp_path: Path) -> None:
    options = with_identity(UpOptions(), settings(tmp_path))
    assert options.manager == {name: str(tmp_path / file) for name, file in FILES.items()}
    key = tmp_path / "sa.key"
    assert options.access.flags()[1:] == [
        f"--client-ca-file={tmp_path / 'client-ca.crt'}",
        f"--service-account-signing-key-file={key}",
        f"--service-account-key-file={key}",
        f"--kubelet-client-certificate={tmp_path / 'apiserver-kubelet-client.crt'}",
        f"--kubelet-client-key={tmp_path / 'apiserver-kubelet-client.key'}",
        f"--kubelet-certificate-authority={tmp_path / 'ca.crt'}",
        f"--proxy-client-cert-file={tmp_path / 'front-proxy-client.crt'}",
        f"--proxy-client-key-file={tmp_path / 'front-proxy-client.key'}",
        f"--requestheader-client-ca-file={tmp_path / 'front-proxy-ca.crt'}",
    ]


def test_a_new_authority_makes_a_new_certificate_for_kubelets(tmp_path: Path) -> None:
    with_identity(UpOptions(), settings(tmp_path))
    client = tmp_path / "apiserver-kubelet-client.crt"
    before = client.read_bytes()
    (tmp_path / "ca.key").unlink()
    with_identity(UpOptions(), settings(tmp_path))
    assert client.read_bytes() != before
    context = ssl.create_default_context(cafile=str(tmp_path / "ca.crt"))
    context.load_cert_chain(client, client.with_suffix(".key"))


def test_pods_of_the_real_node_get_tokens_and_the_address_of_the_api(tmp_path: Path) -> None:
    options = UpOptions(api_port=8001, real_node=RealNode("n1"))
    node = with_identity(options, settings(tmp_path)).real_node
    assert node is not None
    assert node.api_flags == (
        f"--service-account-signing-key-file={tmp_path / 'sa.key'}",
        "--pod-api-server=127.0.0.1:8001",
    )


def test_files_that_flags_name_take_precedence(tmp_path: Path) -> None:
    flags = {"KCM_ROOT_CA_FILE": "/ca.crt", "KCM_SERVICE_ACCOUNT_PRIVATE_KEY_FILE": ""}
    manager = with_identity(UpOptions(manager=flags), settings(tmp_path)).manager
    assert manager["KCM_ROOT_CA_FILE"] == "/ca.crt"
    assert manager["KCM_SERVICE_ACCOUNT_PRIVATE_KEY_FILE"] == str(tmp_path / "sa.key")


def test_authorities_of_the_user_are_trusted_besides(tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    with_identity(UpOptions(), settings(tmp_path / "other"))
    theirs = tmp_path / "other" / "ca.crt"
    options = UpOptions(access=AccessOptions(client_ca_file=theirs))
    bundle = with_identity(options, settings(tmp_path)).access.client_ca_file
    assert bundle is not None
    context = ssl.create_default_context(cafile=str(bundle))
    assert len(context.get_ca_certs()) == 2


def test_without_an_api_server_there_are_no_files(tmp_path: Path) -> None:
    options = UpOptions(api_port=0)
    assert with_identity(options, settings(tmp_path)) == options
    assert list(tmp_path.iterdir()) == []


def test_other_machines_reach_the_api_server_by_the_names_that_are_given(tmp_path: Path) -> None:
    options = UpOptions(access=AccessOptions(hosts=("worker.example", "10.0.0.5")))
    flags = with_identity(options, settings(tmp_path)).access.flags()
    assert flags[1:4] == [
        "--bind-address=0.0.0.0",
        "--tls-san=worker.example",
        "--tls-san=10.0.0.5",
    ]
    parsed = x509.load_pem_x509_certificate((tmp_path / "apiserver.crt").read_bytes())
    names = parsed.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert "worker.example" in names.get_values_for_type(x509.DNSName)
    addresses = {str(address) for address in names.get_values_for_type(x509.IPAddress)}
    assert {"10.0.0.5", "127.0.0.1"} <= addresses


def test_the_api_server_keeps_the_certificate_that_controllers_publish(tmp_path: Path) -> None:
    with_identity(UpOptions(), settings(tmp_path))
    before = (tmp_path / "apiserver.crt").read_bytes()
    hosts = ("127.0.0.1", *list_names(settings(tmp_path).service_cluster_ip_range))
    assert certificate(tmp_path, hosts).certificate.read_bytes() == before
