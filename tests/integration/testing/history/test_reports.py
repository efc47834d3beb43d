"""What the pytest plugin reports of a failed test, as a project of its own sees it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

TESTS = """
import pytest

CONFIG = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "mine"}}
SECRET = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"},
          "stringData": {"password": "s3cr3t"}}

def read_password(cp, namespace):
    return len(cp.get("secret/s", namespace)["data"])

def test_passes(kcm, kcm_namespace):
    kcm.apply({**CONFIG, "metadata": {"name": "of-another-test"}}, kcm_namespace)

def test_fails(kcm, kcm_namespace):
    kcm.apply(SECRET, kcm_namespace)
    kcm.apply(CONFIG, kcm_namespace)
    kcm.note("now")
    kcm.apply({**CONFIG, "data": {"x": "</script>"}}, kcm_namespace)
    assert read_password(kcm, kcm_namespace) == 2

def test_breaks_an_invariant(kcm, kcm_namespace):
    kcm.never(lambda write: write.name == "mine", "mine is written")
    kcm.apply(CONFIG, kcm_namespace)

def test_is_not_held_to_the_invariant_of_another(kcm, kcm_namespace):
    kcm.apply(CONFIG, kcm_namespace)

def test_without_a_namespace(kcm):
    kcm.apply(CONFIG)
    assert not kcm.get("cm/mine")

@pytest.mark.kcm(nodes=0, controllers=["namespace-controller"])
def test_fresh(kcm_fresh):
    kcm_fresh.apply({**CONFIG, "metadata": {"name": "fresh"}})
    raise AssertionError("fresh fails")

def test_uses_none():
    raise AssertionError("none fails")
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("project")
    (folder / "test_mine.py").write_text(TESTS)
    (folder / "pytest.ini").write_text("[pytest]\nkcm_nodes = 0\n")
    return folder


def run(folder: Path, *options: str) -> str:
    """Runs the tests of the project, and returns the output."""
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-p", "no:schemathesis"]
    done = subprocess.run(
        [*command, "-q", *options], cwd=folder, capture_output=True, text=True, timeout=120,
        check=False,
    )  # fmt: skip
    return done.stdout + done.stderr


@pytest.fixture(scope="module")
def output(folder: Path) -> str:
    return run(folder, "--kcm-report=pages")


def part(output: str, test: str) -> str:
    """Returns what was reported about one test."""
    return output.partition(f"_ {test} _")[2].partition("\n____")[0]


def test_a_failed_test_shows_what_its_namespace_saw(output: str) -> None:
    assert "2 passed" in output, output
    assert "5 failed" in output
    shown = part(output, "test_fails")
    assert "timeline of the control plane" in shown
    assert "namespaces/test-fails-2" in shown
    assert 'data.x: absent → "</script>"' in shown
    assert shown.index("configmaps/mine") < shown.index("── note: now") < shown.index("data.x")
    assert "of-another-test" not in output
    assert "s3cr3t" not in shown.partition("timeline of the control plane")[2]


def test_what_must_never_happen_fails_its_own_test_only(output: str) -> None:
    shown = part(output, "test_breaks_an_invariant")
    assert "InvariantError: this must not happen: mine is written" in shown
    assert "test_is_not_held" not in output.partition("short test summary info")[2]
    assert "def check" not in shown


def test_a_control_plane_of_its_own_is_shown_whole(output: str) -> None:
    assert "configmaps/fresh in default" in part(output, "test_fresh")
    shown = part(output, "test_without_a_namespace")
    assert "configmaps/mine in default" in shown
    assert "test-fails" not in shown
    assert "timeline" not in part(output, "test_uses_none")


def test_pages_are_written_for_failed_tests(output: str, folder: Path) -> None:
    pages = {page.name.rpartition("-")[0] for page in (folder / "pages").iterdir()}
    failed = ("fails", "breaks_an_invariant", "without_a_namespace", "fresh")
    assert pages == {f"test_mine.py-test_{name}" for name in failed}
    (page,) = (folder / "pages").glob("*test_fails*")
    assert f"the same as a page: pages/{page.name}" in output
    text = page.read_text("utf-8")
    assert "s3cr3t" not in text
    assert "\\u003c/script\\u003e" in text


def test_pages_are_written_for_all_tests_if_asked(folder: Path) -> None:
    run(folder, "-k", "test_passes or test_uses_none", "--kcm-report=all", "--kcm-report-all")
    (page,) = (folder / "all").iterdir()
    assert '"outcome": "passed"' in page.read_text("utf-8")


def test_a_folder_that_cannot_be_written_is_told(folder: Path) -> None:
    output = run(folder, "-k", "test_fresh", "--kcm-report=test_mine.py")
    assert "the page could not be written" in output
    assert "configmaps/fresh in default" in output


OWN = """
import pytest
from kcm.testing import ControlPlane

@pytest.fixture(scope="session")
def kcm():
    with ControlPlane(nodes=0, controllers=["namespace-controller", "serviceaccount"]) as own:
        yield own

def test_in_its_namespace(kcm, kcm_namespace):
    kcm.never(lambda write: write.kind == "ConfigMap", "a ConfigMap is written")
    kcm.apply({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}}, kcm_namespace)

def test_without(kcm):
    assert kcm.list("nodes", None) == []
"""


def test_a_project_may_have_a_control_plane_of_its_own_by_the_same_name(tmp_path: Path) -> None:
    (tmp_path / "test_own.py").write_text(OWN)
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    output = run(tmp_path)
    assert "1 failed, 1 passed" in output, output
    assert "this must not happen: a ConfigMap is written" in output
    assert "timeline of the control plane" in output
