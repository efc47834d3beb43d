"""The images, and the composition of docker-compose.yml, for the tests of this folder."""

from __future__ import annotations

import secrets
import subprocess
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from kcm.testing.waiting import until
from tests.compose import images
from tests.compose.engine import Engine, NoEngineError, find

SERVICES = ("redis", "worker", "apiserver", "beat", "flower", "nodes")
PASSWORDS = (
    "KCM_WORKER_PASSWORD", "KCM_INJECTOR_PASSWORD", "KCM_FLOWER_REDIS_PASSWORD",
    "KCM_FLOWER_PASSWORD", "KCM_REPLICA_PASSWORD", "KCM_SENTINEL_PASSWORD",
)  # fmt: skip


@pytest.fixture(scope="session")
def passwords() -> dict[str, str]:
    return {name: secrets.token_hex(16) for name in PASSWORDS}


@pytest.fixture(scope="session")
def images_of(
    tmp_path_factory: pytest.TempPathFactory, passwords: dict[str, str]
) -> Iterator[Engine]:
    """Yields the engine of this machine, once it has the images."""
    folder = tmp_path_factory.mktemp("compose")
    try:
        engine = find(folder, passwords)
        images.build(engine, folder)
    except NoEngineError as error:
        pytest.skip(str(error))
    if engine.name == "podman":
        _network("add")
    yield engine
    if engine.name == "podman":
        _network("delete")


@pytest.fixture(scope="module")
def engine(images_of: Engine) -> Iterator[Engine]:
    """Yields the engine with docker-compose.yml running."""
    try:
        start(images_of)
        yield images_of
    finally:
        end(images_of, "-v")


def start(engine: Engine) -> None:
    """Starts everything, with three workers, and waits until it is healthy."""
    engine.compose("up", "-d", "--no-build", "--scale", "worker=3")
    for container in containers(engine):
        until(partial(engine.healthy, container), f"that {container} is healthy")


def end(engine: Engine, *flags: str) -> None:
    """Stops everything and removes it.

    The workers beyond the first are orphans to podman's compose, which knows only what the file
    says.
    """
    engine.compose("down", "--remove-orphans", *flags)
    left = engine.run(
        "ps", "-aq", "--filter", f"label=com.docker.compose.project={engine.project}"
    ).split()
    assert not left, f"still there: {left}"


def containers(engine: Engine) -> list[str]:
    """Returns the names of all containers."""
    workers = [engine.container("worker", number) for number in (1, 2, 3)]
    return [engine.container(name) for name in SERVICES if name != "worker"] + workers


def _network(verb: str) -> None:
    """Adds or deletes a network namespace that has only the containers' networks."""
    subprocess.run(["ip", "netns", verb, "kcm-compose"], check=True)
    if verb == "add":
        inside = ["nsenter", "--net=/run/netns/kcm-compose"]
        subprocess.run([*inside, "ip", "link", "set", "lo", "up"], check=True)
        forward = Path("/proc/sys/net/ipv4/ip_forward")
        subprocess.run([*inside, "sh", "-c", f"echo 1 > {forward}"], check=True)
