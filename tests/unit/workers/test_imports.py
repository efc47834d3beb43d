from __future__ import annotations

import subprocess
import sys

import pytest

CONTROL_PLANE = (
    "kcm.manager",
    "kcm.controllers",
    "kcm.apiserver",
    "kcm.registry",
)


def run(program: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_a_kubelet_loads_no_control_plane() -> None:
    loaded = run("import sys, workers.kubelet; print(*sys.modules)").split()
    assert not {name for name in loaded if name.startswith(CONTROL_PLANE)}


def test_the_control_plane_loads_no_kubelet() -> None:
    loaded = run("import sys, workers.app, beat_schedule; print(*sys.modules)").split()
    assert not {name for name in loaded if name.startswith("kcm.kubelet.")}


@pytest.mark.parametrize(
    "first", ["", "import workers.app; ", "from workers.app import create_app; "]
)
def test_celery_finds_the_app_whatever_was_imported_before(first: str) -> None:
    output = run(f"{first}from celery.app.utils import find_app; print(find_app('workers').main)")
    assert output == "kcm"


def test_what_the_package_does_not_have_is_said_as_usual() -> None:
    import workers

    with pytest.raises(AttributeError, match="'workers' has no attribute 'nothing'"):
        workers.nothing  # noqa: B018 - it raises


def test_what_every_child_decodes_is_built_before_the_fork() -> None:
    output = run(
        "from types import SimpleNamespace\n"
        "from kcm.api.scheme import BUILT_IN\n"
        "from workers import signals\n"
        "from workers.app import create_app\n"
        "pod = BUILT_IN.lookup('pods').model\n"
        "before = pod.__pydantic_complete__\n"
        "signals._prepare('worker@here', SimpleNamespace(app=create_app()))\n"
        "print(before, pod.__pydantic_complete__)"
    )
    assert output.endswith("False True")
