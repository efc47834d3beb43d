from __future__ import annotations

from pathlib import Path

import pytest

from kcm import errors
from kcm.cli.main import main
from kcm.cli.up.banner import banner
from kcm.cli.up.plan import UpOptions, process_specs
from kcm.settings import Settings


def settings(tmp_path: Path, url: str = "") -> Settings:
    return Settings(state_dir=tmp_path, redis_url=url)


def test_each_process_has_its_name_log_and_environment(tmp_path: Path) -> None:
    options = UpOptions(workers=2, concurrency=3, pool="threads", manager={"KCM_X": "1"})
    specs = {spec.name: spec for spec in process_specs(options, settings(tmp_path))}
    assert list(specs) == ["beat", "worker1", "worker2", "flower", "apiserver"]
    command = list(specs["worker2"].command)
    assert command[-6:] == ["-n", "worker2@%h", "-c", "3", "-P", "threads"]
    assert "-E" in command
    assert specs["beat"].log == tmp_path / "log" / "beat.log"
    assert specs["flower"].env["KCM_X"] == "1"
    assert specs["flower"].env["KCM_FLOWER_PORT"] == "5555"


def test_a_port_of_0_leaves_a_process_out(tmp_path: Path) -> None:
    options = UpOptions(flower_port=0, api_port=0)
    names = [spec.name for spec in process_specs(options, settings(tmp_path))]
    assert names == ["beat", "worker"]


def test_the_banner_shows_addresses_and_no_redis_password(tmp_path: Path) -> None:
    url = "redis://me:secret@h:1/0"
    text = banner(settings(tmp_path, url), UpOptions(), "Redis 7", tmp_path / "flower-password")
    assert "secret" not in text
    for shown in ("redis://h:1/0", "http://127.0.0.1:5555/", ":10257/metrics", "get rs,pods -w"):
        assert shown in text


def test_the_banners_lines_name_the_state_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("KCM_FLOWER_PASSWORD", raising=False)
    text = banner(settings(tmp_path), UpOptions(), "Redis 7", tmp_path / "flower-password")
    assert text.count(f"KCM_STATE_DIR={tmp_path}") == 3


@pytest.mark.parametrize("name", main.list_commands(None))  # type: ignore[arg-type] # not used
def test_every_command_explains_itself(name: str) -> None:
    command = main.get_command(None, name)  # type: ignore[arg-type] # not used
    assert command is not None
    assert command.help


def test_a_long_state_folder_is_refused_with_advice(tmp_path: Path) -> None:
    from kcm.cli.up.plan import redis_spec
    from kcm.redisio.embedded import EmbeddedServer

    with pytest.raises(errors.ConfigurationError, match="KCM_STATE_DIR"):
        redis_spec(EmbeddedServer(tmp_path / ("x" * 100), binary="none"))
