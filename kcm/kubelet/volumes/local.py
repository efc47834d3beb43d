"""The folders on this node that are PersistentVolumes of `kcm.dev/local`.

A volume is `<root>/<handle>`: its files are in `data`, and `volume.json` says whose they are. The
volume has a finalizer from before its first use until the folder is gone, so a volume that is
deleted with the policy Delete takes its files with it.

Guarantees: files are removed for one reason only: their own PersistentVolume is being deleted, with
the policy Delete, and is not in use. What has lost its PersistentVolume without that stays on the
disk, for a store may be emptied by mistake. A removal that was cut off is done again.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Collection
from pathlib import Path

import structlog

from kcm import errors
from kcm.api.core_v1 import PersistentVolume
from kcm.api.volumes.finalizers import VOLUME_PROTECTION
from kcm.api.volumes.local import DATA_FINALIZER, handle_of
from kcm.apimachinery.meta_v1 import KubeObject
from kcm.clock import Clock
from kcm.helpers.volumes.protection import with_finalizer, without_finalizer
from kcm.kubelet.files.folders import remove_tree
from kcm.kubelet.volumes.access import let_through
from kcm.store.objects import ObjectStore

log = structlog.get_logger("kcm.kubelet")

VOLUMES = PersistentVolume.resource
DATA, RECORD = "data", "volume.json"
CLEAN_EVERY = 2.0  # seconds between looks at volumes that may have been deleted
_OPEN = 0o777  # everybody may write, but only users of pods can reach the folder


class LocalVolumes:
    """Makes and removes the folders. Thread-safe."""

    def __init__(self, root: Path, store: ObjectStore, clock: Clock) -> None:
        self._root = root
        self._store = store
        self._clock = clock
        self._lock = threading.Lock()
        self._users: dict[str, set[int]] = {}  # who was let through to a folder, by handle

    def set_up(self, volume: PersistentVolume, users: Collection[int]) -> Path:
        """Returns the folder of a volume's files, made if it is not there, for these users.

        Raises ContainerConfigError for a volume that is no folder or is being deleted, Temporary,
        and OSError.
        """
        handle = handle_of(volume)
        if handle is None:
            raise errors.ContainerConfigError(f"volume {volume.name} has no valid volumeHandle")
        with self._lock:
            folder = self._root / handle
            self._root.mkdir(mode=0o711, parents=True, exist_ok=True)
            folder.mkdir(mode=0o700, exist_ok=True)
            self._claim_folder(folder, volume)
            if DATA_FINALIZER not in (volume.metadata.finalizers or ()):
                self._protect(volume)
            data = folder / DATA
            if not data.is_dir():
                data.mkdir()
                data.chmod(_OPEN)
            users_of_volume = self._users.setdefault(handle, set())
            users_of_volume.update(users)
            let_through(folder, users_of_volume)
        return data

    def _claim_folder(self, folder: Path, volume: PersistentVolume) -> None:
        """Claims a new folder for the volume. Raises ContainerConfigError if another one has it."""
        owner = _read_owner(folder)
        if owner is None:
            text = json.dumps({"name": volume.name, "uid": volume.uid})
            new = folder / f"{RECORD}.new"
            new.write_text(text, "utf-8")
            new.replace(folder / RECORD)
        elif owner != (volume.name, volume.uid):
            raise errors.ContainerConfigError(
                f"the folder {folder} belongs to the volume {owner[0]} with uid {owner[1]}, not "
                f"to {volume.name} with uid {volume.uid}: remove it, or use another volumeHandle"
            )

    def _protect(self, volume: PersistentVolume) -> None:
        """Gives the volume the finalizer. Raises ContainerConfigError if it is being deleted."""
        present = self._store.find(VOLUMES, volume.key)
        if present is None or present.uid != volume.uid:
            raise errors.ContainerConfigError(f"volume {volume.name} is gone")
        if DATA_FINALIZER in (present.metadata.finalizers or ()):
            return
        if present.deleting:
            raise errors.ContainerConfigError(f"volume {volume.name} is being deleted")
        self._write(present, with_finalizer(DATA_FINALIZER, present))

    def _write(self, old: KubeObject, new: KubeObject) -> None:
        """Writes a change. Raises Temporary if somebody else was faster or the store is away."""
        item = self._store.build_update(new, old)
        if item is None:
            return
        try:
            self._store.write([item])[0].get_stored()
        except errors.ApiError as error:
            raise errors.StoreUnavailable(f"{old.name} was not written: {error}") from error

    # --- removal

    def run(self, stop: threading.Event) -> None:
        """Removes what is to be removed, until `stop` is set."""
        while not self._clock.wait(stop, CLEAN_EVERY):
            try:
                self.clean()
            except (errors.KcmError, OSError) as error:
                log.warning("Local volumes were not cleaned up", error=str(error))

    def clean(self) -> None:
        """Removes the files of deleted volumes, once. Raises Temporary and OSError.

        It asks for the volumes of the folders that are there, and for nothing if there are none.
        What cannot be removed is tried again by the next call, and holds up no other.
        """
        folders = sorted(self._root.iterdir()) if self._root.is_dir() else []
        owned = [(folder, owner) for folder in folders if (owner := _read_owner(folder))]
        if not owned:
            return
        volumes = self._store.get_all([(VOLUMES, name) for _, (name, _) in owned])
        for (folder, owner), volume in zip(owned, volumes, strict=True):
            try:
                self._clean(folder, owner, volume)
            except (errors.KcmError, OSError) as error:
                log.warning("A folder was not removed", folder=str(folder), error=str(error))

    def _clean(self, folder: Path, owner: tuple[str, str], volume: KubeObject | None) -> None:
        name, uid = owner
        if isinstance(volume, PersistentVolume) and volume.uid == uid:
            if _may_go(volume):
                self._remove(folder, volume)
        elif not _has_files(folder):
            self._forget(folder)
        else:
            log.debug("A folder has lost its volume", folder=str(folder), volume=name)

    def _remove(self, folder: Path, volume: PersistentVolume) -> None:
        """Removes the files, unless they are to be retained, and lets the volume go.

        The record goes last: until then a removal that was cut off is done again.
        """
        retained = volume.spec.persistent_volume_reclaim_policy != "Delete"
        with self._lock:
            if not retained:
                remove_tree(folder / DATA)
            self._write(volume, without_finalizer(DATA_FINALIZER, volume))
            if not retained:
                self._forget(folder)
        log.info("A local volume was deleted", volume=volume.name, files_kept=retained)

    def _forget(self, folder: Path) -> None:
        remove_tree(folder)
        self._users.pop(folder.name, None)


def _may_go(volume: PersistentVolume) -> bool:
    """Reports whether the volume is being deleted, and nothing but its folder keeps it."""
    finalizers = volume.metadata.finalizers or ()
    return (
        volume.deleting
        and DATA_FINALIZER in finalizers
        and VOLUME_PROTECTION not in finalizers
        and volume.status.phase != "Bound"
    )


def _has_files(folder: Path) -> bool:
    data = folder / DATA
    return data.is_dir() and any(data.iterdir())


def _read_owner(folder: Path) -> tuple[str, str] | None:
    """Returns name and uid of the folder's PersistentVolume; None without a readable record."""
    try:
        record = json.loads((folder / RECORD).read_text("utf-8"))
        return str(record["name"]), str(record["uid"])
    except (OSError, ValueError, KeyError, TypeError):
        return None
