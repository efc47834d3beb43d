"""Servers of other APIs that misbehave, and APIs that change hands."""

from __future__ import annotations

import base64
import shutil
import socket
import tempfile
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

import pytest

from kcm.apiserver.aggregation.loop import WORKERS
from kcm.apiserver.http.limits import Limits
from kcm.redisio.embedded import EmbeddedServer
from kcm.testing.waiting import until
from tests.integration.apiserver import extension
from tests.integration.apiserver.authority import Authority
from tests.integration.apiserver.extension import (
    BASE,
    SERVICES,
    FrontProxy,
    api_service,
    condition,
    make_service,
    wait_for_reason,
)
from tests.integration.apiserver.serving import Live, live

NAME = "v1alpha1.fruits.example.com"
REQUEST_TIMEOUT = 3.0  # seconds
METRICS = "v1beta1.metrics.k8s.io"
NODES = "/apis/metrics.k8s.io/v1beta1/nodes"


@pytest.fixture(scope="module")
def proxy() -> Iterator[FrontProxy]:
    folder = Path(tempfile.mkdtemp(prefix="kcm-proxy-"))
    yield FrontProxy.make(folder)
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(scope="module")
def api(redis_server: EmbeddedServer, proxy: FrontProxy) -> Iterator[Live]:
    limits = Limits(request_timeout=REQUEST_TIMEOUT)
    options = proxy.options()
    with live(redis_server.url, proxy.folder, limits=limits, aggregation=options) as running:
        make_service(running, "fruits")
        yield running


@pytest.fixture
def serve(api: Live, proxy: FrontProxy) -> Iterator[Any]:
    """Returns a function that runs a server with flags, and makes its APIService."""
    with ExitStack() as stack:

        def start(*flags: str, bundle: str | None = None) -> int:
            port = stack.enter_context(extension.running(proxy, "fruits", *flags))
            wanted = proxy.bundle if bundle is None else bundle
            api.create(SERVICES, api_service("fruits", port, wanted))
            stack.callback(extension.delete, api, NAME)
            return port

        yield start


def others_are_answered(api: Live) -> bool:
    paths = ("/api/v1/namespaces/default", "/apis", "/openapi/v3")
    return all(api.client.get(path).status_code == 200 for path in paths)


@pytest.mark.parametrize(
    ("name", "port", "reason", "message"),
    [
        ("absent", 443, "ServiceNotFound", 'service/absent in "default" is not present'),
        ("other-port", 443, "ServicePortError",
         'service/other-port in "default" is not listening on port 443'),
        ("no-endpoints", 443, "EndpointsNotFound",
         'cannot find endpoints for service/no-endpoints in "default"'),
    ],
)  # fmt: skip
def test_a_service_that_leads_nowhere_is_named(
    api: Live, name: str, port: int, reason: str, message: str
) -> None:
    services = "/api/v1/namespaces/default/services"
    ports = [{"port": 80 if name == "other-port" else 443}]
    if name != "absent":
        api.create(services, {"metadata": {"name": name}, "spec": {"ports": ports}})
    api.create(SERVICES, api_service(name, port))
    found = wait_for_reason(api, NAME, reason)
    assert (found["status"], found["message"]) == ("False", message)
    refused = api.client.get(BASE)
    assert (refused.status_code, refused.text) == (503, "service unavailable\n")
    extension.delete(api, NAME)


def test_a_service_that_comes_later_is_seen_at_once(api: Live, proxy: FrontProxy) -> None:
    with extension.running(proxy, "late") as port:
        api.create(SERVICES, api_service("late", port, proxy.bundle))
        wait_for_reason(api, NAME, "ServiceNotFound")
        make_service(api, "late")
        wait_for_reason(api, NAME, "Passed")
    extension.delete(api, NAME)


def test_endpoints_that_come_and_go_are_seen_at_once(api: Live, proxy: FrontProxy) -> None:
    host, port = "127.64.0.77", 4443
    with extension.running(proxy, "pods", f"--host={host}", f"--port={port}"):
        ports = [{"port": 443, "targetPort": port}]
        services = "/api/v1/namespaces/default/services"
        api.create(services, {"metadata": {"name": "pods"}, "spec": {"ports": ports}})
        endpoints = "/api/v1/namespaces/default/endpoints"
        subset: dict[str, Any] = {"addresses": [{"ip": host}], "ports": [{"port": port}]}
        api.create(endpoints, {"metadata": {"name": "pods"}, "subsets": []})
        api.create(SERVICES, api_service("pods", 443, proxy.bundle))
        wait_for_reason(api, NAME, "MissingEndpoints")
        assert api.patch(f"{endpoints}/pods", {"subsets": [subset]}).status_code == 200
        wait_for_reason(api, NAME, "Passed")
        until(lambda: api.client.get(f"{BASE}/whoami").status_code == 200, "the proxy")
        assert api.patch(f"{endpoints}/pods", {"subsets": []}).status_code == 200
        wait_for_reason(api, NAME, "MissingEndpoints")
        until(lambda: api.client.get(BASE).status_code == 503, "the proxy")
    extension.delete(api, NAME)


def test_few_servers_are_asked_at_a_time(api: Live) -> None:
    names = [f"v1.g{number}.example.com" for number in range(3 * WORKERS)]
    with Silent() as silent:
        for name in names:
            group = name.removeprefix("v1.")
            api.create(SERVICES, api_service("fruits", silent.port, "", group, "v1"))
        until(lambda: len(silent.open) == WORKERS, "the checks")
        assert others_are_answered(api)
        assert len(silent.open) == WORKERS
        for name in names:
            extension.delete(api, name)
        silent.hang_up()


class Silent:
    """A server that accepts connections and says nothing."""

    def __init__(self) -> None:
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = int(self._listener.getsockname()[1])
        self.open: list[socket.socket] = []
        self._thread = threading.Thread(target=self._accept)

    def __enter__(self) -> Silent:
        self._thread.start()
        return self

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                self.open.append(self._listener.accept()[0])

    def hang_up(self) -> None:
        for connection in self.open:
            connection.close()

    def __exit__(self, *_: object) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self.hang_up()
        self._thread.join(10)


def test_nobody_listens(api: Live, serve: Any) -> None:
    port = api_port_of_nobody()
    api.create(SERVICES, api_service("fruits", port))
    found = wait_for_reason(api, NAME, "FailedDiscoveryCheck")
    url = f"https://localhost:{port}{BASE}"
    assert found["message"].startswith(f'failing or missing response from {url}: Get "{url}": dial')
    extension.delete(api, NAME)


def api_port_of_nobody() -> int:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return int(taken.getsockname()[1])


def test_a_server_that_redirects_is_not_followed(api: Live, serve: Any) -> None:
    port = serve("--mode=redirect")
    found = wait_for_reason(api, NAME, "FailedDiscoveryCheck")
    url = f"https://localhost:{port}{BASE}"
    assert found["message"] == (
        f"failing or missing response from {url}: bad status from {url}: 302"
    )


def test_a_redirect_is_not_passed_on(api: Live, serve: Any) -> None:
    serve("--mode=redirect", f"--healthy={BASE}")
    wait_for_reason(api, NAME, "Passed")
    until(lambda: api.client.get(f"{BASE}/whoami").status_code == 502, "the proxy")
    refused = api.client.get(f"{BASE}/whoami")
    assert refused.text == (
        "the backend attempted to redirect this request, which is not permitted\n"
    )


def test_a_server_that_never_answers_holds_up_nobody(api: Live, serve: Any) -> None:
    serve("--mode=hang", f"--healthy={BASE}")
    wait_for_reason(api, NAME, "Passed")
    until(lambda: api.client.get(BASE).status_code == 200, "the proxy")
    with ThreadPoolExecutor(40) as many:
        waiting = [many.submit(api.client.get, f"{BASE}/fruits") for _ in range(40)]
        assert others_are_answered(api)
        assert not all(one.done() for one in waiting), "they were answered after it"
        answers = [one.result() for one in waiting]
    assert {answer.status_code for answer in answers} == {504}
    assert answers[0].json()["reason"] == "Timeout"
    version = extension_version(api)
    assert version == {"version": "v1alpha1", "resources": [], "freshness": "Stale"}


def extension_version(api: Live) -> dict[str, Any]:
    """Returns the version of the other server as discovery shows it, once it does."""
    shown: list[dict[str, Any]] = []

    def is_shown() -> bool:
        shown[:] = list_versions(api)
        return bool(shown)

    until(is_shown, "the group in discovery")
    return shown[0]


def list_versions(api: Live) -> list[dict[str, Any]]:
    accept = {"accept": "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"}
    items = api.client.get("/apis", headers=accept).json()["items"]
    groups = [item for item in items if item["metadata"]["name"] == "fruits.example.com"]
    return [version for group in groups for version in group["versions"]]


@pytest.mark.parametrize("mode", ["rubbish", "huge"])
def test_rubbish_is_left_out_of_the_documents(api: Live, serve: Any, mode: str) -> None:
    serve(f"--mode={mode}")
    wait_for_reason(api, NAME, "Passed")
    assert others_are_answered(api)
    version = extension_version(api)
    assert (version["resources"], version["freshness"]) == ([], "Stale")
    assert "com.example.Fruit" not in api.get("/openapi/v2")["definitions"]


def test_a_server_of_the_old_forms_is_described_as_well(api: Live, serve: Any) -> None:
    serve("--legacy")
    until(lambda: extension_version(api)["freshness"] == "Current", "discovery")
    [fruits] = extension_version(api)["resources"]
    assert [sub["subresource"] for sub in fruits["subresources"]] == ["status"]
    place = f"apis{BASE[5:]}"
    until(lambda: place in api.get("/openapi/v3")["paths"], "OpenAPI")
    document = api.get(f"/openapi/v3{BASE}")
    schema = document["components"]["schemas"]["com.example.Fruit"]
    assert schema["properties"]["metadata"]["$ref"].startswith("#/components/schemas/")


def test_a_server_with_another_s_certificate_gets_no_request(
    api: Live, serve: Any, proxy: FrontProxy
) -> None:
    stranger = Authority(proxy.folder, "strangers")
    serve(bundle=base64.b64encode(stranger.path.read_bytes()).decode())
    wait_for_reason(api, NAME, "Passed")  # the check only asks whether somebody answers
    until(lambda: "certificate" in api.client.get(BASE).text, "the proxy")
    refused = api.client.get(BASE)
    assert refused.status_code == 503
    assert refused.text == (
        "error trying to reach service: tls: failed to verify certificate: x509: certificate "
        "signed by unknown authority\n"
    )


def test_a_bundle_without_certificates_is_reported(api: Live, serve: Any) -> None:
    serve(bundle="aGVsbG8=")
    wait_for_reason(api, NAME, "Passed")
    until(lambda: api.client.get(BASE).status_code == 500, "the proxy")
    assert api.client.get(BASE).text.startswith("unable to load root certificates")


def test_an_api_that_goes_leaves_no_trace(api: Live, serve: Any) -> None:
    serve()
    until(lambda: api.client.get(BASE).status_code == 200, "the proxy")
    extension.delete(api, NAME)
    assert api.client.get(BASE).status_code == 404
    assert "fruits.example.com" not in [group["name"] for group in api.get("/apis")["groups"]]
    api.create(SERVICES, api_service("fruits", 1))  # for the fixture to delete


def test_a_stranger_takes_the_metrics_over_and_gives_them_back(
    api: Live, proxy: FrontProxy
) -> None:
    assert api.get(NODES)["kind"] == "NodeMetricsList"
    flags = ("--group=metrics.k8s.io", "--version=v1beta1")
    with extension.running(proxy, "stranger", *flags) as port:
        make_service(api, "stranger")
        body = api_service("stranger", port, proxy.bundle, "metrics.k8s.io", "v1beta1")
        api.create(SERVICES, body)
        wait_for_reason(api, METRICS, "Passed")
        path = "/apis/metrics.k8s.io/v1beta1"
        until(lambda: api.client.get(f"{path}/whoami").status_code == 200, "the stranger")
        assert api.get(path)["resources"][0]["name"] == "fruits"
        assert api.client.get(NODES).json()["kind"] == "FruitList"
        extension.delete(api, METRICS)
    assert api.get(NODES)["kind"] == "NodeMetricsList"
    assert {one["name"] for one in api.get(path)["resources"]} == {"nodes", "pods"}


def test_the_core_group_and_that_of_api_services_are_never_given_away(api: Live) -> None:
    own = "v1.apiregistration.k8s.io"
    api.create(SERVICES, api_service("fruits", 1, "", "apiregistration.k8s.io", "v1"))
    service = {"namespace": "default", "name": "fruits", "port": 1}
    assert api.patch(f"{SERVICES}/v1.", {"spec": {"service": service}}).status_code == 200
    index = api.app._aggregation._index
    until(lambda: own in index._described, "the index")
    assert not {"", "apiregistration.k8s.io"} & {group for group, _ in index.all()}
    assert api.get("/api/v1/namespaces/default")["kind"] == "Namespace"
    api.patch(f"{SERVICES}/v1.", {"spec": {"service": None}})
    assert api.request("DELETE", f"{SERVICES}/{own}").status_code == 200


def test_a_built_in_version_can_be_given_away_until_the_next_start(api: Live) -> None:
    path = f"{SERVICES}/v1.events.k8s.io"
    service = {"namespace": "default", "name": "nobody", "port": 1}
    spec = {"service": service, "insecureSkipTLSVerify": True}
    assert api.patch(path, {"spec": spec}).status_code == 200
    until(lambda: api.client.get("/apis/events.k8s.io/v1/events").status_code == 503, "the change")
    assert condition(api, "v1.events.k8s.io")
    none = {"service": None, "insecureSkipTLSVerify": None}
    assert api.patch(path, {"spec": none}).status_code == 200
    until(lambda: api.client.get("/apis/events.k8s.io/v1/events").status_code == 200, "ours")
    wait_for_reason(api, "v1.events.k8s.io", "Local")
