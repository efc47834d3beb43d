"""Security contexts on a real node whose kubelet is root: what processes may and what is said."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kcm.api.core_v1 import Event, Pod
from kcm.kubelet.runtime.process.capabilities import DEFAULT, build_mask, read_available
from kcm.testing.waiting import until
from tests.integration.kubelet.node import EVENTS, RealNode, is_ready, shell, status, waits_for

pytestmark = [
    pytest.mark.skipif(
        os.geteuid() != 0, reason="only a kubelet that is root can give and take privileges"
    ),
    pytest.mark.skipif(
        not build_mask(["SETPCAP"]) & read_available(),
        reason="this machine's root cannot reduce capabilities",
    ),
]

USER = 612_001
LOOK = "grep -E 'NoNewPrivs|CapBnd|CapEff|CapInh|CapAmb' /proc/self/status"
WAIT = "trap 'exit 0' TERM; while :; do sleep 0.05; done"


@pytest.fixture(scope="module")
def node() -> Iterator[RealNode]:
    # A short path that all users can reach: sockets of containers are in it.
    folder = Path(tempfile.mkdtemp(prefix="kcm-node-"))
    folder.chmod(0o711)
    node = RealNode(folder, allowed_users=((USER, USER),))
    node.start()
    yield node
    node.close()
    shutil.rmtree(folder, ignore_errors=True)


def read_privileges(lines: list[str]) -> dict[str, int]:
    """Returns the sets of capabilities, and no_new_privs, from lines of /proc/PID/status."""
    return {name: int(value, 16) for name, value in (line.split(":\t") for line in lines)}


def list_events(node: RealNode, pod: Pod, reason: str) -> list[Event]:
    """Returns the pod's Events with that reason."""
    events = node.store.in_namespace(EVENTS, "default")
    return [
        event
        for event in events
        if isinstance(event, Event)
        and event.involved_object.uid == pod.uid
        and event.reason == reason
    ]


@pytest.mark.parametrize(
    ("context", "words"),
    [
        ({"runAsNonRoot": True}, "container has runAsNonRoot and image will run as root"),
        ({"runAsNonRoot": True, "runAsUser": 0}, "container's runAsUser breaks non-root policy"),
        ({"capabilities": {"add": ["NO_SUCH"]}}, "wants unknown capabilities: NO_SUCH"),
    ],
    ids=["its user", "its runAsUser", "capability"],
)
def test_what_the_node_must_not_or_cannot_do_is_a_config_error(
    node: RealNode, request: pytest.FixtureRequest, context: dict[str, Any], words: str
) -> None:
    name = f"refused-{request.node.callspec.id}".replace(" ", "-").lower()
    pod = node.run(name, shell("main", "id -u", securityContext=context))
    waiting = node.wait_until_pod(name, lambda pod: waits_for(pod) == "CreateContainerConfigError")
    state = status(waiting).state
    assert state is not None
    assert state.waiting is not None
    assert words in (state.waiting.message or "")
    until(lambda: any(words in (event.message or "") for event in list_events(node, pod, "Failed")))
    assert not node.log(pod, "main")
    node.delete_and_wait(name)


def test_a_container_has_the_capabilities_that_it_asks_for(node: RealNode) -> None:
    available = read_available()
    cases: dict[str, tuple[dict[str, Any], int]] = {
        "default": ({}, DEFAULT),
        "bind": ({"capabilities": {"drop": ["ALL"], "add": ["NET_BIND_SERVICE"]}}, 1 << 10),
        "admin": ({"capabilities": {"add": ["SYS_ADMIN"]}}, DEFAULT | 1 << 21),
        "privileged": ({"privileged": True}, available),
    }
    another = {"runAsNonRoot": True, "runAsUser": USER}
    pod = node.run(
        "capable",
        *(shell(name, LOOK, securityContext=context) for name, (context, _) in cases.items()),
        shell("another", LOOK, securityContext=another),
        restartPolicy="Never",
    )
    node.wait_until_pod("capable", lambda pod: pod.status.phase == "Succeeded")
    for name, (_, kept) in cases.items():
        sets = read_privileges(node.log(pod, name))
        assert sets["CapBnd"] == sets["CapEff"] == kept & available, name
        assert sets["CapInh"] == sets["CapAmb"] == sets["NoNewPrivs"] == 0, name
    sets = read_privileges(node.log(pod, "another"))
    assert sets["CapEff"] == sets["CapInh"] == sets["CapAmb"] == 0
    assert sets["CapBnd"] == DEFAULT & available


def test_everything_in_a_container_has_no_new_privileges(node: RealNode) -> None:
    context = {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}}
    pod = node.run(
        "confined",
        shell(
            "main",
            f"{LOOK}; {WAIT}",
            securityContext=context,
            lifecycle={"postStart": {"exec": {"command": ["sh", "-c", f"{LOOK} > hook"]}}},
            readinessProbe={
                "exec": {"command": ["sh", "-c", f"{LOOK} > probe"]},
                "periodSeconds": 1,
            },
        ),
    )
    node.wait_until_pod("confined", is_ready)
    assert node.process is not None
    runtime = node.process.kubelet.runtime
    (running,) = node.process.kubelet.runtime_manager.look_at(pod.uid or "").list_running()
    seen = {
        "main": node.log(pod, "main"),
        **{
            name: runtime.exec_sync(running.id, command, 10).stdout.decode().splitlines()
            for name, command in {
                "exec": ["sh", "-c", LOOK],
                "hook": ["cat", "hook"],
                "probe": ["cat", "probe"],
            }.items()
        },
    }
    nothing = {"CapInh": 0, "CapEff": 0, "CapBnd": 0, "CapAmb": 0, "NoNewPrivs": 1}
    assert {name: read_privileges(lines) for name, lines in seen.items()} == dict.fromkeys(
        seen, nothing
    )
    node.delete_and_wait("confined")


def test_what_processes_cannot_have_is_said_once_for_each_pod(node: RealNode) -> None:
    context = {"readOnlyRootFilesystem": True, "seccompProfile": {"type": "RuntimeDefault"}}
    names = ("first", "second")
    pod = node.run(
        "unenforced",
        *(shell(name, "exit 1", securityContext=context) for name in names),
        securityContext={"sysctls": [{"name": "net.core.somaxconn", "value": "1024"}]},
    )
    node.wait_until_pod(
        "unenforced",
        lambda pod: pod.status.container_statuses and status(pod, "second").restart_count,
    )
    until(lambda: list_events(node, pod, "SecurityNotEnforced"))
    (event,) = list_events(node, pod, "SecurityNotEnforced")
    assert event.count == 1
    assert (event.message or "").endswith(
        "does not enforce: sysctl net.core.somaxconn, readOnlyRootFilesystem, "
        "seccompProfile RuntimeDefault"
    )
    node.delete_and_wait("unenforced")


def test_a_node_that_is_strict_starts_no_container_without_its_profile(tmp_path: Path) -> None:
    strict = RealNode(tmp_path, unenforced_security="refuse")
    try:
        strict.start()
        profile = {"seccompProfile": {"type": "RuntimeDefault"}}
        pod = strict.run(
            "mixed", shell("main", "true", securityContext=profile), shell("free", "sleep 100")
        )
        strict.wait_until_pod("mixed", lambda pod: waits_for(pod) == "CreateContainerConfigError")
        until(lambda: "Started" in strict.reasons(pod), "the other container")
    finally:
        strict.close()
