"""The groups of users with and without an account."""

from __future__ import annotations

import grp
import os
import pwd

import pytest

from kcm.kubelet.files.groups import NOBODY_GROUP, primary_group

NO_ACCOUNT = 612_001


def without_account(gid: int) -> bool:
    try:
        pwd.getpwuid(gid)
    except KeyError:
        return True
    return False


def test_a_user_has_the_group_of_its_account_or_of_its_own_number() -> None:
    for account in pwd.getpwall():
        if account.pw_uid != os.geteuid():
            assert primary_group(account.pw_uid) in {
                one.pw_gid for one in pwd.getpwall() if one.pw_uid == account.pw_uid
            }
    assert primary_group(os.geteuid()) == os.getegid()
    assert primary_group(NO_ACCOUNT) == NO_ACCOUNT


def test_a_number_that_is_a_group_of_the_machine_gives_nobody_that_group() -> None:
    groups = [one.gr_gid for one in grp.getgrall() if without_account(one.gr_gid)]
    if not groups:
        pytest.skip("each group of this machine has an account of its number")
    assert {primary_group(gid) for gid in groups} == {NOBODY_GROUP}
