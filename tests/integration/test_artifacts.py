"""Programs come from a release site and a mirror that a local HTTP server plays, good and bad ones."""

import os
import socket
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from werkzeug import Response

from isthmus.artifacts.main import run
from isthmus.clients.build import download
from tests.support.files.releases import archive, arguments, release, sha256, write_mirror, write_table

CONTENT = b"#!/bin/sh\necho tool\n" * 20_000
DIGEST = sha256(CONTENT)
FILE = "/tool-1.2.3-amd64"


@pytest.fixture
def said():
    return []


@pytest.fixture
def prepare(tmp_path, httpserver, said):
    """Write a table with `tool`, whose release lies on the local server; give the call that obtains it."""

    def write(digest=DIGEST, member=None, *, dry=False, **changes):
        program = {"package": "example.test/tool"} | ({"member": member} if member else {})
        upstream = {"url": httpserver.url_for("/{program}-{version}-{arch}"), "sha256": {"amd64": digest}}
        table = write_table(tmp_path, tool=release(programs={"tool": program}, upstream=upstream))
        return lambda: run(arguments(table, tmp_path / "cache", **changes), said.append, dry=dry)

    return write


@pytest.fixture
def obtain(prepare):
    """Obtain `tool` and give Ansible's result."""
    return lambda *reported, **changes: prepare(*reported, **changes)()


@pytest.fixture
def serve(httpserver):
    """Serve these answers, one after the other; the server is asked no more often."""

    def call(*answers, path=FILE):
        for answer in answers:
            httpserver.expect_ordered_request(path).respond_with_handler(answer)

    yield call
    httpserver.check()


@pytest.fixture(autouse=True)
def clean_cache(tmp_path):
    """Whatever happened, nothing half is left, and each blob is what its name says."""
    yield
    assert not list((tmp_path / "cache/programs/work").glob("*"))
    for blob in (tmp_path / "cache/programs/blobs").glob("*"):
        assert sha256(blob.read_bytes()) == blob.name


def whole(request):
    return Response(CONTENT)


def cut_off(request):
    """Promise all, give a part."""
    return Response(iter([CONTENT[:300_000]]), headers={"Content-Length": str(len(CONTENT))})


def rest(request):
    begin = int(request.headers["Range"].removeprefix("bytes=").removesuffix("-"))
    assert begin > 200_000
    return Response(CONTENT[begin:], status=206)


def missing(request):
    return Response(status=404)


def program(result):
    assert not result.get("failed"), result
    return result["programs"]["tool"]


def refusal(result):
    assert result.get("failed")
    return result["msg"]


def test_right_file_is_kept_and_found_again(obtain, serve):
    serve(whole)
    first, second = program(obtain()), program(obtain())
    assert (first["way"], second["way"], second["origin"]) == ("upstream", "cache", "upstream")
    assert Path(first["path"]).read_bytes() == CONTENT
    assert os.access(first["path"], os.X_OK)
    assert first["path"] == second["path"]


def test_what_the_run_has_found_is_not_looked_for_again(obtain, serve):
    serve(whole)
    first = obtain()
    Path(first["programs"]["tool"]["path"]).write_bytes(b"damaged")
    again = obtain(known=first)
    assert (again["programs"], again["changed"]) == (first["programs"], False)
    Path(first["programs"]["tool"]["path"]).write_bytes(CONTENT)


def test_what_the_run_has_found_another_way_is_looked_for(obtain, serve, tmp_path):
    serve(whole)
    first = obtain()
    mirror = write_mirror(tmp_path / "mirror", CONTENT)
    assert program(obtain(known=first, order=["mirror"], mirror=str(mirror)))["way"] == "mirror"


def test_what_the_run_has_found_and_lost_is_obtained(obtain, serve):
    serve(whole)
    first = obtain()
    Path(first["programs"]["tool"]["path"]).unlink()
    assert "tool" in refusal(obtain(known=first, order=["cache"]))


def test_member_of_an_archive_is_taken_out(obtain, serve):
    packed = archive(tool=CONTENT, other=b"other")
    serve(lambda request: Response(packed))
    assert program(obtain(sha256(packed), member="release/tool"))["sha256"] == sha256(CONTENT)


def test_archive_without_the_member_is_refused(obtain, serve):
    packed = archive(other=b"other")
    serve(lambda request: Response(packed))
    assert "has no release/tool" in refusal(obtain(sha256(packed), member="release/tool"))


@pytest.mark.parametrize("order", [["upstream"], ["cache", "upstream", "build"], ["upstream", "mirror"]])
def test_wrong_checksum_ends_everything(obtain, serve, tmp_path, httpserver, order):
    mirror = write_mirror(tmp_path / "mirror", CONTENT)
    serve(lambda request: Response(b"evil"))
    reported = refusal(obtain(order=order, mirror=str(mirror)))
    assert httpserver.url_for(FILE) in reported
    assert f"sha256 is {sha256(b'evil')}, expected {DIGEST}" in reported
    assert not list((tmp_path / "cache/programs/blobs").glob("*"))


def test_cut_off_download_goes_on(obtain, serve, said):
    serve(cut_off, rest)
    assert program(obtain())["sha256"] == sha256(CONTENT)
    assert any("asking for the rest" in line for line in said)


def test_cut_off_download_starts_again_when_the_server_has_no_ranges(obtain, serve):
    serve(cut_off, whole)
    assert program(obtain())["sha256"] == sha256(CONTENT)


def test_download_cut_off_for_good_is_refused(obtain, serve):
    serve(*[cut_off] * download.ATTEMPTS)
    reported = refusal(obtain())
    assert "all ways to tool 1.2.3 failed" in reported
    assert "cut off" in reported


def test_missing_file_reports_what_each_way_said(obtain, serve, httpserver):
    serve(missing)
    reported = refusal(obtain(order=["cache", "mirror", "upstream"]))
    assert "cache: not there" in reported
    assert "mirror: artifacts_mirror is not set" in reported
    assert f"upstream: {httpserver.url_for(FILE)}: 404" in reported
    assert "artifacts_order" in reported


def test_missing_file_leads_to_the_next_way(obtain, serve, tmp_path):
    serve(missing)
    mirror = write_mirror(tmp_path / "mirror", CONTENT)
    assert program(obtain(order=["upstream", "mirror"], mirror=str(mirror)))["way"] == "mirror"


def test_slow_server_is_waited_for(obtain, serve):
    serve(lambda request: Response(CONTENT[i : i + 9000] for i in range(0, len(CONTENT), 9000)))
    assert program(obtain())["sha256"] == sha256(CONTENT)


def test_silent_server_is_given_up(tmp_path):
    # A program's bound is a minute; here the client's own is given.
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}/tool"
        with pytest.raises(download.DownloadError, match="no answer in time"):
            download.fetch(url, tmp_path / "tool", stall_s=0.2)
    assert not (tmp_path / "tool").exists()


def test_redirect_is_followed(obtain, serve):
    serve(lambda request: Response(status=302, headers={"Location": "/elsewhere"}))
    serve(whole, path="/elsewhere")
    assert program(obtain())["sha256"] == sha256(CONTENT)


def test_site_that_cannot_be_reached_is_reported(obtain, httpserver):
    httpserver.stop()
    reported = refusal(obtain(order=["upstream"]))
    httpserver.start()
    assert httpserver.url_for(FILE) in reported


@pytest.mark.parametrize("served", [True, False], ids=["http", "folder"])
def test_mirror_gives_the_program(obtain, serve, tmp_path, httpserver, served):
    mirror = write_mirror(tmp_path / "mirror", CONTENT)
    if served:
        serve(lambda request: Response((mirror / "programs.json").read_text()), path="/mirror/programs.json")
        serve(whole, path="/mirror/tool")
    address = httpserver.url_for("/mirror") if served else str(mirror)
    assert program(obtain(order=["mirror"], mirror=address))["way"] == "mirror"


def test_wrong_checksum_of_a_mirror_ends_everything(obtain, tmp_path):
    mirror = write_mirror(tmp_path / "mirror", b"evil", digest=sha256(CONTENT))
    reported = refusal(obtain(order=["mirror", "upstream"], mirror=str(mirror)))
    assert f"{mirror}/tool: sha256 is {sha256(b'evil')}" in reported


def test_mirror_of_another_version_is_passed_over(obtain, tmp_path):
    mirror = write_mirror(tmp_path / "mirror", CONTENT, version="1.2.2")
    assert "has 1.2.2 for amd64" in refusal(obtain(order=["mirror"], mirror=str(mirror)))


@pytest.mark.parametrize("text", [None, "", '{"schema": 2, "programs": []}', '{"schema": 1}'])
def test_mirror_without_an_index_is_refused_first(obtain, tmp_path, text):
    (tmp_path / "mirror").mkdir()
    if text is not None:
        (tmp_path / "mirror/programs.json").write_text(text)
    reported = refusal(obtain(order=["cache", "upstream", "mirror"], mirror=str(tmp_path / "mirror")))
    assert "programs.json" in reported
    assert "artifacts_mirror" in reported


def test_two_runs_at_once_download_once(prepare, serve):
    serve(whole)
    obtain = prepare()
    with ThreadPoolExecutor(2) as pool:
        results = [one.result() for one in [pool.submit(obtain), pool.submit(obtain)]]
    assert sorted(program(result)["way"] for result in results) == ["cache", "upstream"]


def test_damaged_cache_is_reported_not_used(obtain, serve, tmp_path):
    serve(whole)
    blob = program(obtain())["path"]
    Path(blob).write_bytes(CONTENT + b"x")
    reported = refusal(obtain())
    assert f"{blob}: sha256 is" in reported
    assert "remove the file" in reported
    os.unlink(blob)
    serve(whole)
    assert program(obtain())["way"] == "upstream"


def test_what_came_an_unwanted_way_is_not_taken_from_the_cache(obtain, serve, tmp_path):
    serve(whole)
    program(obtain())
    mirror = write_mirror(tmp_path / "mirror", CONTENT)
    assert program(obtain(order=["cache", "mirror"], mirror=str(mirror)))["way"] == "mirror"


def test_dry_run_changes_nothing(tmp_path, said):
    table = write_table(tmp_path, tool=release())
    result = run(arguments(table, tmp_path / "cache", order=["cache", "build"]), said.append, dry=True)
    assert (result["changed"], result["programs"]) == (True, {})
    assert not said


def test_dry_run_names_what_the_cache_has(obtain, serve, tmp_path, said):
    serve(whole)
    known = program(obtain())
    result = obtain(dry=True)
    assert result["changed"] is False
    assert program(result)["path"] == known["path"]
