"""Pages that list what the code has are complete."""

from __future__ import annotations

import inspect
import re
from pathlib import Path
from types import ModuleType

import pytest

from docs import (
    generate_api_resources,
    generate_configuration,
    generate_controllers,
    generate_envtest_flags,
    generate_kinds,
)
from kcm.manager.queues import TICKS_QUEUE
from kcm.options.manager import ManagerOptions
from kcm.redisio import RedisIO
from kcm.redisio.embedded import EmbeddedServer
from kcm.redisio.keys import Keys
from kcm.registry import controller_types
from kcm.settings import Settings
from tests.chaos import faults
from tests.docs.pages import ROOT, blocks
from tests.docs.workplace import Workplace

DOCS = ROOT / "docs"
KEY = re.compile(r"`(kcm:[^` ]+|kcm:celery:[^`]*)`")
IMPLIED = re.compile(r"process_\w+|\w+_created$")  # metrics that are explained together


@pytest.mark.parametrize(
    "generator",
    [
        generate_api_resources,
        generate_configuration,
        generate_controllers,
        generate_envtest_flags,
        generate_kinds,
    ],
    ids=lambda generator: generator.PAGE.name,
)
def test_a_generated_page_is_up_to_date(generator: ModuleType) -> None:
    assert generator.page() == generator.PAGE.read_text("utf-8"), (
        f"run: python docs/{generator.__name__.rpartition('.')[2]}.py"
    )


def test_the_configuration_file_in_it_is_accepted(tmp_path: Path) -> None:
    (block,) = blocks(DOCS / "configuration.md", "yaml")
    (tmp_path / "kcm.yaml").write_text(block.text)
    options = ManagerOptions.load({"config": str(tmp_path / "kcm.yaml")}, {})
    assert options.generic.controllers == ("*", "-podgc")


def test_the_dedicated_workers_serve_every_queue() -> None:
    text = (DOCS / "operations.md").read_text("utf-8").partition("## Dedicating workers")[2]
    section = text.partition("\n## ")[0]
    served = {queue for chosen in re.findall(r" -Q (\S+)", section) for queue in chosen.split(",")}
    assert served == {TICKS_QUEUE, *(kind.group for kind in controller_types())}
    assert served == set(re.findall(r"`(\w+)` \(", section.partition("\n\n<!--")[0]))


def key_patterns() -> set[str]:
    """Every key name in the code, with its parts in angle brackets."""
    keys, patterns = Keys(), set()
    for name, method in inspect.getmembers(keys, inspect.ismethod):
        if not name.startswith("_"):
            parts = [f"<{part}>" for part in inspect.signature(method).parameters]
            patterns.add(method(*parts))
    return patterns


def test_every_key_is_explained() -> None:
    text = (DOCS / "redis-keys.md").read_text("utf-8")
    missing = [key for key in key_patterns() if f"`{key}`" not in text and key != "kcm:celery:"]
    assert not missing


def test_every_key_of_a_running_system_is_explained(workplace: Workplace) -> None:
    explained = [_as_pattern(key) for key in KEY.findall((DOCS / "redis-keys.md").read_text())]
    io = RedisIO(Settings(redis_url=EmbeddedServer(workplace.folder / ".kcm").url))
    try:
        names = [key.decode() for key in io.execute("KEYS", "*")]
    finally:
        io.close()
    strange = [name for name in names if not any(p.fullmatch(name) for p in explained)]
    assert names
    assert not strange


def _as_pattern(key: str) -> re.Pattern[str]:
    escaped = re.escape(key).replace(r"\*", ".*")
    # Parts of queues are listed one by one, so `<part>` itself explains none.
    return re.compile(re.sub(r"<part>", "$^", re.sub(r"<(?!part)[\w_]+>", ".+", escaped)))


def test_every_metric_is_explained(workplace: Workplace) -> None:
    text = (DOCS / "metrics.md").read_text("utf-8")
    for page in workplace.metrics_pages():
        families = re.findall(r"^# TYPE (\S+)", page, re.MULTILINE)
        missing = [name for name in families if f"`{name}`" not in text]
        assert families
        assert [name for name in missing if not IMPLIED.match(name)] == []


def test_every_fault_is_explained() -> None:
    text = (DOCS / "operations.md").read_text("utf-8")
    named = {fault.__name__ for fault in faults.FAULTS}
    assert not [name for name in named if f"`{name}`" not in text]
