from __future__ import annotations

import socket
from dataclasses import replace
from pathlib import Path
from typing import Any

import click
import pytest

from kcm import errors
from kcm.cli.main import main
from kcm.cli.up import demo
from kcm.cli.up.banner import banner
from kcm.cli.up.plan import (
    AccessOptions,
    RealNode,
    UpOptions,
    check_ports,
    choose_endpoint,
    machine_name,
    process_specs,
    with_nodes,
    with_real_node,
)
from kcm.reconcile.contract import Options
from kcm.settings import Settings

PORTS = ("redis_port", "flower_port", "health_port", "api_port")


def settings(tmp_path: Path, url: str = "") -> Settings:
    return Settings(state_dir=tmp_path, redis_url=url)


def test_each_process_has_its_name_log_and_environment(tmp_path: Path) -> None:
    options = UpOptions(workers=2, concurrency=3, pool="prefork", manager={"KCM_X": "1"})
    specs = {spec.name: spec for spec in process_specs(options, settings(tmp_path))}
    assert list(specs) == ["manager", "beat", "worker1", "worker2", "flower", "apiserver"]
    command = list(specs["worker2"].command)
    assert command[-6:] == ["-n", "worker2@%h", "-c", "3", "-P", "prefork"]
    assert "-E" in command
    assert specs["beat"].log == tmp_path / "log" / "beat.log"
    assert specs["flower"].env["KCM_X"] == "1"
    assert specs["flower"].env["KCM_FLOWER_PORT"] == "5555"


def test_a_port_of_0_leaves_a_process_out(tmp_path: Path) -> None:
    options = UpOptions(flower_port=0, api_port=0)
    names = [spec.name for spec in process_specs(options, settings(tmp_path))]
    assert names == ["beat", "worker"]


@pytest.mark.parametrize("name", PORTS)
def test_a_port_that_is_taken_is_named_with_its_flag(name: str) -> None:
    nothing: dict[str, Any] = dict.fromkeys(PORTS, 0)
    check_ports(UpOptions(**nothing))
    with socket.create_server(("127.0.0.1", 0)) as taken:
        options = UpOptions(**nothing | {name: taken.getsockname()[1]})
        with pytest.raises(errors.ConfigurationError, match=f"--{name.replace('_', '-')}$"):
            check_ports(options)


def test_a_manager_that_runs_elsewhere_is_left_out(tmp_path: Path) -> None:
    elsewhere = settings(tmp_path).model_copy(update={"worker_manager": False})
    assert process_specs(UpOptions(), elsewhere)[0].name == "beat"
    assert process_specs(UpOptions(), elsewhere)[1].env["KCM_WORKER_MANAGER"] == "false"


def test_on_another_api_server_workers_are_managers_too_and_run_syncs_in_threads(
    tmp_path: Path,
) -> None:
    elsewhere = {"KCM_KUBECONFIG": "in-cluster"}
    options = UpOptions(flower_port=0, api_port=0, manager=elsewhere)
    beat, worker = process_specs(options, settings(tmp_path))
    assert (beat.name, worker.name) == ("beat", "worker")
    assert list(worker.command)[-4:] == ["-c", "16", "-P", "threads"]
    assert worker.env["KCM_WORKER_MANAGER"] == "true"


def test_a_pool_that_is_asked_for_is_taken_on_another_api_server_too(tmp_path: Path) -> None:
    elsewhere = {"KCM_KUBECONFIG": "in-cluster"}
    options = UpOptions(flower_port=0, api_port=0, pool="prefork", manager=elsewhere)
    specs = process_specs(options, settings(tmp_path))
    assert [spec.name for spec in specs] == ["manager", "beat", "worker"]
    assert list(specs[-1].command)[-4:] == ["-c", "2", "-P", "prefork"]
    assert specs[-1].env["KCM_WORKER_MANAGER"] == "false"


@pytest.mark.parametrize(("pool", "concurrency"), [(None, "4"), ("solo", "4")])
def test_workers_with_syncs_in_their_own_process_are_managers_too(
    tmp_path: Path, pool: str | None, concurrency: str
) -> None:
    options = UpOptions(flower_port=0, api_port=0, nodes=0, pool=pool)
    beat, worker = process_specs(options, settings(tmp_path))
    assert (beat.name, worker.name) == ("beat", "worker")
    assert list(worker.command)[-4:] == ["-c", concurrency, "-P", pool or "threads"]
    assert worker.env["KCM_WORKER_MANAGER"] == "true"


def test_flags_about_access_reach_the_api_server(tmp_path: Path) -> None:
    access = AccessOptions(
        tmp_path / "users.csv", anonymous_auth=True, authorization_mode="AlwaysAllow"
    )
    specs = process_specs(UpOptions(access=access), settings(tmp_path))
    command = next(spec.command for spec in specs if spec.name == "apiserver")
    assert list(command)[-3:] == [
        "--authorization-mode=AlwaysAllow",
        f"--token-auth-file={tmp_path / 'users.csv'}",
        "--anonymous-auth",
    ]


def test_the_class_of_local_volumes_can_be_left_out(tmp_path: Path) -> None:
    for given in (True, False):
        specs = process_specs(UpOptions(local_storage_class=given), settings(tmp_path))
        [server] = [spec for spec in specs if spec.name == "apiserver"]
        assert ("--local-storage-class" in server.command) is given


def test_files_about_access_are_checked_before_anything_starts(tmp_path: Path) -> None:
    (tmp_path / "users.csv").write_text("half a line\n")
    with pytest.raises(errors.ConfigurationError, match="line 1"):
        AccessOptions(token_auth_file=tmp_path / "users.csv").check()
    with pytest.raises(errors.ConfigurationError, match="--client-ca-file"):
        AccessOptions(client_ca_file=tmp_path / "users.csv").check()


def test_the_banner_shows_addresses_and_no_redis_password(tmp_path: Path) -> None:
    url = "redis://me:secret@h:1/0"
    text = banner(settings(tmp_path, url), UpOptions(), "Redis 7", tmp_path / "flower-password")
    assert "secret" not in text
    for shown in ("redis://h:1/0", "http://127.0.0.1:5555/", ":10257/metrics", "get rs,pods -w"):
        assert shown in text


def test_the_banner_of_another_clusters_controllers_names_its_kubeconfig(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KCM_KUBECONFIG", "/etc/admin conf")
    text = banner(settings(tmp_path), UpOptions(), "Redis 7", tmp_path / "flower-password")
    assert "kubectl --kubeconfig '/etc/admin conf' get pods -w" in text
    assert "apply -f" not in text  # that would write to Redis


def test_the_banners_lines_name_the_state_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("KCM_FLOWER_PASSWORD", raising=False)
    text = banner(settings(tmp_path), UpOptions(), "Redis 7", tmp_path / "flower-password")
    assert text.count(f"KCM_STATE_DIR={tmp_path}") == 3


@pytest.mark.parametrize("name", main.list_commands(click.Context(main)))
def test_every_command_explains_itself(name: str) -> None:
    command = main.get_command(click.Context(main), name)
    assert command is not None
    assert command.help


def test_a_long_state_folder_is_refused_with_advice(tmp_path: Path) -> None:
    from kcm.cli.up.plan import redis_spec
    from kcm.redisio.embedded import EmbeddedServer

    with pytest.raises(errors.ConfigurationError, match="KCM_STATE_DIR"):
        redis_spec(EmbeddedServer(tmp_path / ("x" * 100), binary="none"))


def test_simulated_nodes_are_a_process_of_their_own(tmp_path: Path) -> None:
    options = with_nodes(UpOptions(), 7, None, short_times=False)
    nodes = process_specs(options, settings(tmp_path))[-1]
    assert nodes.name == "nodes"
    assert list(nodes.command)[-3:] == ["nodes", "--count=7", "--cloud-provider=external"]
    assert "7 simulated nodes" in banner(settings(tmp_path), options, "Redis 7", tmp_path / "p")


def test_without_simulated_nodes_there_is_no_process_for_them(tmp_path: Path) -> None:
    options = with_nodes(UpOptions(), 0, None, short_times=False)
    assert "nodes" not in [spec.name for spec in process_specs(options, settings(tmp_path))]


def test_short_times_make_leases_short_enough_for_the_grace_period() -> None:
    flags = with_nodes(UpOptions(), 5, None, short_times=True).node_flags
    assert "--node-lease-duration-seconds=8" in flags
    assert "--node-monitor-grace-period=10s" in flags


def test_programs_are_for_those_who_ask_for_them() -> None:
    given = [
        with_nodes(UpOptions(), 5, None, short_times=False, programs=programs).node_flags
        for programs in (False, True)
    ]
    assert given == [(), ("--programs",)]


def test_a_wrong_stages_file_is_refused_before_anything_starts(tmp_path: Path) -> None:
    file = tmp_path / "stages.yaml"
    file.write_text("kind: Stages\n")
    with pytest.raises(errors.ConfigurationError, match="apiVersion"):
        with_nodes(UpOptions(), 5, file, short_times=False)


def test_short_times_are_passed_on_as_far_as_the_manager_knows_their_flags(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class Monitor(Options):
        node_monitor_grace_period: str = ""
        node_monitor_period: str = ""

    class Known:
        options_type = Monitor

    monkeypatch.setattr(demo, "controller_types", lambda: [Known])
    assert demo.manager_flags(["--v=1"]) == [
        "--node-monitor-grace-period=10s",
        "--node-monitor-period=1s",
        "--v=1",
    ]


def test_the_real_node_takes_only_pods_that_are_meant_for_it(tmp_path: Path) -> None:
    options = replace(UpOptions(), real_node=RealNode("desk"))
    spec = process_specs(options, settings(tmp_path))[-1]
    assert spec.name == "kubelet"
    assert {
        "--node-name=desk",
        f"--root-dir={tmp_path / 'kubelet' / 'desk'}",
        "--node-labels=kcm.dev/process=true",
        "--register-with-taints=kcm.dev/process=true:NoSchedule",
        "--end-containers",
        "--eviction-hard=memory.available<100Mi",
    } < set(spec.command)
    text = banner(settings(tmp_path), options, "Redis 7", tmp_path / "p")
    assert "1 real node, desk" in text


def test_short_times_reach_the_real_node() -> None:
    node = with_real_node(UpOptions(), endpoint="", short_times=True).real_node
    assert node is not None
    assert node.flags == ("--node-lease-duration-seconds=8",)


@pytest.mark.parametrize(
    ("host", "name"),
    [
        ("Desk", "desk"),
        ("desk.example.com", "desk"),
        ("my_desk", "real"),
        ("", "real"),
        ("node-3", "real"),
        ("x" * 70, "real"),
    ],
)
def test_a_hosts_name_becomes_a_nodes(host: str, name: str) -> None:
    assert machine_name(host) == name


@pytest.mark.parametrize(
    "flags", [["--cloud-provider="], ["--controllers=*,-cloud-node-controller"]]
)
def test_nodes_wait_for_the_cloud_only_if_it_initializes_them(
    tmp_path: Path, flags: list[str]
) -> None:
    options = with_nodes(UpOptions(), 7, None, short_times=False).with_manager_flags(flags)
    nodes = process_specs(options, settings(tmp_path))[-1]
    assert list(nodes.command)[-2:] == ["nodes", "--count=7"]


def test_a_container_runtime_that_is_not_there_is_a_sentence() -> None:
    with pytest.raises(errors.ConfigurationError, match="there is no socket /no/such"):
        with_real_node(UpOptions(), endpoint="unix:///no/such.sock", short_times=False)


@pytest.mark.parametrize(
    ("runtime", "given", "chosen"),
    [
        (None, None, ""),
        ("process", None, ""),
        ("cri", None, "unix:///run/containerd/containerd.sock"),
        ("cri", "unix:///s", "unix:///s"),
        (None, "unix:///s", "unix:///s"),
    ],
)
def test_an_endpoint_means_containers(runtime: str | None, given: str | None, chosen: str) -> None:
    assert choose_endpoint(runtime, given, kubelet=True) == chosen
    assert choose_endpoint(None, None, kubelet=False) == ""


@pytest.mark.parametrize(
    ("runtime", "given", "kubelet"),
    [("process", "unix:///s", True), (None, "unix:///s", False), ("cri", None, False)],
)
def test_a_flag_of_the_runtime_without_effect_is_refused(
    runtime: str | None, given: str | None, kubelet: bool
) -> None:
    with pytest.raises(errors.ConfigurationError, match=r"^--.* has no effect with --"):
        choose_endpoint(runtime, given, kubelet=kubelet)


def test_a_node_of_containers_has_no_taint(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.geteuid", lambda: 0)
    path = tmp_path / "s"
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(path))
        node = with_real_node(UpOptions(), endpoint=f"unix://{path}", short_times=False).real_node
    assert node is not None
    arguments = node.arguments(Settings(state_dir=tmp_path))
    assert f"--container-runtime-endpoint=unix://{path}" in arguments
    assert "--node-labels=kcm.dev/containers=true" in arguments
    assert not any(argument.startswith("--register-with-taints") for argument in arguments)
