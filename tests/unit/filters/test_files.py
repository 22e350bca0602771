from isthmus.filters.files import files_removed, files_written


def test_contents_become_entries_in_their_order():
    entries = files_written({"/b": "1", "/a": ""})
    assert entries == [{"path": "/b", "content": "1"}, {"path": "/a", "content": ""}]


def test_paths_become_entries_that_remove():
    assert files_removed(["/a"]) == [{"path": "/a", "state": "absent"}]
