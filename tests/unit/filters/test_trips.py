import pytest

from isthmus.filters.trips import trips

ITEM = {"ansible_loop_var": "item", "changed": False}


@pytest.mark.parametrize(
    ("action", "result", "expected"),
    [
        ("host_files", {"changed": True}, 1),
        ("ansible.builtin.assert", {}, 0),
        ("ansible.builtin.include_tasks", {}, 0),
        ("ansible.builtin.command", {"attempts": 3}, 3),
        ("ansible.builtin.copy", {"results": [ITEM, ITEM]}, 2),
        ("ansible.builtin.copy", {"results": [ITEM, ITEM | {"skipped": True}]}, 1),
        ("ansible.builtin.find", {"results": ["of", "its", "own"]}, 1),
        ("ansible.builtin.find", {"results": [{"path": "/"}]}, 1),
        ("ansible.builtin.find", {"results": []}, 1),
    ],
)
def test_task_is_counted_as_often_as_it_went_to_its_host(action, result, expected):
    assert trips(action, result) == expected
