from __future__ import annotations

from pathlib import Path

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import dsa, ec, rsa

from kcm import errors
from kcm.helpers.serviceaccount import keys


def pem_of(private: object) -> bytes:
    pem: bytes = private.private_bytes(  # type: ignore[attr-defined]
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )
    return pem


def public_pem_of(private: object) -> bytes:
    pem: bytes = private.public_key().public_bytes(  # type: ignore[attr-defined]
        serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
    )
    return pem


def test_a_new_key_file_is_for_its_owner_only_and_stays(tmp_path: Path) -> None:
    file = tmp_path / "folder" / "sa.key"
    keys.ensure_key_file(file)
    first = file.read_bytes()
    assert file.stat().st_mode & 0o777 == 0o600
    assert keys.read_signing_key(file, "flag").verification.algorithm == "ES256"
    keys.ensure_key_file(file)
    assert file.read_bytes() == first
    assert list(file.parent.iterdir()) == [file]


@pytest.mark.parametrize(
    ("private", "algorithm"),
    [
        (rsa.generate_private_key(65537, 2048), "RS256"),
        (ec.generate_private_key(ec.SECP256R1()), "ES256"),
        (ec.generate_private_key(ec.SECP384R1()), "ES384"),
        (ec.generate_private_key(ec.SECP521R1()), "ES512"),
    ],
)
def test_the_kind_of_key_decides_the_algorithm(private: object, algorithm: str) -> None:
    key = keys.parse_signing_key(pem_of(private))
    assert key.verification.algorithm == algorithm
    assert keys.parse_verification_keys(public_pem_of(private))[0].id == key.verification.id


def test_a_file_of_several_keys_gives_all_of_them() -> None:
    one, two = ec.generate_private_key(ec.SECP256R1()), ec.generate_private_key(ec.SECP256R1())
    found = keys.parse_verification_keys(b"words\n" + public_pem_of(one) + pem_of(two))
    assert [key.id for key in found] == [
        keys.parse_signing_key(pem_of(private)).verification.id for private in (one, two)
    ]


def test_a_private_key_is_in_no_repr() -> None:
    key = keys.parse_signing_key(pem_of(ec.generate_private_key(ec.SECP256R1())))
    assert "private" not in repr(key)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "it has no key in PEM format"),
        (pem_of(dsa.generate_private_key(1024)), "keys must be RSA of at least 2048 bits"),
        (pem_of(rsa.generate_private_key(65537, 1024)), "keys must be RSA of at least 2048 bits"),
        (public_pem_of(ec.generate_private_key(ec.SECP256R1())), "there is no private key"),
        (b"-----BEGIN PRIVATE KEY-----\nxxxx\n-----END PRIVATE KEY-----", "a key cannot be read"),
    ],
)
def test_a_file_that_cannot_sign_is_refused_by_its_flag(
    content: bytes, message: str, tmp_path: Path
) -> None:
    file = tmp_path / "key"
    file.write_bytes(content)
    with pytest.raises(errors.ConfigurationError) as caught:
        keys.read_signing_key(file, "service-account-signing-key-file")
    assert caught.value.message.startswith(f"--service-account-signing-key-file {file}: {message}")


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(errors.ConfigurationError, match=r"--flag .*none: No such file"):
        keys.read_verification_keys([tmp_path / "none"], "flag")
