"""The programs of `kcm envtest assets`, as envtest uses them."""

from __future__ import annotations

import json
import socket
import ssl
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import psutil
import pytest

from kcm.testing.waiting import until
from tests.integration.testing.envtest_programs import TIMEOUT, Suite, find_port

NAMESPACES = "/api/v1/namespaces"
CONFIG = {"metadata": {"name": "kept"}, "data": {"a": "1"}}
POD = {
    "metadata": {"name": "one"},
    "spec": {
        "containers": [{"name": "main", "image": "x", "securityContext": {"privileged": True}}]
    },
}


@pytest.fixture
def suite(tmp_path: Path) -> Iterator[Suite]:
    one = Suite(tmp_path)
    yield one
    one.stop()
    one.temporary.rmdir()  # where nothing is left


def told_of(folder: Path) -> list[psutil.Process]:
    """Returns the processes that were told of a folder for temporary files."""
    told = []
    for process in psutil.process_iter():
        with suppress(psutil.Error):
            if process.environ().get("TMPDIR") == str(folder):
                told.append(process)
    return told


def left_in(folder: Path) -> list[str]:
    """Returns what is in a folder for temporary files, and the processes that were told of it."""
    return [str(left) for left in (*folder.iterdir(), *told_of(folder))]


def test_a_suite_has_an_empty_cluster_and_leaves_nothing(suite: Suite) -> None:
    suite.start()
    assert suite.ask(f"{NAMESPACES}/default")["status"] == {"phase": "Active"}
    titles = [" ".join(process.cmdline()) for process in told_of(suite.temporary)]
    assert [title.strip() for title in titles if title.startswith("kcm: ")] == [
        "kcm: kube-apiserver"
    ]
    assert suite.ask("/api/v1/nodes")["items"] == []
    assert suite.ask("/api/v1/serviceaccounts")["items"] == []
    assert suite.ask("/apis/storage.k8s.io/v1/storageclasses")["items"] == []
    assert suite.ask("/api/v1/services")["items"][0]["spec"]["clusterIP"] == "10.0.0.1"
    suite.ask(f"{NAMESPACES}/default/pods", "POST", POD)
    suite.ask(f"{NAMESPACES}/default/pods/one", "DELETE")
    assert suite.ask(f"{NAMESPACES}/default/pods")["items"] == []
    suite.ask(NAMESPACES, "POST", {"metadata": {"name": "gone"}})
    suite.ask(f"{NAMESPACES}/gone", "DELETE")
    assert suite.ask(f"{NAMESPACES}/gone")["status"] == {"phase": "Terminating"}
    token = suite.ask(f"{NAMESPACES}/default/serviceaccounts", "POST", {"metadata": {"name": "a"}})
    assert token["metadata"]["name"] == "a"
    suite.stop()
    assert left_in(suite.temporary) == []


def test_it_starts_again_on_the_same_ports_and_folder(suite: Suite) -> None:
    suite.start()
    suite.ask(f"{NAMESPACES}/default/configmaps", "POST", CONFIG)
    suite.stop()
    suite.start()
    assert suite.ask(f"{NAMESPACES}/default/configmaps/kept")["data"] == {"a": "1"}
    apiserver = suite.running.pop()
    apiserver.terminate()
    assert apiserver.wait(TIMEOUT) == 0
    assert apiserver.stderr is not None
    apiserver.stderr.close()
    suite.start_apiserver()
    assert suite.ask(f"{NAMESPACES}/default/configmaps/kept")["data"] == {"a": "1"}


def test_nothing_outlives_a_suite_that_is_killed(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "tests.integration.testing.envtest_programs", str(tmp_path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as suite:
        assert suite.stdout is not None
        temporary = Path(suite.stdout.readline().strip())
        assert left_in(temporary)
        suite.kill()
    until(lambda: not left_in(temporary), "the end of everything", TIMEOUT)
    temporary.rmdir()


def test_a_store_that_is_killed_takes_its_api_server_with_it(suite: Suite) -> None:
    suite.start()
    etcd, apiserver = suite.running
    etcd.kill()
    apiserver.wait(TIMEOUT)
    until(lambda: not left_in(suite.temporary), "the end of everything", TIMEOUT)


def test_controllers_run_if_the_environment_names_them(suite: Suite) -> None:
    suite.start(KCM_ENVTEST_CONTROLLERS="namespace,garbage-collector")
    suite.ask(NAMESPACES, "POST", {"metadata": {"name": "gone"}})
    suite.ask(f"{NAMESPACES}/gone/configmaps", "POST", CONFIG)
    suite.ask(f"{NAMESPACES}/gone", "DELETE")

    def is_gone() -> bool:
        return "gone" not in {one["metadata"]["name"] for one in suite.ask(NAMESPACES)["items"]}

    until(is_gone, "the end of the namespace", TIMEOUT)
    assert suite.ask("/api/v1/serviceaccounts")["items"] == []


def test_etcd_survives_what_is_no_request(suite: Suite) -> None:
    suite.start_etcd()
    for nonsense in (b"", b"\r\n\r\n", b"GET\r\n\r\n"):
        with socket.create_connection(("127.0.0.1", suite.etcd_port), TIMEOUT) as wire:
            wire.sendall(nonsense)
            wire.shutdown(socket.SHUT_WR)
            wire.makefile("rb").read()
    suite.start_apiserver()


@pytest.mark.parametrize(
    ("flag", "words"),
    [
        ("--oidc-issuer-url=https://a", "error: --oidc-issuer-url is not supported"),
        ("--enable-admission-plugins=EventRateLimit", "does not have the admission plugin"),
        ("--authorization-mode=Webhook", "error: --authorization-mode: 'Webhook'"),
    ],
)
def test_a_flag_that_cannot_be_followed_ends_the_program(
    suite: Suite, flag: str, words: str
) -> None:
    suite.start_etcd()
    process = suite.run_apiserver(flag)
    assert process.wait(TIMEOUT) == 1
    assert process.stderr is not None
    assert words in process.stderr.read()


POLICY = """
apiVersion: audit.k8s.io/v1
kind: Policy
rules:
- {level: None, nonResourceURLs: ["/healthz*"]}
- {level: RequestResponse, verbs: [create], omitManagedFields: true}
- {level: Metadata, resources: [{group: "", resources: [configmaps]}]}
"""


def test_audit_events_are_written_as_the_policy_says(suite: Suite, tmp_path: Path) -> None:
    policy, log = tmp_path / "policy.yaml", tmp_path / "audit.log"
    policy.write_text(POLICY)
    suite.start(f"--audit-policy-file={policy}", f"--audit-log-path={log}", "--audit-log-maxage=1")
    path = f"{NAMESPACES}/default/configmaps"
    suite.ask(path, "POST", CONFIG)
    suite.ask(f"{path}/kept")
    suite.ask(NAMESPACES)
    created, read = map(json.loads, log.read_text().splitlines())
    assert (created["level"], created["verb"], created["stage"]) == (
        "RequestResponse",
        "create",
        "ResponseComplete",
    )
    assert created["user"]["username"] == "admin"
    assert created["requestObject"] == CONFIG
    assert created["responseObject"]["data"] == CONFIG["data"]
    assert "managedFields" not in created["responseObject"]["metadata"]
    assert created["responseStatus"]["code"] == 201
    assert read["objectRef"] == {
        "resource": "configmaps",
        "namespace": "default",
        "name": "kept",
        "apiVersion": "v1",
    }
    assert "responseObject" not in read


def test_a_store_that_is_not_kcms_is_refused(suite: Suite) -> None:
    suite.start_etcd()
    suite.etcd_port = find_port()  # where nobody listens
    process = suite.run_apiserver()
    assert process.wait(TIMEOUT) == 1
    assert process.stderr is not None
    assert "error: [Errno 111] Connection refused" in process.stderr.read()


def test_a_client_of_another_authority_is_nobody(suite: Suite) -> None:
    suite.start()
    suite.admin = suite.certificates / "apiserver"  # signed by the authority of servers
    with pytest.raises((urllib.error.URLError, OSError)):
        suite.ask(NAMESPACES)


def test_a_server_leaves_its_own_certificate_in_an_empty_folder(
    suite: Suite, tmp_path: Path
) -> None:
    suite.start_etcd()
    made = tmp_path / "made"
    suite.run_apiserver(f"--cert-dir={made}", "--client-ca-file=")
    url = f"https://localhost:{suite.port}/livez"

    def is_trusted() -> bool:
        with suppress(OSError):
            trust = ssl.create_default_context(cafile=made / "apiserver.crt")
            with urllib.request.urlopen(url, context=trust, timeout=5) as response:
                return bool(response.status == 200)
        return False

    until(is_trusted, url, TIMEOUT)
    assert (made / "apiserver.key").stat().st_mode & 0o077 == 0
