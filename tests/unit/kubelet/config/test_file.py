"""A manifest folder: it is read when files change, and an invalid file is reported once."""

from __future__ import annotations

from pathlib import Path

from kcm.kubelet.config.file import FileSource
from kcm.kubelet.types import PodUpdate
from kcm.testing.clock import FakeClock

POD = "metadata: {{name: {0}}}\nspec: {{containers: [{{name: main, image: x}}]}}\n"


class Folder:
    def __init__(self, path: Path) -> None:
        self.path = path
        self.sent: list[PodUpdate] = []
        self.invalid: list[str] = []
        self.source = FileSource(
            path, "n1", self.sent.append, FakeClock(),
            report_invalid=lambda file, _: self.invalid.append(Path(file).name),
        )  # fmt: skip

    def write(self, name: str, text: str) -> None:
        temporary = self.path / ".new"
        temporary.write_text(text)
        temporary.replace(self.path / name)

    def pods(self) -> list[str]:
        """Scans the folder; returns the names of the pods that the source sends."""
        self.source.scan()
        self.source.send_all()
        return sorted(pod.name or "" for pod in self.sent[-1].pods)


def test_files_come_change_and_go(tmp_path: Path) -> None:
    folder = Folder(tmp_path)
    assert folder.pods() == []
    folder.write("a.yaml", POD.format("a"))
    folder.write("b.yaml", POD.format("b"))
    folder.write(".hidden.yaml", POD.format("c"))
    assert folder.pods() == ["a-n1", "b-n1"]
    assert not folder.source.scan()
    folder.write("a.yaml", POD.format("other"))
    (tmp_path / "b.yaml").unlink()
    assert folder.pods() == ["other-n1"]


def test_a_broken_file_touches_no_other_and_keeps_what_it_said_before(tmp_path: Path) -> None:
    folder = Folder(tmp_path)
    folder.write("a.yaml", POD.format("a"))
    folder.write("b.yaml", "kind: [")
    assert folder.pods() == ["a-n1"]
    folder.write("a.yaml", "half of it: {")
    assert folder.pods() == ["a-n1"]
    assert folder.pods() == ["a-n1"]
    assert folder.invalid == ["b.yaml", "a.yaml"]
    folder.write("b.yaml", POD.format("b"))
    assert folder.pods() == ["a-n1", "b-n1"]


def test_one_file_will_do(tmp_path: Path) -> None:
    file = tmp_path / "pod.yaml"
    file.write_text(POD.format("a"))
    assert Folder(file).pods() == ["a-n1"]


def test_a_folder_that_is_not_there_has_no_pods(tmp_path: Path) -> None:
    assert Folder(tmp_path / "none").pods() == []
