"""`kcm` supports the custom kinds of the store."""

from __future__ import annotations

import json

import pytest

from kcm.store import Store
from kcm.store.definitions import Definitions
from tests.integration.cli.conftest import Run
from tests.integration.manager.test_custom_kinds import NAME, define

CRONTAB = json.dumps(
    {
        "apiVersion": "example.com/v1",
        "kind": "CronTab",
        "metadata": {"name": "one"},
        "spec": {"replicas": 2},
    }
)


@pytest.fixture(autouse=True)
def defined(store: Store) -> None:
    define(store)


def test_objects_are_applied_shown_and_deleted(run: Run, store: Store) -> None:
    assert run("apply", "-f", "-", stdin=CRONTAB).output == "crontab.example.com/one created\n"
    assert run("apply", "-f", "-", stdin=CRONTAB).output == "crontab.example.com/one unchanged\n"
    header, row = run("get", "crontabs").output.splitlines()
    assert (header.split(), row.split()[0]) == (["NAME", "AGE"], "one")
    assert "replicas: 2" in run("get", "cr/one", "-o", "yaml").output
    assert "deleted" in run("delete", "crontab", "one").output
    Definitions(store).refresh()
    assert store.count(store.scheme.by_name(NAME)) == 0


def test_objects_that_do_not_fit_are_explained(run: Run) -> None:
    wrong = CRONTAB.replace("2", '"x"')
    done = run("apply", "-f", "-", stdin=wrong)
    assert done.exit_code == 1
    assert 'spec.replicas in body must be of type integer: "string"' in done.output


def test_a_backup_brings_custom_objects_back(run: Run, store: Store, tmp_path: object) -> None:
    run("apply", "-f", "-", stdin=CRONTAB)
    path = f"{tmp_path}/backup"
    assert run("backup", path).exit_code == 0
    store.io.execute("FLUSHDB")
    store.io.attach()
    assert run("restore", path).exit_code == 0
    assert "one" in run("get", "crontabs").output
