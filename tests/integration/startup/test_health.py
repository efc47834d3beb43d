"""The pages of a real manager over HTTP."""

from __future__ import annotations

import pytest

from kcm.redisio import RedisIO
from kcm.store import Store
from kcm.testing.builders import replica_set
from kcm.testing.waiting import until
from tests.integration.startup.conftest import Begin


def create_web(io: RedisIO) -> None:
    Store(io).create(replica_set("web").with_metadata(resource_version=None))


def test_a_manager_becomes_ready_and_shows_itself(begin: Begin, io: RedisIO) -> None:
    manager = begin()
    until(manager.ready)
    create_web(io)

    assert manager.get("/healthz").text == "ok"
    assert manager.get("/livez/threads").text == "ok"
    verbose = manager.get("/readyz?verbose").text
    assert verbose.splitlines() == [
        "[+]ping ok",
        "[+]threads ok",
        "[+]store ok",
        "[+]informer-sync ok",
        "readyz check passed",
    ]
    excluded = manager.get("/readyz?verbose&exclude=store&exclude=nope").text
    assert "[+]store excluded: ok" in excluded
    assert "cannot be excluded: no matches for nope" in excluded
    counted = manager.get("/metrics/slis").text
    assert 'kubernetes_healthcheck{name="store",type="readyz"} 1.0' in counted
    assert (
        'kubernetes_healthchecks_total{name="threads",status="success",type="healthz"}' in counted
    )
    assert manager.get("/healthz/nope").status_code == 404
    assert manager.get("/nope").status_code == 404
    assert manager.get("/configz", host="evil.example").status_code == 403

    section = manager.get("/configz").json()["kubecontrollermanager.config.k8s.io"]
    assert section["serving"]["securePort"] == manager.port
    assert section["replicaSetController"]["concurrentRSSyncs"] == 5

    until(lambda: manager.get("/debug/controllers/rs").status_code == 404)
    page = manager.get("/debug/controllers/replicaset").json()
    assert page["queue"]["cap"] == 5
    assert {cache["kind"] for cache in page["caches"]} == {"replicasets.apps", "pods"}
    assert all(cache["synced"] and cache["watched"] for cache in page["caches"])
    assert "replicaset-controller" in manager.get("/debug/controllers").json()["started"]
    assert "kcm-dispatch" in manager.get("/debug/threads").text


def test_metrics_tell_of_the_whole_system(begin: Begin, io: RedisIO) -> None:
    manager = begin()
    until(manager.ready)
    create_web(io)
    held = 'kcm_lease_held{holder="' + manager.run.context.identity + '",lease="ingest"} 1.0'
    until(lambda: held in manager.get("/metrics").text)
    until(lambda: 'workqueue_depth{name="replicaset"} 1.0' in manager.get("/metrics").text)
    text = manager.get("/metrics").text
    for line in (
        'kcm_store_objects{resource="replicasets.apps"} 1.0',
        'kcm_watch_log_length{resource="replicasets.apps"} 1.0',
        'kcm_event_bus_events_total{result="applied"} 0.0',
        "kcm_store_up 1.0",
        'running_managed_controllers{manager="kcm-controller-manager",name="replicaset-controller"}',
        'kcm_informer_lists_total{kind="pods"} 1.0',
        'kind="manager"',
        "process_cpu_seconds_total",
    ):
        assert line in text
    names = {c.get("name") for c in io.execute("CLIENT LIST")}
    assert {"kcm/manager", "kcm/shared-informers", "kcm/queues"} <= names


def test_a_disabled_controller_gets_no_queue_and_no_caches(begin: Begin, io: RedisIO) -> None:
    manager = begin(controllers="podgc")
    until(manager.ready)
    assert manager.get("/debug/controllers").json()["started"] == [
        "pod-garbage-collector-controller"
    ]
    assert io.execute("SMEMBERS", io.keys.queues()) in (set(), [])


def test_a_crashing_watch_handler_is_counted_and_the_others_go_on(
    begin: Begin, io: RedisIO, monkeypatch: pytest.MonkeyPatch
) -> None:
    from kcm.controllers.garbagecollector import GarbageCollector
    from kcm.reconcile.contract import Watch

    def crash(change: object, view: object) -> list[str]:
        raise RuntimeError("a bug")

    monkeypatch.setattr(GarbageCollector, "watches", lambda self: (Watch(None, crash),))
    manager = begin()
    until(manager.ready)
    create_web(io)
    until(lambda: 'workqueue_depth{name="replicaset"} 1.0' in manager.get("/metrics").text)
    line = 'kcm_handler_panics_total{handler="garbage-collector-controller"} 2.0'
    assert line in manager.get("/metrics").text
    assert manager.get("/livez").status_code == 200


def test_a_manager_stops_and_signs_off(begin: Begin, io: RedisIO) -> None:
    manager = begin()
    until(manager.ready)
    manager.run.ask_to_stop()
    assert manager.wait_end(15.0)
    assert manager.code == 0
    assert io.execute("HGETALL", io.keys.workers()) == {}
