"""Measures how fast pods are bound whose claims get their volumes through the scheduler."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence

from bench.harness import Bench, progress
from bench.nodes.scheduling import POOL, WITH_SCHEDULER, make_nodes, wait_bound
from bench.objects import web_pod
from bench.store import clear_store
from bench.table import Row, Sample
from kcm.api.core_v1 import PersistentVolume, PersistentVolumeClaim, Pod
from kcm.api.local_volumes import PROVISIONER
from kcm.api.storage_classes import NO_PROVISIONER
from kcm.api.storage_v1 import StorageClass
from kcm.apimachinery.meta_v1 import KubeObject
from kcm.store import Store

CLASS = "bench"
WARM = 10  # pods that are bound before the measurement


def _storage_class(provisioner: str) -> StorageClass:
    return StorageClass.model_validate(
        {
            "apiVersion": "storage.k8s.io/v1",
            "kind": "StorageClass",
            "metadata": {"name": CLASS},
            "provisioner": provisioner,
            "volumeBindingMode": "WaitForFirstConsumer",
        }
    )


def _claim(name: str) -> PersistentVolumeClaim:
    return PersistentVolumeClaim.model_validate(
        {
            "apiVersion": "v1",
            "kind": "PersistentVolumeClaim",
            "metadata": {"name": name, "namespace": "default"},
            "spec": {
                "accessModes": ["ReadWriteOnce"],
                "storageClassName": CLASS,
                "resources": {"requests": {"storage": "1Gi"}},
            },
        }
    )


def _volume(name: str, node: str) -> PersistentVolume:
    """Returns a local volume that one node reaches."""
    here = {"key": "kubernetes.io/hostname", "operator": "In", "values": [node]}
    return PersistentVolume.model_validate(
        {
            "apiVersion": "v1",
            "kind": "PersistentVolume",
            "metadata": {"name": name},
            "spec": {
                "capacity": {"storage": "1Gi"},
                "accessModes": ["ReadWriteOnce"],
                "storageClassName": CLASS,
                "persistentVolumeReclaimPolicy": "Retain",
                "local": {"path": "/srv/volume"},
                "nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions": [here]}]}},
            },
        }
    )


def _with_claim(pod: Pod, name: str) -> Pod:
    """Returns the pod under this name, with a volume of the claim of this name."""
    volume = {"name": "data", "persistentVolumeClaim": {"claimName": name}}
    spec = Pod.model_validate({"spec": {"volumes": [volume]}}).spec
    return pod.with_metadata(name=name, generate_name=None).with_spec(
        pod.spec.replace(volumes=spec.volumes)
    )


def _create(store: Store, objects: Sequence[KubeObject]) -> None:
    for start in range(0, len(objects), 128):
        for result in store.write([store.build_create(o) for o in objects[start : start + 128]]):
            result.get_stored()


def _round(bench: Bench, provisioner: str, nodes: int, count: int) -> tuple[float, float]:
    """Returns the seconds until `count` pods are bound: with a claim each, and without."""
    clear_store(bench)
    worker = bench.kcm_worker(POOL, extra=WITH_SCHEDULER)
    make_nodes(bench.store, nodes)
    _create(bench.store, [_storage_class(provisioner)])
    names = [f"claimed-{number:05}" for number in range(count + WARM)]
    _create(bench.store, [_claim(name) for name in names])
    if provisioner == NO_PROVISIONER:
        places = [f"n{number % nodes:05}" for number in range(len(names))]
        _create(bench.store, [_volume(f"v-{n}", place) for n, place in enumerate(places)])
    claimed = [_with_claim(web_pod("load"), name) for name in names]
    plain = [web_pod("load").with_metadata(name=f"plain-{n:05}", generate_name=None)
             for n in range(count)]  # fmt: skip
    _time(bench, claimed[:WARM])
    time.sleep(bench.sizes.settle_seconds)
    seconds = _time(bench, claimed[WARM:]), _time(bench, plain)
    bench.stop(worker)
    return seconds


def _time(bench: Bench, pods: Sequence[Pod]) -> float:
    """Returns the seconds from the first pod's creation to the last binding."""
    position = bench.store.resource_version()
    started = time.monotonic()
    _create(bench.store, pods)
    wait_bound(bench.store, position, len(pods))
    return time.monotonic() - started


def _measure(bench: Bench, name: str, what: str, provisioner: str) -> Iterator[Row]:
    nodes, count = bench.sizes.scheduled_nodes, bench.sizes.scheduled_pods
    progress(f"nodes: {count} pods with {what}, {bench.sizes.queue_rounds} rounds")
    rounds = [_round(bench, provisioner, nodes, count) for _ in range(bench.sizes.queue_rounds)]
    clear_store(bench)
    baseline = Sample.of([plain for _, plain in rounds])
    yield Row(
        name=f"nodes.claims.{name}",
        what=f"{count:,} pods with {what} bound to {nodes:,} nodes",
        unit="s",
        measured=Sample.of([claimed for claimed, _ in rounds]),
        baseline=baseline,
        baseline_what="s, the same pods without claims",
        bound=3 * baseline.median,
        target="3 x the same without claims",
    )


def provisioned(bench: Bench) -> Iterator[Row]:
    """Measures pods whose volumes kcm makes once the scheduler has chosen the node."""
    return _measure(bench, "made", "a claim each whose volume is made", PROVISIONER)


def prepared(bench: Bench) -> Iterator[Row]:
    """Measures pods that choose among volumes of single nodes."""
    return _measure(bench, "local", "a claim each for a local volume", NO_PROVISIONER)
