from __future__ import annotations

from typing import Any

import pytest

from kcm.apimachinery.durations import FOREVER
from tests.unit.simulation.programs.running import Objects, Running, mounted, run

IMAGE = "registry.k8s.io/e2e-test-images/agnhost:2.56"
CONF = {"configMap": {"name": "conf", "defaultMode": 0o400}}
MEMORY = {"emptyDir": {"medium": "Memory"}}
NEW = "mount-tester new file"


def mounttest(
    *flags: str, volume: dict[str, Any], objects: Objects | None = None, **fields: Any
) -> Running:
    return run(
        args=["mounttest", *flags], objects=objects, image=IMAGE, **mounted(volume), **fields
    )


def objects() -> Objects:
    return Objects({"conf": {"a": "one"}})


def test_the_image_runs_its_entrypoint() -> None:
    paused = run(image=IMAGE)
    assert (paused.lines, paused.attempt.ends) == (["Paused"], FOREVER)
    tested = run(image=f"{IMAGE}@sha256:0", args=["entrypoint-tester", "a", "b c"])
    assert tested.lines == ["[/agnhost entrypoint-tester a b c]"]
    assert run("/agnhost-2", image=IMAGE, args=["entrypoint-tester"]).lines == [
        "[/agnhost-2 entrypoint-tester]"
    ]
    assert run(image="registry.k8s.io/pause:3.10").attempt.ends == FOREVER


@pytest.mark.parametrize("args", [["netexec"], ["mounttest", "--file_x=1"], ["mounttest", "a"],
                                  ["mounttest", "--retry_time=x"]])  # fmt: skip
def test_other_programs_are_not_understood(args: list[str]) -> None:
    assert not run(image=IMAGE, args=args).is_program


def test_images_that_are_not_known_run_no_program() -> None:
    assert not run(args=["echo", "a"], image="nginx").is_program
    assert run(image="busybox").ended == 0
    assert run(args=["echo", "a"], image="busybox").lines == ["a"]


def test_mounttest_tells_modes_and_contents() -> None:
    flags = ("--file_content=/data/a", "--file_mode=/data/a", "--file_perm=/data/a")
    running = mounttest(*flags, volume=CONF, objects=objects())
    assert running.lines == [
        'mode of file "/data/a": -r--------',
        'perms of file "/data/a": -r--------',
        'content of file "/data/a": one',
    ]
    assert running.attempt.code == 0


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("0644", "-rw-r--r--"),
        ("0777", "-rwxrwxrwx"),
        ("0666", "-rw-rw-rw-"),
        ("0660", "-rw-rw----"),
    ],
)
def test_mounttest_writes_files(name: str, shown: str) -> None:
    flags = ("--fs_type=/data", f"--new_file_{name}=/data/f", "--file_perm=/data/f",
             "--file_owner=/data/f")  # fmt: skip
    running = mounttest(*flags, volume=MEMORY, securityContext={"runAsUser": 1001})
    assert running.lines == [
        'mount type of "/data": tmpfs',
        f'content of file "/data/f": {NEW}',
        "",
        f'perms of file "/data/f": {shown}',
        'owner UID of "/data/f": 1001',
        'owner GID of "/data/f": 0',
    ]


def test_everybody_may_write_to_an_empty_dir() -> None:
    running = mounttest("--file_mode=/data", "--file_perm=/data", volume=MEMORY)
    assert running.lines == [
        'mode of file "/data": drwxrwxrwx',
        'perms of file "/data": -rwxrwxrwx',
    ]


@pytest.mark.parametrize(
    ("flag", "line"),
    [
        ("--file_content=/data/b",
         'error reading file content for "/data/b": open /data/b: no such file or directory'),
        ("--file_mode=/data/b",
         'error from Stat("/data/b"): stat /data/b: no such file or directory'),
        ("--new_file_0644=/data/b",
         'error writing new file "/data/b": open /data/b: read-only file system'),
    ],
)  # fmt: skip
def test_what_fails_makes_mounttest_fail(flag: str, line: str) -> None:
    running = mounttest(flag, volume=CONF, objects=objects())
    assert (running.lines, running.attempt.code) == ([line], 1)


def test_mounttest_sees_changes_and_ends_after_its_time() -> None:
    given = objects()
    flags = (
        "--break_on_expected_content=false",
        "--retry_time=5",
        "--file_content_in_loop=/data/a",
    )
    running = mounttest(*flags, volume=CONF, objects=given)
    given.config_maps["conf"] = {"b": "two"}
    running.go(3)
    given.config_maps["conf"] = {"a": "three"}
    running.go(100)
    assert running.timed == [
        (0, 'content of file "/data/a": one'),
        (2, "Error reading file /data/a: open /data/a: no such file or directory, retrying"),
        (4, 'content of file "/data/a": three'),
    ]
    assert (running.ended, running.attempt.code) == (6, 0)


def test_mounttest_may_end_with_the_expected_content() -> None:
    given = Objects({"conf": {"a": f"{NEW}\n"}})
    running = mounttest("--file_content_in_loop=/data/a", volume=CONF, objects=given)
    assert (running.ended, running.attempt.code) == (0, 0)
    assert running.lines == [f'content of file "/data/a": {NEW}', ""]


def test_etc_hosts_are_shown() -> None:
    assert "10.0.0.1\tp" in run(image=IMAGE, args=["etc-hosts"]).lines
