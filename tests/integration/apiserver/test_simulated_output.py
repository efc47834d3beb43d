"""Logs of pods on simulated nodes, and attaching to them: there is no kubelet to ask."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import pytest

from kcm.api.simulated import SIMULATOR_LABEL
from kcm.simulation.programs.outputs import Output, write_outputs
from tests.integration.apiserver.kubectl import Kubectl, drop_complaints
from tests.integration.apiserver.serving import Live

NODE = "simulated-1"
LOG = "listening\nevery 0.5s: tick"
SIMULATION = "simulation.kcm.dev/"


@pytest.fixture(scope="module", autouse=True)
def node(api: Live) -> None:
    labels = {SIMULATOR_LABEL: "s"}
    api.create("/api/v1/nodes", {"metadata": {"name": NODE, "labels": labels}})


def start(api: Live, name: str, where: str, **annotations: str) -> str:
    """Creates a pod that runs, and returns its path."""
    given = {f"{SIMULATION}{key}": text for key, text in annotations.items()}
    spec = {"nodeName": NODE, "containers": [{"name": "main", "image": "i"}]}
    api.create(where, {"metadata": {"name": name, "annotations": given}, "spec": spec})
    change(api, f"{where}/{name}", {"running": {"startedAt": now()}})
    return f"{where}/{name}"


def now() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def change(api: Live, path: str, state: dict[str, Any]) -> None:
    status = {"name": "main", "image": "i", "imageID": "", "ready": True, "restartCount": 0}
    body = {"status": {"phase": "Running", "containerStatuses": [status | {"state": state}]}}
    answer = api.patch(f"{path}/status", body)
    assert answer.status_code == 200, answer.text


def end(api: Live, path: str) -> None:
    ended = {"exitCode": 0, "reason": "Completed", "startedAt": now(), "finishedAt": now()}
    change(api, path, {"terminated": ended})


def in_namespace(kubectl: Kubectl) -> str:
    return f"/api/v1/namespaces/{kubectl.namespace}/pods"


def run(kubectl: Kubectl, *args: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        kubectl.command(*args), env=kubectl.environment(), text=True, stdin=subprocess.PIPE,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip


def lines_until(process: subprocess.Popen[str], text: str) -> Iterator[str]:
    assert process.stdout is not None
    for line in process.stdout:
        yield line
        if text in line:
            return


def test_a_log_is_what_the_script_says_with_every_option(api: Live) -> None:
    pods = "/api/v1/namespaces/default/pods"
    path = start(api, "so-log", pods, log="one\ntwo\nafter 1h: never")
    whole = "container main started (simulated), attempt 0\none\ntwo\n"
    assert api.client.get(f"{path}/log").text == whole
    assert api.client.get(f"{path}/log", params={"tailLines": "1"}).text == "two\n"
    assert api.client.get(f"{path}/log", params={"limitBytes": "9"}).text == "container"
    assert api.client.get(f"{path}/log", params={"sinceTime": "2099-01-01T00:00:00Z"}).text == ""
    stamped = api.client.get(f"{path}/log", params={"timestamps": "true"}).text
    assert all(line[:2] == "20" for line in stamped.splitlines())
    refused = api.client.get(f"{path}/log", params={"previous": "true"})
    assert refused.status_code == 400
    assert 'previous terminated container "main" in pod "so-log" not found' in refused.text.replace(
        "\\", ""
    )


def test_a_followed_log_ends_with_its_container(api: Live, kubectl: Kubectl) -> None:
    path = start(api, "so-follow", in_namespace(kubectl), log=LOG)
    following = run(kubectl, "logs", "-f", "so-follow")
    first = list(lines_until(following, "tick"))
    assert first[1:] == ["listening\n", "tick\n"]
    end(api, path)
    rest, _ = following.communicate(timeout=30)
    assert rest.endswith("container main exited with code 0 (Completed)\n")


def test_the_log_of_a_program_is_what_it_has_written(api: Live, kubectl: Kubectl) -> None:
    path = start(api, "so-program", in_namespace(kubectl), log="not this")
    uid, begun = api.get(path)["metadata"]["uid"], time.time()

    def write(*lines: tuple[float, str]) -> None:
        given = [(begun + after, text) for after, text in lines]
        write_outputs(api.store.io, [Output(uid, "main", 0, given, is_first=not lines)])

    write()
    assert api.client.get(f"{path}/log").text == ""
    write((0, "one"), (0, "two"))
    assert api.client.get(f"{path}/log", params={"tailLines": "1"}).text == "two\n"
    following = run(kubectl, "logs", "-f", "so-program")
    assert list(lines_until(following, "two")) == ["one\n", "two\n"]
    write((0.001, "three"))  # of the time before it was asked for, and stored later
    end(api, path)
    assert following.communicate(timeout=30)[0] == "three\n"


@pytest.mark.parametrize("flags", [(), ("-it",)])
def test_who_attaches_reads_what_the_script_says(
    api: Live, kubectl: Kubectl, flags: tuple[str, ...]
) -> None:
    path = start(api, "so-attach", in_namespace(kubectl), log=LOG, attach="welcome")
    attached = run(kubectl, "attach", "so-attach", *flags)
    assert "welcome\n" in list(lines_until(attached, "tick"))
    end(api, path)
    rest, _ = attached.communicate("typed\n", timeout=30)
    assert "container main exited with code 0" in rest
    assert attached.returncode == 0
    assert "container not found" in kubectl.run_failing("attach", "so-attach")


def test_nothing_else_runs_there(api: Live, kubectl: Kubectl) -> None:
    start(api, "so-exec", in_namespace(kubectl))
    assert "no command runs there" in kubectl.run_failing("exec", "so-exec", "--", "ls")


def test_commands_write_what_the_script_says(api: Live, kubectl: Kubectl) -> None:
    script = """
    pg_isready => accepting connections
    cat /etc/* => one
    cat /etc/* => two
    psql * => exit 3: no such database
    """
    start(api, "so-run", in_namespace(kubectl), exec=script)
    assert kubectl("exec", "so-run", "--", "pg_isready") == "accepting connections\n"
    assert kubectl("exec", "so-run", "--", "cat", "/etc/hosts") == "one\ntwo\n"
    failed = run(kubectl, "exec", "so-run", "--", "psql", "-l")
    told = drop_complaints(failed.communicate(timeout=30)[1])
    assert told.splitlines()[0] == "no such database"
    assert failed.returncode == 3
    assert "no answer to this" in kubectl.run_failing("exec", "so-run", "--", "ls")
