"""Folders of a node are PersistentVolumes: made, kept, and removed with their volume only."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from kcm import errors
from kcm.api.core_v1 import PersistentVolume
from kcm.api.core_v1.persistent_volumes import CSIPersistentVolumeSource
from kcm.api.volumes.finalizers import VOLUME_PROTECTION
from kcm.api.volumes.local import DATA_FINALIZER, DRIVER
from kcm.helpers.volumes.protection import without_finalizer
from kcm.kubelet.volumes.local import VOLUMES, LocalVolumes
from kcm.redisio import RedisIO
from kcm.store import Store
from kcm.store.options import DeleteOptions, Subresource
from kcm.testing import storage_builders
from kcm.testing.clock import FakeClock
from tests.new_objects import strip_store_fields

NAME = "pvc-1"


def create(store: Store, name: str = NAME, policy: str = "Delete") -> PersistentVolume:
    source = CSIPersistentVolumeSource(driver=DRIVER, volume_handle=name)
    made = storage_builders.volume(
        name, host_path=None, csi=source, persistent_volume_reclaim_policy=policy
    )
    created = store.create(strip_store_fields(made))
    assert isinstance(created, PersistentVolume)
    return created


def present(store: Store, name: str = NAME) -> PersistentVolume | None:
    found = store.get_all([(VOLUMES, name)])[0]
    assert found is None or isinstance(found, PersistentVolume)
    return found


def set_phase(store: Store, phase: str) -> None:
    def change(obj: Any) -> Any:
        return obj.with_status(obj.status.replace(phase=phase))

    store.modify(VOLUMES, NAME, change, subresource=Subresource.STATUS)


def unprotect(store: Store) -> None:
    """What the protection controller does with a volume that is not bound."""
    store.modify(VOLUMES, NAME, lambda obj: without_finalizer(VOLUME_PROTECTION, obj))


@pytest.fixture
def store(io: RedisIO) -> Store:
    return Store(io)


@pytest.fixture
def local(store: Store, tmp_path: Path) -> LocalVolumes:
    return LocalVolumes(tmp_path / "volumes", store, FakeClock())


def test_a_folder_is_made_once_and_its_volume_is_kept_for_it(
    local: LocalVolumes, store: Store
) -> None:
    volume = create(store)
    data = local.set_up(volume, ())
    (data / "file").write_text("kept")
    kept = present(store)
    assert kept is not None
    assert DATA_FINALIZER in (kept.metadata.finalizers or ())
    assert data.stat().st_mode & 0o777 == 0o777
    assert data.parent.stat().st_mode & 0o007 == 0
    assert local.set_up(volume, ()) == data  # also with a volume from before the finalizer
    assert (data / "file").read_text() == "kept"


def test_the_files_go_when_their_deleted_volume_is_free(local: LocalVolumes, store: Store) -> None:
    data = local.set_up(create(store), ())
    (data / "file").write_text("x")
    set_phase(store, "Bound")
    store.delete(VOLUMES, NAME, DeleteOptions())
    local.clean()
    assert (data / "file").exists()  # it is bound
    set_phase(store, "Released")
    local.clean()
    assert (data / "file").exists()  # it is protected
    unprotect(store)
    local.clean()
    assert not data.parent.exists()
    assert present(store) is None


def test_a_removal_that_was_cut_off_is_done_again(
    local: LocalVolumes, store: Store, tmp_path: Path
) -> None:
    data = local.set_up(create(store), ())
    store.delete(VOLUMES, NAME, DeleteOptions())
    unprotect(store)
    data.rmdir()  # as far as it came
    LocalVolumes(tmp_path / "volumes", store, FakeClock()).clean()
    assert present(store) is None
    assert not data.parent.exists()


def test_a_folder_that_cannot_be_removed_holds_up_no_other(
    local: LocalVolumes, store: Store
) -> None:
    names = ["pvc-1", "pvc-2"]
    broken, _ = [local.set_up(create(store, name), ()) for name in names]
    broken.rmdir()
    broken.write_text("a pod put this here")  # what is removed is a folder
    for name in names:
        store.delete(VOLUMES, name, DeleteOptions())
        store.modify(VOLUMES, name, lambda obj: without_finalizer(VOLUME_PROTECTION, obj))
    local.clean()
    assert [present(store, name) is None for name in names] == [False, True]
    broken.unlink()
    local.clean()
    assert present(store, "pvc-1") is None


def test_retained_files_stay(local: LocalVolumes, store: Store) -> None:
    data = local.set_up(create(store, policy="Retain"), ())
    (data / "file").write_text("mine")
    store.delete(VOLUMES, NAME, DeleteOptions())
    unprotect(store)
    local.clean()
    assert present(store) is None
    assert (data / "file").read_text() == "mine"


def test_files_that_have_lost_their_volume_stay_and_empty_folders_go(
    local: LocalVolumes, store: Store, io: RedisIO
) -> None:
    full, empty = local.set_up(create(store), ()), local.set_up(create(store, "pvc-2"), ())
    (full / "file").write_text("precious")
    io.execute("FLUSHALL")  # somebody emptied the store
    local.clean()
    assert (full / "file").read_text() == "precious"
    assert not empty.parent.exists()


def test_a_folder_is_not_given_to_another_volume(local: LocalVolumes, store: Store) -> None:
    volume = create(store)
    local.set_up(volume, ())
    with pytest.raises(errors.ContainerConfigError, match="belongs to the volume pvc-1"):
        local.set_up(volume.with_metadata(uid="another"), ())


@pytest.mark.parametrize("handle", ["../up", "a/b", "", "A", ".", "a\nb"])
def test_a_handle_that_is_no_plain_name_is_refused(
    local: LocalVolumes, store: Store, handle: str
) -> None:
    source = CSIPersistentVolumeSource(driver=DRIVER, volume_handle=handle)
    strange = storage_builders.volume(NAME, host_path=None, csi=source)
    with pytest.raises(errors.ContainerConfigError, match="no valid volumeHandle"):
        local.set_up(strange, ())


def test_a_volume_that_is_being_deleted_is_not_set_up(local: LocalVolumes, store: Store) -> None:
    volume = create(store)
    store.delete(VOLUMES, NAME, DeleteOptions())
    with pytest.raises(errors.ContainerConfigError, match="is being deleted"):
        local.set_up(volume, ())


@pytest.mark.skipif(os.geteuid() != 0, reason="only root lets other users through")
def test_users_of_several_pods_reach_the_files(local: LocalVolumes, store: Store) -> None:
    volume = create(store)
    local.set_up(volume, {1234})
    data = local.set_up(volume, {2345})
    mode = data.parent.stat().st_mode & 0o070
    assert mode  # by access control list, or by group
    assert data.parent.stat().st_uid == 0


def test_nothing_is_asked_for_without_folders(local: LocalVolumes, io: RedisIO) -> None:
    io.close()
    local.clean()  # would raise
