"""The public names, which are imported when they are first used."""

import pytest

import latentmetric


@pytest.mark.parametrize("name", latentmetric.__all__)
def test_every_public_name_is_there(name):
    assert getattr(latentmetric, name) is getattr(latentmetric, name)
    assert name in dir(latentmetric)


def test_parts_are_there_and_others_are_not():
    assert latentmetric.io.open_rows is not None
    with pytest.raises(AttributeError, match="no attribute 'magic'"):
        _ = latentmetric.magic
