"""The pytest plugin, as a project of its own uses it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tests.integration.testing.objects import CRON_TABS

TESTS = """
import sys

import pytest

def test_nothing_is_imported_before_a_fixture_is_used():
    assert "kcm.api" not in sys.modules
    assert "kcm.testing.plugin" in sys.modules

def test_a_namespace_of_its_own(kcm, kcm_namespace):
    config = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "mine"}}
    kcm.apply(config, kcm_namespace)
    assert kcm.get("configmap/mine", kcm_namespace)["metadata"]["namespace"] == kcm_namespace

def test_the_session_shares_a_control_plane(kcm, kcm_namespace):
    assert [one["metadata"]["name"] for one in kcm.list("nodes", None)] == ["node-1", "node-2"]
    assert not kcm.list("configmaps", kcm_namespace, "app=mine")

@pytest.mark.kcm(nodes=0)
def test_one_of_its_own(kcm_fresh):
    assert kcm_fresh.list("nodes", None) == []
    assert kcm_fresh.list("crontabs", None) == []

@pytest.mark.kcm(bare=True)
def test_an_empty_one_has_a_namespace_that_nothing_ends(kcm_fresh, kcm_namespace):
    assert kcm_fresh.list("nodes", None) == []
    assert kcm_fresh.list("storageclasses", None) == []
    assert kcm_fresh.list("serviceaccounts", kcm_namespace) == []
    assert kcm_fresh.get(f"namespace/{kcm_namespace}")["status"]["phase"] == "Active"

@pytest.mark.kcm(node=1)
def test_an_argument_that_there_is_not(kcm_fresh):
    pass

def test_something_fails(kcm, kcm_namespace):
    kcm.faults.api(error=500)
    kcm.nodes["node-1"].full()

def test_the_next_test_knows_nothing_of_it(kcm, kcm_namespace):
    assert kcm.faults.active == []
    assert not any(node.states for node in kcm.nodes)

def test_something_is_left(kcm, kcm_namespace):
    kept = {"name": "kept", "finalizers": ["example.com/keep"]}
    kcm.apply({"apiVersion": "v1", "kind": "ConfigMap", "metadata": kept}, kcm_namespace)
"""

INI = "[pytest]\nkcm_nodes = 2\nkcm_patience = 3s\nkcm_grace = 1s\nkcm_crds = crds\n"


def test_a_project_gets_control_planes_as_fixtures(tmp_path: Path) -> None:
    (tmp_path / "test_mine.py").write_text(TESTS)
    (tmp_path / "crds").mkdir()
    (tmp_path / "crds/crontabs.yaml").write_text(CRON_TABS)
    (tmp_path / "pytest.ini").write_text(INI)
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-p", "no:schemathesis"]
    done = subprocess.run(
        [*command, "-q", "-rA"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert "8 passed, 2 errors" in done.stdout, done.stdout + done.stderr
    assert "the marker kcm has no argument node: use controllers, nodes, " in done.stdout
    assert "ERROR test_mine.py::test_something_is_left" in done.stdout
    assert "example.com/keep in 1 resource instances" in done.stdout
