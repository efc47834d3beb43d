"""docker-compose.ha.yml on a real engine: one of each goes, and the rest goes on."""

from __future__ import annotations

import json
import shutil
import threading
from collections.abc import Iterator
from functools import partial
from itertools import count
from pathlib import Path

import pytest

from kcm.testing.waiting import until
from tests.compose.conftest import end
from tests.compose.engine import Engine

pytestmark = [pytest.mark.compose, pytest.mark.timeout(900)]

SERVICES = (
    "redis", "redis-2", "redis-3", "sentinel", "sentinel-2", "sentinel-3", "apiserver",
    "apiserver-2", "haproxy", "flower", "nodes",
)  # fmt: skip
CONTAINERS = [*((name, 1) for name in SERVICES)] + [
    (name, number) for name in ("worker", "beat") for number in (1, 2)
]
_NAMES = count()


@pytest.fixture(scope="module")
def ha(images_of: Engine) -> Iterator[Engine]:
    if shutil.which("kubectl") is None:
        pytest.skip("kubectl is not here")
    engine = images_of.of("docker-compose.ha.yml", "kcm-ha")
    try:
        engine.compose("up", "-d", "--no-build")
        wait_until_healthy(engine)
        yield engine
    finally:
        end(engine, "-v")


@pytest.fixture(scope="module")
def kubeconfig(ha: Engine, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("ha") / "kubeconfig"
    ha.run("cp", f"{ha.container('apiserver')}:/var/lib/kcm/kubeconfig", str(path))
    assert "server: https://127.0.0.1:8001" in path.read_text()
    return path


def wait_until_healthy(engine: Engine) -> None:
    for name, number in CONTAINERS:
        container = engine.container(name, number)
        until(partial(engine.healthy, container), f"that {container} is healthy")


def kubectl(engine: Engine, kubeconfig: Path, *args: str) -> str:
    """Runs kubectl where the load balancer's port is."""
    return engine.here("kubectl", "--kubeconfig", str(kubeconfig), *args)


def can_write(engine: Engine, kubeconfig: Path, made: list[str]) -> bool:
    """Creates a ConfigMap, whose name is added to `made` if that succeeds."""
    name = f"written-{next(_NAMES)}"
    try:
        kubectl(engine, kubeconfig, "create", "configmap", name)
    except AssertionError:
        return False
    made.append(name)
    return True


def find_master(engine: Engine, passwords: dict[str, str]) -> str:
    """Returns the service of the Redis that a sentinel says is the master."""
    answer = engine.run(
        "exec", "-e", f"REDISCLI_AUTH={passwords['KCM_WORKER_PASSWORD']}",
        engine.container("sentinel-2"), "redis-cli", "-p", "26379", "--user", "worker",
        "--no-auth-warning", "SENTINEL", "get-master-addr-by-name", "kcm",
    )  # fmt: skip
    last = answer.split()[0].rpartition(".")[2]
    return {"11": "redis", "12": "redis-2", "13": "redis-3"}[last]


def revive(engine: Engine, service: str) -> None:
    """Starts what was killed: podman leaves that alone, Docker does so by itself."""
    if engine.name == "podman":
        engine.run("start", engine.container(service))


def test_writes_go_on_without_the_master_and_none_is_lost(
    ha: Engine, kubeconfig: Path, passwords: dict[str, str]
) -> None:
    made: list[str] = []
    for _ in range(20):
        until(lambda: can_write(ha, kubeconfig, made), "a write")
    former = find_master(ha, passwords)
    ha.run("kill", "--signal", "KILL", ha.container(former))
    until(lambda: find_master(ha, passwords) != former, "another master")
    until(lambda: can_write(ha, kubeconfig, made), "a write to the new master")
    revive(ha, former)
    wait_until_healthy(ha)
    there = json.loads(kubectl(ha, kubeconfig, "get", "configmaps", "-o", "json"))["items"]
    assert set(made) <= {item["metadata"]["name"] for item in there}


def test_an_api_server_that_is_killed_is_not_missed(ha: Engine, kubeconfig: Path) -> None:
    ha.run("kill", "--signal", "KILL", ha.container("apiserver"))
    until(lambda: can_write(ha, kubeconfig, []), "a write by the other one")
    revive(ha, "apiserver")
    wait_until_healthy(ha)


def test_no_request_fails_when_an_api_server_is_stopped(ha: Engine, kubeconfig: Path) -> None:
    """It fails /readyz for five seconds before it closes its port."""
    stopping = threading.Thread(target=ha.run, args=("stop", ha.container("apiserver-2")))
    stopping.start()
    results = []
    while stopping.is_alive():
        results.append(can_write(ha, kubeconfig, []))
    assert results
    assert all(results)
    ha.run("start", ha.container("apiserver-2"))
    wait_until_healthy(ha)


def test_all_of_it_comes_back_with_its_objects(
    ha: Engine, kubeconfig: Path, passwords: dict[str, str]
) -> None:
    """Also after a failover: each Redis asks the sentinels whom to follow, which remember."""
    made: list[str] = []
    until(lambda: can_write(ha, kubeconfig, made), "a write")
    master = find_master(ha, passwords)
    end(ha)
    ha.compose("up", "-d", "--no-build")
    wait_until_healthy(ha)
    assert find_master(ha, passwords) == master
    assert made[0] in kubectl(ha, kubeconfig, "get", "configmaps", "-o", "name")
