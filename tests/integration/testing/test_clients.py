"""The clients that the pytest plugin has ready, as a project of its own uses them."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

INI = """
[pytest]
filterwarnings =
    error
    ignore:unclosed transport:ResourceWarning
    ignore:Kubernetes version .* is not supported:UserWarning
asyncio_default_fixture_loop_scope = function
"""

CLIENTS = """
import asyncio
import sys

import pytest


def test_no_library_is_imported_before_its_fixture_is_used():
    assert "kcm.testing.clients" in sys.modules
    assert not {"kubernetes", "lightkube", "kr8s", "kopf"} & set(sys.modules)


def test_the_client_of_kubernetes(kcm_kubernetes, kcm_namespace):
    from kubernetes import client

    core = client.CoreV1Api(kcm_kubernetes)
    core.create_namespaced_config_map(kcm_namespace, {"metadata": {"name": "a"}})
    listed = core.list_namespaced_config_map(kcm_namespace).items
    assert "a" in [one.metadata.name for one in listed]


def test_the_client_of_lightkube(kcm_lightkube, kcm_namespace):
    from lightkube.models.meta_v1 import ObjectMeta
    from lightkube.resources.core_v1 import ConfigMap

    kcm_lightkube.create(ConfigMap(metadata=ObjectMeta(name="a")), namespace=kcm_namespace)
    assert kcm_lightkube.get(ConfigMap, "a", namespace=kcm_namespace).metadata.name == "a"


def test_the_api_of_kr8s(kcm_kr8s, kcm_namespace):
    from kr8s.objects import ConfigMap

    manifest = {"metadata": {"name": "a", "namespace": kcm_namespace}}
    ConfigMap(manifest, api=kcm_kr8s).create()
    [found] = kcm_kr8s.get("configmaps", "a", namespace=kcm_namespace)
    assert found.name == "a"


@pytest.mark.kcm(nodes=0)
def test_clients_follow_the_plane_of_the_test(
    kcm_fresh, kcm_kubernetes, kcm_lightkube, kcm_kr8s, kcm_namespace, kcm_clock
):
    from kubernetes.client import CoreV1Api
    from lightkube.resources.core_v1 import ConfigMap

    only_here = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "only-here"}}
    kcm_fresh.apply(only_here, kcm_namespace)
    assert CoreV1Api(kcm_kubernetes).read_namespaced_config_map("only-here", kcm_namespace)
    assert kcm_lightkube.get(ConfigMap, "only-here", namespace=kcm_namespace)
    assert list(kcm_kr8s.get("configmaps", "only-here", namespace=kcm_namespace))
    assert kcm_fresh.clock.frozen


@pytest.mark.asyncio
async def test_asynchronous_code_beside_the_fixtures(kcm, kcm_kr8s, kcm_namespace):
    from kr8s.asyncio import api as connect
    from kr8s.asyncio.objects import ConfigMap

    api = await connect(kubeconfig=str(kcm.kubeconfig))
    manifest = {"metadata": {"name": "a", "namespace": kcm_namespace}}
    made = await ConfigMap(manifest, api=api)
    await made.create()
    seen = await asyncio.to_thread(kcm.get, "configmap/a", kcm_namespace)
    assert seen["metadata"]["uid"] == made.metadata.uid
    [same] = kcm_kr8s.get("configmaps", "a", namespace=kcm_namespace)
    assert same.metadata.uid == made.metadata.uid
    await api._session.aclose()  # kr8s has no other way
"""

KOPF = """
import logging
import os
from pathlib import Path

import kubernetes
import pytest

OPERATOR = '''
import kopf
import kubernetes

@kopf.on.startup()
def connect(settings, **_):
    settings.posting.enabled = False
    kubernetes.config.load_kube_config()

@kopf.on.create("configmaps", labels={"greet": "yes"})
def greet(name, namespace, **_):
    body = {"metadata": {"name": f"{name}-WORD"}}
    kubernetes.client.CoreV1Api().create_namespaced_config_map(namespace, body)
'''
GREETED = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"labels": {"greet": "yes"}}}


def greeted(kcm, namespace, name):
    kcm.apply({**GREETED, "metadata": {**GREETED["metadata"], "name": name}}, namespace)

    def names():
        return [one["metadata"]["name"] for one in kcm.list("configmaps", namespace)]

    kcm.eventually(lambda: len([one for one in names() if one.startswith(f"{name}-")]))
    return [one for one in names() if one.startswith(f"{name}-")]


@pytest.mark.parametrize("word", ["hello", "ciao"])
def test_an_operator_runs_beside_the_test(kcm, kcm_kopf, kcm_namespace, tmp_path, word):
    before = dict(os.environ), list(logging.getLogger().handlers)
    path = tmp_path / "operator.py"
    path.write_text(OPERATOR.replace("WORD", word))
    with kcm_kopf("run", "-A", "--verbose", str(path)) as runner:
        assert greeted(kcm, kcm_namespace, "a") == [f"a-{word}"], "only this operator runs"
    assert runner.exit_code == 0
    assert "Handler 'greet' succeeded" in runner.output
    assert (dict(os.environ), list(logging.getLogger().handlers)) == before


@pytest.mark.parametrize("name", ["a", "b"])
def test_a_module_runs_each_time(kcm, kcm_kopf, kcm_namespace, name):
    with kcm_kopf("run", "-A", "-m", "greeter"):
        assert greeted(kcm, kcm_namespace, name) == [f"{name}-module"]


def test_what_the_operator_raises_reaches_the_test(kcm_kopf, tmp_path):
    path = tmp_path / "broken.py"
    path.write_text("raise RuntimeError('cannot start')")
    with pytest.raises(RuntimeError, match="cannot start"):
        with kcm_kopf("run", "-A", str(path)):
            pass
"""

MISSING = """
import sys

import pytest

sys.modules |= dict.fromkeys(["kubernetes", "kubernetes.config", "lightkube", "kr8s", "kopf"])


@pytest.mark.parametrize(
    "name", ["kcm_kubernetes", "kcm_lightkube", "kcm_kr8s", "kcm_kopf"]
)
def test_needs_a_library(request, name):
    request.getfixturevalue(name)
"""


def run(folder: Path, tests: str, **modules: str) -> subprocess.CompletedProcess[str]:
    (folder / "test_mine.py").write_text(tests)
    (folder / "pytest.ini").write_text(INI)
    for name, text in modules.items():
        (folder / f"{name}.py").write_text(text)
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-p", "no:schemathesis"]
    return subprocess.run(
        [*command, "-q", "-rA"],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(folder), "KUBERNETES_SERVICE_HOST": "192.0.2.1"},
        capture_output=True,
        text=True,
        timeout=200,
        check=False,
    )


def test_clients_are_ready_for_the_sessions_control_plane(tmp_path: Path) -> None:
    done = run(tmp_path, CLIENTS)
    assert "6 passed" in done.stdout, done.stdout + done.stderr


@pytest.mark.long
def test_operators_of_kopf_run_one_after_another_without_meeting(tmp_path: Path) -> None:
    operator = KOPF.partition("OPERATOR = '''")[2].partition("'''")[0]
    done = run(tmp_path, KOPF, greeter=operator.replace("WORD", "module"))
    assert "5 passed" in done.stdout, done.stdout + done.stderr


def test_a_missing_library_skips_the_test_and_is_named(tmp_path: Path) -> None:
    done = run(tmp_path, MISSING)
    assert "4 skipped" in done.stdout, done.stdout + done.stderr
    for name in ("kubernetes", "lightkube>=1.0", "kr8s", "kopf"):
        assert f"a library that is missing: pip install '{name}'" in done.stdout
