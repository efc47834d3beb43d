"""docker-compose.yml on a real engine, as its users run it."""

from __future__ import annotations

import json
from functools import partial

import pytest

from kcm.testing.waiting import until
from tests.compose.conftest import SERVICES, containers, end, start
from tests.compose.engine import Engine
from tests.signing_requests import build_pem_request, encode

pytestmark = [pytest.mark.compose, pytest.mark.timeout(900)]

SETS = 3
SET = """\
apiVersion: apps/v1
kind: ReplicaSet
metadata: {{name: set-{number}}}
spec:
  replicas: 10
  selector: {{matchLabels: {{set: s{number}}}}}
  template:
    metadata: {{labels: {{set: s{number}}}}}
    spec: {{containers: [{{name: main, image: "nginx:1.27"}}]}}
"""

# Requested by a bootstrap token's user, approved by the role that the API server binds, and signed.
_MACHINE = build_pem_request("system:node:machine", ["system:nodes"])
SIGNING_REQUEST = f"""
apiVersion: certificates.k8s.io/v1
kind: CertificateSigningRequest
metadata: {{name: machine}}
spec:
  request: {encode(_MACHINE)}
  signerName: kubernetes.io/kube-apiserver-client-kubelet
  usages: [digital signature, client auth]
  username: system:bootstrap:07401b
  groups: [system:bootstrappers, "system:bootstrappers:kcm:default-node-token"]
"""


def kcm(engine: Engine, *args: str, text: str = "") -> str:
    """A command of kcm inside a worker's container."""
    return engine.run("exec", "-i", engine.container("worker"), "kcm", *args, text=text)


def count_running_pods(engine: Engine) -> int:
    """How many pods of the test run, and that there are not more."""
    pods = json.loads(kcm(engine, "get", "pods", "-o", "json"))["items"]
    assert len(pods) <= 10 * SETS, "there must never be too many"
    return sum(pod["status"]["phase"] == "Running" for pod in pods)


def names(engine: Engine) -> set[str]:
    return set(kcm(engine, "get", "pods", "-o", "name").split())


@pytest.fixture(scope="module")
def pods(engine: Engine) -> set[str]:
    """The names of thirty running pods."""
    for number in range(SETS):
        kcm(engine, "apply", "-f", "-", text=SET.format(number=number))
    until(lambda: count_running_pods(engine) == 10 * SETS, "all pods")
    return names(engine)


def test_four_services_share_one_image_and_no_registry_is_asked(engine: Engine) -> None:
    images = {engine.run("inspect", "-f", "{{.Image}}", name) for name in containers(engine)}
    assert len(images) == 2, "kcm's and redis'"


@pytest.mark.parametrize("service", SERVICES)
def test_a_container_that_is_killed_comes_back_with_all_pods(
    engine: Engine, pods: set[str], service: str
) -> None:
    engine.run("kill", "--signal", "KILL", engine.container(service))
    if engine.name == "podman":
        # Docker starts it again by itself; podman leaves what was killed by its user alone.
        engine.run("start", engine.container(service))
    for container in containers(engine):
        until(partial(engine.healthy, container), f"that {container} is healthy")
    until(lambda: count_running_pods(engine) == 10 * SETS, "all pods")
    assert names(engine) == pods


@pytest.mark.parametrize("service", SERVICES)
def test_a_container_that_is_restarted_finds_all_pods(
    engine: Engine, pods: set[str], service: str
) -> None:
    engine.run("restart", engine.container(service))
    until(lambda: engine.healthy(engine.container(service)), f"that {service} is healthy")
    until(lambda: count_running_pods(engine) == 10 * SETS, "all pods")
    assert names(engine) == pods


def test_down_and_up_keeps_the_objects(engine: Engine, pods: set[str]) -> None:
    end(engine)
    start(engine)
    until(lambda: count_running_pods(engine) == 10 * SETS, "all pods")
    assert names(engine) == pods


def test_tokens_and_certificates_are_signed_and_machines_can_join(
    engine: Engine, pods: set[str]
) -> None:
    def has_authority() -> bool:
        return "kube-root-ca.crt" in kcm(engine, "get", "configmaps", "-o", "name")

    until(has_authority, "the ConfigMap with the API server's certificate")
    kcm(engine, "apply", "-f", "-", text=SIGNING_REQUEST)
    until(
        lambda: "certificate:" in kcm(engine, "get", "csr", "machine", "-o", "yaml"),
        "the certificate of a machine",
    )
    command = ["kcm", "token", "create", "--print-join-command", "--server", "https://h:8001"]
    lines = engine.run("exec", engine.container("apiserver"), *command)
    assert "--client-ca-file client-ca.crt" in lines


def test_the_api_server_stops_with_success(engine: Engine) -> None:
    name = engine.container("apiserver")
    engine.run("stop", name)
    assert engine.run("inspect", "-f", "{{.State.ExitCode}}", name).strip() == "0"
    engine.run("start", name)
    until(lambda: engine.healthy(name), "that it is healthy again")


def test_other_containers_trust_the_api_server_by_its_name(engine: Engine) -> None:
    certificate = engine.run(
        "exec", engine.container("apiserver"), "cat", "/var/lib/kcm/apiserver.crt"
    )
    program = (
        "import ssl, sys, urllib.request; "
        "trust = ssl.create_default_context(cadata=sys.stdin.read()); "
        "print(urllib.request.urlopen('https://apiserver:8001/livez', context=trust).read())"
    )
    worker = engine.container("worker")
    assert "ok" in engine.run("exec", "-i", worker, "python", "-c", program, text=certificate)


def test_flower_asks_for_a_login_for_its_metrics_too(
    engine: Engine, passwords: dict[str, str]
) -> None:
    def status(*options: str) -> str:
        page = "http://127.0.0.1:5555/metrics"
        return engine.here("curl", "-s", "-o", "/dev/null", "-w", "%{http_code}", *options, page)

    assert status() == "401"
    assert status("-u", f"kcm:{passwords['KCM_FLOWER_PASSWORD']}") == "200"


@pytest.mark.parametrize(
    ("user", "command", "allowed"),
    [
        ("injector", ("XADD", "kcm:events", "*", "type", "APPLY", "object", "{}"), True),
        ("injector", ("XRANGE", "kcm:events", "-", "+"), False),
        ("injector", ("SET", "kcm:x", "1"), False),
        ("flower", ("HGETALL", "kcm:meta"), False),
        ("flower", ("LLEN", "kcm:celery:core"), True),
        ("worker", ("SET", "other", "1"), False),
        ("worker", ("FLUSHALL",), False),
        ("worker", ("CONFIG", "GET", "*"), False),
        ("default", ("PING",), False),
    ],
)
def test_each_user_of_redis_may_do_its_part_and_no_more(
    engine: Engine, passwords: dict[str, str], user: str, command: tuple[str, ...], allowed: bool
) -> None:
    words = {
        "worker": passwords["KCM_WORKER_PASSWORD"],
        "injector": passwords["KCM_INJECTOR_PASSWORD"],
        "flower": passwords["KCM_FLOWER_REDIS_PASSWORD"],
        "default": "",
    }
    answer = engine.run(
        "exec", "-e", f"REDISCLI_AUTH={words[user]}", engine.container("redis"), "redis-cli",
        "--user", user, "--no-auth-warning", *command, check=False,
    )  # fmt: skip
    refused = any(word in answer for word in ("NOPERM", "NOAUTH", "WRONGPASS"))
    assert refused is not allowed, answer
