"""The compositions follow the specification, and kcm's rules for deployments."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).parents[3]
VARIABLE = re.compile(r"\$\{([A-Z_]+)([^}]*)\}")


@pytest.fixture(scope="module")
def compose() -> dict[str, Any]:
    loaded: dict[str, Any] = yaml.safe_load((ROOT / "docker-compose.yml").read_text())
    return loaded


def fits_the_specification(path: Path) -> bool:
    """Reports whether the compose specification's schema, which check-jsonschema has, accepts
    it.
    """
    command = [sys.executable, "-m", "check_jsonschema", "--builtin-schema", "vendor.compose-spec"]
    return subprocess.run([*command, str(path)], check=False).returncode == 0


@pytest.mark.parametrize("name", ["docker-compose.yml", "docker-compose.ha.yml"])
def test_the_file_fits_the_compose_specification(name: str, tmp_path: Path) -> None:
    path = tmp_path / name
    # The schema's checker does not know the tag, which the specification has for what is left out.
    path.write_text((ROOT / name).read_text().replace("ports: !reset []", "ports: []"))
    assert fits_the_specification(path)


@pytest.mark.parametrize(
    "damage",
    [
        {"services": {"redis": {"imagee": "redis"}}},
        {"services": {"redis": {"image": "redis", "healthcheck": {"interval": []}}}},
        {"service": {}},
    ],
)
def test_the_schema_refuses_what_the_specification_does_not_know(
    damage: dict[str, Any], tmp_path: Path
) -> None:
    path = tmp_path / "docker-compose.yml"
    path.write_text(yaml.safe_dump(damage))
    assert not fits_the_specification(path)


def test_every_service_is_there_with_a_health_check(compose: dict[str, Any]) -> None:
    assert set(compose["services"]) == {"redis", "worker", "apiserver", "beat", "flower", "nodes"}
    assert all(service["healthcheck"] for service in compose["services"].values())


def test_a_password_has_no_default_and_must_be_set(compose: dict[str, Any]) -> None:
    text = (ROOT / "docker-compose.yml").read_text()
    passwords = [(n, rest) for n, rest in VARIABLE.findall(text) if "PASSWORD" in n]
    off_without = {"KCM_ADMIN_PASSWORD", "KCM_REPLICA_PASSWORD", "KCM_SENTINEL_PASSWORD"}
    assert {(n, rest) for n, rest in passwords if n in off_without} == {
        (name, ":-") for name in off_without
    }
    passwords = [(n, rest) for n, rest in passwords if n not in off_without]
    assert {name for name, _ in passwords} == {
        "KCM_WORKER_PASSWORD",
        "KCM_INJECTOR_PASSWORD",
        "KCM_FLOWER_REDIS_PASSWORD",
        "KCM_FLOWER_PASSWORD",
    }
    assert all(rest.startswith(":?") for _, rest in passwords)


@pytest.mark.parametrize("file", ["docker-compose.yml", "docker-compose.ha.yml"])
def test_every_required_variable_is_in_the_example(file: str) -> None:
    text = (ROOT / file).read_text().replace("$${", "")  # those are the container's own
    example = (ROOT / "deploy" / "env.example").read_text()
    for name, _ in VARIABLE.findall(text):
        assert f"{name}=" in example, name


def test_only_pages_for_people_publish_a_port_and_only_on_loopback(compose: dict[str, Any]) -> None:
    ports = {n: s["ports"] for n, s in compose["services"].items() if "ports" in s}
    assert sorted(ports) == ["apiserver", "flower"]
    assert all(port.startswith("127.0.0.1:") for value in ports.values() for port in value)


def test_the_api_server_keeps_its_token_and_its_certificate(compose: dict[str, Any]) -> None:
    service = compose["services"]["apiserver"]
    assert service["volumes"] == ["apiserver-state:/var/lib/kcm"]
    assert service["tmpfs"] == ["/tmp"]


def test_workers_can_be_scaled(compose: dict[str, Any]) -> None:
    worker = compose["services"]["worker"]
    assert "container_name" not in worker
    assert "ports" not in worker


def test_each_process_waits_for_a_healthy_redis(compose: dict[str, Any]) -> None:
    for name in ("worker", "apiserver", "beat", "flower", "nodes"):
        assert compose["services"][name]["depends_on"]["redis"]["condition"] == "service_healthy"


def test_redis_keeps_its_data_and_refuses_to_evict(compose: dict[str, Any]) -> None:
    start = (ROOT / "deploy" / "redis" / "start.sh").read_text()
    assert "--appendonly yes" in start
    assert "--maxmemory-policy noeviction" in start
    assert "redis-data:/data" in compose["services"]["redis"]["volumes"]


def test_commands_are_those_of_kcm(compose: dict[str, Any]) -> None:
    from kcm.cli.main import COMMANDS

    known = {name for section in COMMANDS.values() for name in section}
    for name in ("worker", "apiserver", "beat", "flower", "nodes"):
        assert compose["services"][name]["command"][0] in known


def test_each_image_is_built_once_and_never_asked_from_a_registry(compose: dict[str, Any]) -> None:
    built = {n: s["image"] for n, s in compose["services"].items() if "build" in s}
    assert built == {"worker": "kcm:0.2.0", "redis": "kcm-redis:0.2.0"}
    policies = {n: s["pull_policy"] for n, s in compose["services"].items()}
    assert all(policies[name] == ("build" if name in built else "never") for name in policies)


def test_every_container_is_limited(compose: dict[str, Any]) -> None:
    for name, service in compose["services"].items():
        assert service["mem_limit"], name
        assert service["pids_limit"], name
        assert service["logging"]["options"]["max-size"], name


def test_secrets_stay_out_of_git_and_of_the_build() -> None:
    for ignored in (".gitignore", ".dockerignore"):
        lines = (ROOT / ignored).read_text().split()
        assert {".env", "kubeconfig"} <= {line.strip("/") for line in lines}, ignored


@pytest.fixture(scope="module")
def ha() -> dict[str, Any]:
    text = (ROOT / "docker-compose.ha.yml").read_text()
    loaded: dict[str, Any] = yaml.safe_load(text.replace("ports: !reset []", "ports: []"))
    return loaded


def test_with_several_of_each_the_load_balancer_alone_has_a_port_of_the_api(
    ha: dict[str, Any],
) -> None:
    ports = {name: service.get("ports") for name, service in ha["services"].items()}
    assert ports["apiserver"] == ports["apiserver-2"] == []
    assert ports["haproxy"] == ["${KCM_API_ADDRESS:-127.0.0.1}:${KCM_API_PORT:-8001}:8001"]


def test_what_a_service_is_comes_from_the_other_file(ha: dict[str, Any]) -> None:
    bases = {name: service.get("extends") for name, service in ha["services"].items()}
    alone = {name for name, base in bases.items() if base is None}
    assert alone == {"haproxy"}
    assert {base["file"] for base in bases.values() if base} == {"docker-compose.yml"}


def test_passwords_of_replicas_and_sentinels_must_be_set_there() -> None:
    text = (ROOT / "docker-compose.ha.yml").read_text()
    passwords = [(name, rest) for name, rest in VARIABLE.findall(text) if "PASSWORD" in name]
    assert {"KCM_REPLICA_PASSWORD", "KCM_SENTINEL_PASSWORD"} <= {name for name, _ in passwords}
    assert all(rest.startswith(":?") for _, rest in passwords)


def test_servers_of_redis_and_sentinels_have_addresses_of_their_own(ha: dict[str, Any]) -> None:
    addresses = [
        service["networks"]["default"]["ipv4_address"]
        for service in ha["services"].values()
        if "networks" in service
    ]
    assert len(set(addresses)) == len(addresses) == 6
    urls = [
        ha["services"]["flower"]["environment"]["KCM_REDIS_URL"],
        ha["x-kcm-env"]["KCM_REDIS_URL"],
    ]
    for address in addresses[3:]:
        assert all(f"{address}:26379" in url for url in urls)
