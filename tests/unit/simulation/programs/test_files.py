from __future__ import annotations

from typing import Any

import pytest

from kcm.apimachinery.durations import FOREVER
from kcm.simulation.programs.files import MOST_BYTES, MOST_FILES
from tests.unit.simulation.life import pod
from tests.unit.simulation.programs.running import Objects, Running, mounted, run, shell

OBJECTS = Objects(
    {"conf": {"mode": "fast", "long": "x" * 3000}}, {"password": {"user": "me", "word": "secret"}}
)
CONF = {"configMap": {"name": "conf"}}
EMPTY: dict[str, Any] = {"emptyDir": {}}
DOWNWARD = {
    "downwardAPI": {
        "items": [
            {"path": "name", "fieldRef": {"fieldPath": "metadata.name"}},
            {
                "path": "cpu",
                "resourceFieldRef": {"containerName": "main", "resource": "limits.cpu"},
            },
        ]
    }
}
PROJECTED = {
    "projected": {
        "sources": [
            {"configMap": {"name": "conf", "items": [{"key": "mode", "path": "a/mode"}]}},
            {"secret": {"name": "password"}},
        ]
    }
}


@pytest.mark.parametrize(
    ("volume", "path", "content"),
    [
        (CONF, "/data/mode", "fast"),
        ({"secret": {"secretName": "password"}}, "/data/word", "secret"),
        (DOWNWARD, "/data/name", "p"),
        (DOWNWARD, "/data/cpu", "2"),
        (PROJECTED, "/data/a/mode", "fast"),
        (PROJECTED, "/data/../data/./word", "secret"),
    ],
)
def test_volumes_of_objects_are_read(volume: dict[str, Any], path: str, content: str) -> None:
    limits = {"resources": {"limits": {"cpu": "2"}}}
    assert shell(f"cat {path}", OBJECTS, **limits, **mounted(volume)).lines == [content]


def test_a_part_of_a_volume_is_mounted_at_a_file() -> None:
    fields = mounted(CONF, "/etc/app.conf", subPath="mode")
    assert shell("cat /etc/app.conf", OBJECTS, **fields).lines == ["fast"]
    fields = mounted(CONF, "/etc/app.conf", subPathExpr="$(WHICH)")
    env = [{"name": "WHICH", "value": "mode"}]
    assert shell("cat /etc/app.conf", OBJECTS, env=env, **fields).lines == ["fast"]


@pytest.mark.parametrize("which", ["../mode", "/mode"])
def test_a_path_that_leads_out_of_a_volume_keeps_a_container_from_starting(which: str) -> None:
    env = [{"name": "WHICH", "value": which}]
    running = shell("true", OBJECTS, env=env, **mounted(CONF, subPathExpr="$(WHICH)"))
    assert running.why == f'failed to prepare subPath "{which}"'


@pytest.mark.parametrize(
    ("script", "message"),
    [
        ("cat /data/none", "cat: can't open '/data/none': No such file or directory"),
        ("cat /data", "cat: read error: Is a directory"),
        ("echo a > /data/mode", "/bin/sh: can't create /data/mode: Read-only file system"),
        ("touch /data/new", "touch: /data/new: Read-only file system"),
    ],
)
def test_what_fails_says_why_and_fails_the_command(script: str, message: str) -> None:
    running = shell(script, OBJECTS, **mounted(CONF))
    assert (running.lines, running.attempt.code) == ([message], 1)


def test_a_missing_object_keeps_a_container_from_starting_unless_it_is_optional() -> None:
    gone = {"configMap": {"name": "gone"}}
    assert shell("true", **mounted(gone)).why == 'configmap "gone" not found'
    optional = {"configMap": {"name": "gone", "optional": True}}
    assert shell("cat /data/a", **mounted(optional)).attempt.code == 1
    assert shell("true", env=[{"name": "A", "valueFrom": {"configMapKeyRef": {
        "name": "gone", "key": "a"}}}]).why == 'configmap "gone" not found'  # fmt: skip


def test_volumes_follow_their_objects_and_keep_what_they_had_when_those_are_gone() -> None:
    objects = Objects({"conf": {"mode": "fast"}})
    running = shell("while true; do cat /data/mode; echo; sleep 2; done", objects, **mounted(CONF))
    objects.config_maps["conf"] = {"mode": "slow"}
    running.go(2)
    del objects.config_maps["conf"]
    running.go(4)
    assert running.lines == ["fast", "slow", "slow"]


def test_a_volume_costs_the_program_that_reads_a_part_of_it() -> None:
    objects = Objects({"conf": {"small": "a", "large": "x" * 1_000_000}})
    running = shell("while true; do cat /data/small; echo; sleep 2; done", objects, **mounted(CONF))
    for at in range(2, 100, 2):
        running.go(at)
    assert 5 < len(running.lines) < 10
    assert running.due == FOREVER


def test_objects_are_read_only_by_programs_that_need_them() -> None:
    objects = Objects({"conf": {"mode": "fast"}})
    fields = mounted({"projected": {"sources": [{"configMap": {"name": "conf"}}]}})
    assert shell("echo a", objects, **fields).lines == ["a"]
    assert shell("curl http://x", objects, **mounted(CONF)).why == ""
    assert objects.reads == 0


def test_an_empty_dir_is_shared_and_outlives_a_container() -> None:
    volume = {"name": "v", "emptyDir": {}}
    mounts: dict[str, Any] = {"volumeMounts": [{"name": "v", "mountPath": "/data"}]}
    second = {
        "name": "second",
        "image": "busybox",
        "command": ["cat", "/other/f"],
        "volumeMounts": [{"name": "v", "mountPath": "/other"}],
    }
    first = {"name": "main", "image": "busybox", "command": ["sh", "-c", "echo hi >> /data/f"]}
    fields = {"containers": [{**first, **mounts}, second], "volumes": [volume]}
    running = Running(pod(None, **fields))
    running.start(1)
    running.start(0, "second")
    assert running.lines == ["hi", "hi"]


def test_the_layer_of_a_container_goes_with_its_attempt() -> None:
    running = shell("touch /tmp/a; test -s /tmp/a; echo $?; echo x > /tmp/a")
    running.start(1)
    assert running.lines == ["1"]


@pytest.mark.parametrize("volume", [{"hostPath": {"path": "/etc"}},
                                    {"persistentVolumeClaim": {"claimName": "c"}}])  # fmt: skip
@pytest.mark.parametrize("script", ["cat /data/passwd", "echo a > /data/f", "test -f /data/f"])
def test_what_is_on_a_node_or_a_disk_is_not_known(volume: dict[str, Any], script: str) -> None:
    assert not shell(script, **mounted(volume)).is_program


@pytest.mark.parametrize(
    ("user", "script", "code"),
    [
        (0, "cat /data/mode", 0),
        (1000, "cat /data/mode", 1),
        (1000, "echo a > /file", 1),
        (1000, "echo a > /tmp/file", 0),
        (1000, "echo a > /dev/termination-log", 0),
    ],
)
def test_permissions_are_those_of_the_containers_user(user: int, script: str, code: int) -> None:
    volume = {"configMap": {"name": "conf", "defaultMode": 0o400}}
    running = shell(script, OBJECTS, securityContext={"runAsUser": user}, **mounted(volume))
    assert running.attempt.code == code


def test_the_group_of_a_pod_may_read_its_volumes() -> None:
    fields = mounted({"configMap": {"name": "conf", "defaultMode": 0o400}})
    fields["pod"] = {**dict(fields["pod"]), "securityContext": {"fsGroup": 5, "runAsUser": 1000}}
    assert shell("cat /data/mode", OBJECTS, **fields).lines == ["fast"]


def test_a_sealed_root_is_not_written() -> None:
    running = shell(
        "echo test > /file; sleep 240", securityContext={"readOnlyRootFilesystem": True}
    )
    assert running.lines == ["/bin/sh: can't create /file: Read-only file system"]
    assert running.due == 240


@pytest.mark.parametrize(
    ("script", "volume", "message"),
    [
        ("echo -n DONE > /dev/termination-log; exit 1", EMPTY, "DONE"),
        ("echo a > /dev/termination-log; echo b >> /dev/termination-log", EMPTY, "a\nb\n"),
        ("cat /data/long > /dev/termination-log; cat /data/long >> /dev/termination-log", CONF,
         "x" * 4096),
    ],
)  # fmt: skip
def test_the_termination_message_is_what_is_in_its_file(
    script: str, volume: dict[str, Any], message: str
) -> None:
    assert shell(script, OBJECTS, **mounted(volume)).attempt.message == message


@pytest.mark.parametrize(
    ("script", "policy", "message"),
    [
        ("echo -n DONE; false", "FallbackToLogsOnError", "DONE"),
        ("echo -n DONE; true", "FallbackToLogsOnError", ""),
        ("echo -n DONE; false", "File", ""),
        ("echo no; echo -n yes > /dev/termination-log; false", "FallbackToLogsOnError", "yes"),
        ("cat /data/long; false", "FallbackToLogsOnError", "x" * 2048),
    ],
)
def test_a_failed_container_without_a_message_says_the_end_of_its_log(
    script: str, policy: str, message: str
) -> None:
    running = shell(script, OBJECTS, terminationMessagePolicy=policy, **mounted(CONF))
    assert running.attempt.message == message


def test_a_message_may_be_at_another_path() -> None:
    running = shell("echo -n a > /dev/own; true", terminationMessagePath="/dev/own")
    assert running.attempt.message == "a"


def test_files_of_a_pod_are_bounded() -> None:
    script = "while true; do cat /data/long /data/long >> /tmp/f; done"
    assert not shell(script, OBJECTS, **mounted(CONF)).lines
    fill = " ".join(f"/data/{number}" for number in range(MOST_FILES + 1))
    running = run("touch", *fill.split(), **mounted(EMPTY))
    assert "No space left on device" in running.lines[-1]
    assert MOST_BYTES < 2**17


def test_hosts_are_those_of_the_pod() -> None:
    aliases = [{"ip": "10.9.8.7", "hostnames": ["foo", "bar"]}]
    running = shell("cat /etc/hosts", pod={"hostAliases": aliases})
    assert "10.9.8.7\tfoo\tbar" in running.lines
    assert "10.0.0.1\tp" in running.lines


def test_the_environment_is_that_of_the_kubelet() -> None:
    env = [
        {"name": "A", "value": "1"},
        {"name": "B", "value": "$(A)2"},
        {"name": "IP", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}},
        {"name": "HOST", "valueFrom": {"fieldRef": {"fieldPath": "status.hostIP"}}},
        {"name": "WORD", "valueFrom": {"secretKeyRef": {"name": "password", "key": "word"}}},
    ]
    sources = [{"configMapRef": {"name": "conf"}, "prefix": "C_"}]
    running = shell("env", OBJECTS, env=env, envFrom=sources)
    assert {"A=1", "B=12", "IP=10.0.0.1", "HOST=192.0.2.1", "WORD=secret", "C_mode=fast",
            "HOSTNAME=p", "HOME=/root"} <= set(running.lines)  # fmt: skip
