"""Files of environment variables, after TestParseEnv of pkg/kubelet/util/env/env_util_test.go."""

from __future__ import annotations

import pytest

from kcm.errors import ContainerConfigError
from kcm.kubelet.environment.env_files import find_value


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("   A='val1'\n\t\tK='val2'\nC='val3'\n", "val2"),
        ("# comment\n\nA='foo'\n   # another\n \t\nK='bar'\n", "bar"),
        ("A='foo'\n", ""),
        ("K='foo#no comment'\n", "foo#no comment"),
        ("K='   foo bar   '\n", "   foo bar   "),
        ("A='foo'\nK=''\n", ""),
        ("K='foo=bar=baz'\n", "foo=bar=baz"),
        ("A='foo' # one\nK='bar' # comment\n", "bar"),
        ("K='$VAR ${VAR} $HOME foo$BAR-${HOME}_$'", "$VAR ${VAR} $HOME foo$BAR-${HOME}_$"),
        ("K='!@#$%^&*()_+-=[]{}|;:,.<>?/\\n\\t'", "!@#$%^&*()_+-=[]{}|;:,.<>?/\\n\\t"),
        ("K='中文 Español 🌍'", "中文 Español 🌍"),
        ("K='one\n two\r\n\nthree'\nA='x'\n", "one\n two\n\nthree"),
        ("K= 'val1'\n", ""),
        ("A= 'val1'\nK='b'", "b"),
        ("K='first'\nK='second'\nwrong\n", "first"),
    ],
)
def test_a_variable_has_its_value(text: str, value: str) -> None:
    assert find_value(text, "K") == value


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("K = 'val1'\n", "at line 1: whitespace before '=' is not allowed"),
        ("A='foo'\n='foo'\nK='bar'\n", "at line 2: empty variable name"),
        ("A='foo'\nINVALID\nK='bar'\n", "at line 2: missing '='"),
        ("A='foo'\nK=bar\n", "at line 2: value must be enclosed in single quotes"),
        ('K="bar"\n', "value must be enclosed in single quotes"),
        ("K=\n", "value must be enclosed in single quotes"),
        ("K='foo''bar'", "unexpected content after closing quote"),
        ("K='bar\nA='baz'\n", "at line 2: unexpected content after closing quote"),
        ("K='bar'baz\n", "unexpected content after closing quote"),
        ("K='value with \\'nested\\' quotes'\n", "unexpected content after closing quote"),
        ("A='x'\nK='bar\n", "starting at line 2: unclosed single quote"),
    ],
)
def test_a_wrong_line_is_an_error(text: str, why: str) -> None:
    with pytest.raises(ContainerConfigError, match="invalid environment variable format") as error:
        find_value(text, "K")
    assert why in str(error.value)
