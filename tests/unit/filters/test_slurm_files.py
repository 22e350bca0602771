import pytest

from isthmus.filters.slurm.files import slurm_openmpi, slurm_protected, slurm_protected_file

BEGIN, END = "# BEGIN isthmus: slurm_openmpi_params\n", "# END isthmus: slurm_openmpi_params\n"
WANTED = f"{BEGIN}a = 1\n{END}"


@pytest.mark.parametrize(
    ("before", "params", "after"),
    [
        ("x = y\n", {"a": 1}, f"x = y\n{WANTED}"),
        ("x = y", {"a": 1}, f"x = y\n{WANTED}"),
        ("", {"a": 1}, WANTED),
        (f"x = y\n{WANTED}z = 1\n", {"a": 1}, f"x = y\n{WANTED}z = 1\n"),
        (f"x = y\n{BEGIN}b = 2\n{END}z = 1\n", {"a": 1}, f"x = y\n{WANTED}z = 1\n"),
        (f"x = y\n{WANTED}", {}, "x = y\n"),
        ("x = y\n", {}, "x = y\n"),
    ],
)
def test_block_is_added_in_place_and_the_rest_stays(before, params, after):
    assert slurm_openmpi(before, params) == after


def test_secret_is_known_by_its_hash_alone(tmp_path):
    key = tmp_path / "munge.key"
    key.write_bytes(b"\xff\x00")
    assert slurm_protected_file(str(key), "munge:munge 0400").startswith("munge:munge 0400 ")
    key.write_text("text")
    assert slurm_protected_file(str(key), "munge:munge 0400") == slurm_protected("text", "munge:munge 0400")
    assert "text" not in slurm_protected("text", "munge:munge 0400")
