"""Users who authenticate by certificates."""

from __future__ import annotations

import json
import shutil
import ssl
import subprocess
import tempfile
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx
import pytest

from kcm.http.trust import Trust
from kcm.redisio.embedded import EmbeddedServer
from kcm.store.remote.kubeconfig import ClusterConnection
from kcm.store.remote.rest import RestClient
from tests.integration.apiserver.authority import Authority
from tests.integration.apiserver.kubectl import VERSIONS, find
from tests.integration.apiserver.serving import TOKEN, Live, live

WHO = "/apis/authentication.k8s.io/v1/selfsubjectreviews"


@pytest.fixture(scope="module")
def folder() -> Iterator[Path]:
    path = Path(tempfile.mkdtemp(prefix="kcm-certs-"))
    yield path
    shutil.rmtree(path, ignore_errors=True)


@pytest.fixture(scope="module")
def authority(folder: Path) -> Authority:
    return Authority(folder)


@pytest.fixture(scope="module")
def api(redis_server: EmbeddedServer, folder: Path, authority: Authority) -> Iterator[Live]:
    with live(redis_server.url, folder, authority.path) as running:
        yield running


def client(api: Live, files: tuple[str, str], **headers: str) -> httpx.Client:
    context = ssl.create_default_context(cafile=str(api.kubeconfig.with_name("apiserver.crt")))
    context.load_cert_chain(*files)
    return httpx.Client(base_url=api.url, verify=context, headers=headers)


def test_name_and_organizations_are_user_and_groups(api: Live, authority: Authority) -> None:
    with client(api, authority.client("carol", "dev", "ops")) as carol:
        for _ in range(2):  # on one connection
            info = carol.post(WHO, json={}).json()["status"]["userInfo"]
            assert info["username"] == "carol"
            assert info["groups"] == ["dev", "ops", "system:authenticated"]
        assert carol.get("/api/v1/nodes").status_code == 403


def test_a_certificate_of_the_masters_opens_everything(api: Live, authority: Authority) -> None:
    with client(api, authority.client("root", "system:masters")) as root:
        assert root.get("/api/v1/nodes").status_code == 200


def test_a_certificate_goes_before_a_token_and_stands_for_a_wrong_one(
    api: Live, authority: Authority
) -> None:
    for token in (TOKEN, "wrong"):
        with client(api, authority.client("dave"), authorization=f"Bearer {token}") as dave:
            info = dave.post(WHO, json={}).json()["status"]["userInfo"]
            assert info["username"] == "dave"


@pytest.mark.parametrize("wrong", ["foreign", "expired", "server"])
def test_certificates_that_prove_nothing_end_the_connection(
    api: Live, authority: Authority, tmp_path: Path, wrong: str
) -> None:
    signer = Authority(tmp_path, "others") if wrong == "foreign" else authority
    days = -1.0 if wrong == "expired" else 1.0
    files = signer.client(f"eve-{wrong}", "system:masters", days=days, server=wrong == "server")

    def ask() -> None:
        with client(api, files) as eve, pytest.raises(httpx.TransportError):
            eve.get("/livez")

    # In a thread of its own: OpenSSL keeps errors by thread, and Python 3.13 meets this one again
    # on another connection.
    with ThreadPoolExecutor() as pool:
        pool.submit(ask).result()


def test_without_a_certificate_tokens_work_and_nothing_is_nobody(api: Live) -> None:
    assert api.client.get("/api/v1/nodes").status_code == 200
    with api.as_user("") as nobody:
        assert nobody.get("/api/v1/nodes").status_code == 401


@pytest.mark.parametrize("version", VERSIONS)
def test_kubectl_is_its_certificate(
    api: Live, authority: Authority, tmp_path: Path, version: str
) -> None:
    binary = find(version)
    if binary is None:
        pytest.skip(f"kubectl.{version} is not here")
    certificate, key = authority.client("erin", "dev")
    flags = [
        f"--server={api.url}", f"--client-certificate={certificate}", f"--client-key={key}",
        f"--certificate-authority={api.kubeconfig.with_name('apiserver.crt')}",
    ]  # fmt: skip
    done = subprocess.run(
        [binary, *flags, "auth", "can-i", "list", "pods"], env={"HOME": str(tmp_path)},
        capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert (done.stdout, done.returncode) == ("no\n", 1), done.stderr


def read_pem(files: Iterable[str]) -> bytes:
    return b"".join(Path(file).read_bytes() for file in files)


def test_a_client_that_reconnects_presents_its_newest_certificate(
    api: Live, authority: Authority
) -> None:

    trust = Trust(api.kubeconfig.with_name("apiserver.crt").read_bytes())
    connection = ClusterConnection(api.url, trust)
    connection.use_certificate(read_pem(authority.client("first")))
    client = RestClient(connection, "test")

    def who() -> str:
        answer = json.loads(client.request("POST", WHO, body={}))
        return str(answer["status"]["userInfo"]["username"])

    assert who() == "first"
    connection.use_certificate(read_pem(authority.client("second")))
    assert who() == "first"  # on the connection that is open
    client.reconnect()
    assert who() == "second"
    client.close()


def test_a_watch_goes_on_when_its_client_reconnects(api: Live, authority: Authority) -> None:
    trust = Trust(api.kubeconfig.with_name("apiserver.crt").read_bytes())
    connection = ClusterConnection(api.url, trust)
    connection.use_certificate(read_pem(authority.client("watcher", "system:masters")))
    client = RestClient(connection, "test")
    namespaces = "/api/v1/namespaces"
    with client.lines(namespaces, {"watch": "1", "timeoutSeconds": "30"}, 30) as lines:
        events = iter(lines)
        next(events)
        for name in ("first", "second", "third"):  # more than one pool is retired meanwhile
            client.reconnect()
            body = {"metadata": {"name": name}}
            client.request("POST", namespaces, body=body)
            while json.loads(next(events))["object"]["metadata"]["name"] != name:
                pass
    client.close()
