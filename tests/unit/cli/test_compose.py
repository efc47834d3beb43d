"""docker-compose.yml follows the specification, and kcm's rules for deployments."""

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


def test_the_file_fits_the_compose_specification() -> None:
    assert fits_the_specification(ROOT / "docker-compose.yml")


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


def test_every_required_variable_is_in_the_example(compose: dict[str, Any]) -> None:
    text = (ROOT / "docker-compose.yml").read_text()
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
