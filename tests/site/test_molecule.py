from tests.support import playbooks


def test_whole_site_with_other_settings():
    assert playbooks.run("molecule_alternative", "molecule", "test", "-s", "alternative").rc == 0
