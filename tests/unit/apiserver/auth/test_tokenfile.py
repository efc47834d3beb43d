from __future__ import annotations

from pathlib import Path

import pytest

from kcm import errors
from kcm.apiserver.auth import tokenfile
from kcm.apiserver.auth.attributes import User


def read(folder: Path, text: str) -> dict[str, User]:
    path = folder / "tokens.csv"
    path.write_text(text)
    return tokenfile.read(path)


def test_a_line_is_token_user_uid_and_groups(tmp_path: Path) -> None:
    text = '# people\nt1,jane,1,"dev,ops"\n\nt2,bob,2\n"t,3", carl ,3,one\n'
    assert read(tmp_path, text) == {
        "t1": User("jane", "1", ("dev", "ops")),
        "t2": User("bob", "2"),
        "t,3": User("carl", "3", ("one",)),
    }


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("t1,jane\n", "line 1: at least 3 columns"),
        ("t1,jane,1\nt2,bob,2,dev,ops\n", "line 2: at most 4 columns"),
        (",jane,1\n", "line 1: the token is empty"),
        ("t1,,1\n", "line 1: the user name is empty"),
        ("t1,a,1\nt1,b,2\n", "line 2: the token is there already"),
        ("a b,jane,1\n", "line 1: the token has a space"),
        ('t1,a,1\n"t2,b,2\n', "line 2: "),
    ],
)
def test_a_fault_is_told_with_its_line_and_without_the_token(
    tmp_path: Path, text: str, message: str
) -> None:
    with pytest.raises(errors.ConfigurationError) as caught:
        read(tmp_path, text)
    assert f"tokens.csv, {message}" in caught.value.message
    assert "t1" not in caught.value.message


def test_a_file_that_is_missing_is_told_with_its_flag(tmp_path: Path) -> None:
    with pytest.raises(errors.ConfigurationError, match=r"--token-auth-file .*No such file"):
        tokenfile.read(tmp_path / "none")
