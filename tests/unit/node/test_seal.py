import pytest
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey

from isthmus.node.seal import SealError, seal, unseal

OWN = X25519PrivateKey.generate()
PUBLIC = OWN.public_key().public_bytes_raw()


def test_only_the_key_reads_it():
    sealed = seal(b"munge", PUBLIC, b"c3")
    assert b"munge" not in sealed
    assert unseal(sealed, OWN, b"c3") == b"munge"
    with pytest.raises(SealError):
        unseal(sealed, X25519PrivateKey.generate(), b"c3")


def test_two_seals_differ():
    assert seal(b"same", PUBLIC, b"") != seal(b"same", PUBLIC, b"")


def test_seal_for_another_context_is_refused():
    with pytest.raises(SealError):
        unseal(seal(b"munge", PUBLIC, b"c3"), OWN, b"c4")


@pytest.mark.parametrize("place", [0, 31, 32, -1])
def test_changed_byte_is_seen(place):
    sealed = bytearray(seal(b"munge", PUBLIC, b"c3"))
    sealed[place] ^= 1
    with pytest.raises(SealError):
        unseal(bytes(sealed), OWN, b"c3")


@pytest.mark.parametrize("key", [b"", b"short", bytes(32), b"x" * 33])
def test_key_that_is_none_is_refused(key):
    """Among them a point of small order, with which everybody would know the secret."""
    with pytest.raises(SealError):
        seal(b"munge", key, b"c3")


@pytest.mark.parametrize("sealed", [b"", b"x" * 31, b"x" * 32, b"x" * 40])
def test_message_that_is_none_is_refused(sealed):
    with pytest.raises(SealError):
        unseal(sealed, OWN, b"c3")
