"""`kcm test-env`, for tests in any language."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.integration.testing.objects import CRON_TABS

CHECK = 'test -s "$KUBECONFIG" && test "$USE_EXISTING_CLUSTER" = true && echo at "$KUBECONFIG"'

FIND = f"""{sys.executable} -c '
import os
from kubernetes import client, config
with config.new_client_from_config(os.environ["KUBECONFIG"]) as api:
    found = client.ApiextensionsV1Api(api).list_custom_resource_definition().items
print(len(found), found[0].spec.names.singular)'"""


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-W", "ignore", "-m", "kcm.cli.main", "test-env", *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)


def test_a_command_gets_a_cluster_and_its_exit_code_is_kept(tmp_path: Path) -> None:
    crds = tmp_path / "crd.yaml"
    crds.write_text(CRON_TABS)
    done = run("--nodes=0", f"--crds={crds}", "--", "sh", "-c", f"{CHECK}; {FIND}; exit 3")
    assert done.returncode == 3, done.stderr
    assert done.stdout.startswith("at /")
    assert done.stdout.endswith("1 crontab\n"), done.stderr


LIST = f"""{sys.executable} -c '
import os
from kubernetes import client, config
with config.new_client_from_config(os.environ["KUBECONFIG"]) as api:
    core = client.CoreV1Api(api)
    print(len(core.list_node().items), len(core.list_service_account_for_all_namespaces().items),
          len(client.StorageV1Api(api).list_storage_class().items), os.environ["KUBECONFIG"])'"""


def test_a_bare_one_is_empty_and_its_kubeconfig_is_where_it_was_asked_for(tmp_path: Path) -> None:
    file = tmp_path / "config"
    done = run("--bare", f"--kubeconfig={file}", "--", "sh", "-c", LIST)
    assert done.stdout == f"0 0 0 {file}\n", done.stderr
    assert not file.exists()


def test_a_kubeconfig_that_is_there_is_neither_written_nor_removed(tmp_path: Path) -> None:
    file = tmp_path / "config"
    file.write_text("mine")
    done = run("--bare", f"--kubeconfig={file}", "--", "true")
    assert (done.returncode, file.read_text()) == (1, "mine")
    assert f"error: --kubeconfig {file}: there is such a file already" in done.stderr


def test_controllers_configuration_and_seed_are_passed_on(tmp_path: Path) -> None:
    config = tmp_path / "kcm.yaml"
    config.write_text(
        "apiVersion: kubecontrollermanager.config.k8s.io/v1alpha1\n"
        "kind: KubeControllerManagerConfiguration\n"
        "garbageCollectorController: {concurrentGCSyncs: 3}\n"
    )
    asked = ("--bare", "--controllers=garbage-collector", f"--config={config}", "--seed=1")
    done = run(*asked, "--no-local-storage-class", "--", "sh", "-c", LIST)
    assert done.stdout.startswith("0 0 0 "), done.stderr


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (["--", "no-such-program"], 127, "error: no-such-program cannot be started"),
        (["--flag=--no-such-flag", "--", "true"], 1, "no-such-flag"),
        (["--controllers=no-such", "--", "true"], 1, '"no-such" is not in the list'),
        (["--kubeconfig=/no/such/folder/file", "--", "true"], 1, "error: --kubeconfig /no/such"),
        ([], 2, "give a COMMAND, or --serve"),
        (["--serve", "--", "true"], 2, "give a COMMAND, or --serve"),
    ],
)
def test_what_is_wrong_is_told(arguments: list[str], code: int, words: str) -> None:
    done = run(*arguments)
    assert done.returncode == code
    assert words in done.stderr
