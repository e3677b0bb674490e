"""Files that are replaced as a whole or not at all."""

import os
import signal
import stat
import subprocess
import sys

import pytest

from crfit import files
from crfit.files import check_writable, replacing, replacing_folder


def test_new_file(tmp_path):
    path = tmp_path / "new"
    with replacing(path) as unfinished:
        assert unfinished.parent == path.parent
        unfinished.write_text("content")
        assert not path.exists()
    assert path.read_text() == "content"
    assert os.listdir(tmp_path) == ["new"]


@pytest.mark.parametrize("error", [RuntimeError, KeyboardInterrupt, SystemExit])
def test_failure_leaves_the_old_file_and_no_trace(tmp_path, error):
    path = tmp_path / "old"
    path.write_text("old")

    def fails() -> None:
        with replacing(path) as unfinished:
            unfinished.write_text("half")
            raise error

    with pytest.raises(error):
        fails()
    assert path.read_text() == "old"
    assert os.listdir(tmp_path) == ["old"]


def test_failed_rename_leaves_no_trace(tmp_path, monkeypatch):
    def fails(*_):
        raise OSError("disk error")

    monkeypatch.setattr(os, "replace", fails)
    with pytest.raises(OSError, match="disk error"), replacing(tmp_path / "new") as unfinished:
        unfinished.write_text("content")
    assert os.listdir(tmp_path) == []


def test_file_is_on_the_disk_before_it_has_its_name(tmp_path, monkeypatch):
    calls = []
    sync, rename = os.fsync, os.replace
    monkeypatch.setattr(os, "fsync", lambda handle: (calls.append("sync"), sync(handle))[1])
    monkeypatch.setattr(os, "replace", lambda a, b: (calls.append("rename"), rename(a, b))[1])
    with replacing(tmp_path / "new") as unfinished:
        unfinished.write_text("content")
    assert calls[:2] == ["sync", "rename"]


def test_a_library_that_makes_the_file_anew_does_not_change_its_permissions(tmp_path):
    mask = os.umask(0o022)
    try:
        with replacing(tmp_path / "new") as unfinished:
            unfinished.unlink()
            os.close(os.open(unfinished, os.O_CREAT | os.O_WRONLY, 0o600))
    finally:
        os.umask(mask)
    assert stat.S_IMODE((tmp_path / "new").stat().st_mode) == 0o644


def test_permissions(tmp_path):
    mask = os.umask(0o027)
    try:
        with replacing(tmp_path / "new") as unfinished:
            unfinished.write_text("content")
    finally:
        os.umask(mask)
    assert stat.S_IMODE((tmp_path / "new").stat().st_mode) == 0o640
    (tmp_path / "new").chmod(0o604)
    with replacing(tmp_path / "new") as unfinished:
        unfinished.unlink()
        unfinished.write_text("made anew")
    assert stat.S_IMODE((tmp_path / "new").stat().st_mode) == 0o604


def test_links_stay_links(tmp_path):
    (tmp_path / "folder").mkdir()
    target, link = tmp_path / "folder" / "target", tmp_path / "link"
    target.write_text("old")
    link.symlink_to(target)
    with replacing(link) as unfinished:
        unfinished.write_text("new")
    assert link.is_symlink()
    assert target.read_text() == "new"
    dangling = tmp_path / "dangling"
    dangling.symlink_to(tmp_path / "folder" / "absent")
    with replacing(dangling) as unfinished:
        unfinished.write_text("new")
    assert (tmp_path / "folder" / "absent").read_text() == "new"


def test_longest_name(tmp_path):
    path = tmp_path / ("x" * 255)
    with replacing(path) as unfinished:
        unfinished.write_text("content")
    assert path.read_text() == "content"


def test_what_is_no_file_is_not_replaced(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "folder").mkdir()
    for name in ("pipe", "folder", "absent/new"):
        with pytest.raises(OSError), replacing(tmp_path / name):
            pytest.fail("the block must not run")
    assert sorted(os.listdir(tmp_path)) == ["folder", "pipe"]


def test_places_that_cannot_be_written_to_are_told_before(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "file").write_text("old")
    for name, reason in (
        ("", "is a folder"),
        ("pipe", "is not a regular file"),
        ("absent/new", f"there is no folder {tmp_path / 'absent'}: create it first"),
        ("file/new", f"there is no folder {tmp_path / 'file'}"),
    ):
        with pytest.raises(OSError, match=reason) as caught:
            check_writable(tmp_path / name)
        assert caught.value.filename == str(tmp_path / name)
    with pytest.raises(OSError, match="the file name is empty"):
        check_writable("")
    with pytest.raises(OSError, match="too long"):
        check_writable(tmp_path / ("x" * 256))
    check_writable(tmp_path / "pipe", regular=False)
    for name in ("file", "new"):
        check_writable(tmp_path / name)
    assert (tmp_path / "file").read_text() == "old"
    assert not (tmp_path / "new").exists()


@pytest.mark.skipif(os.geteuid() == 0, reason="nothing is closed to root")
def test_closed_folder(tmp_path):
    (tmp_path / "closed").mkdir(mode=0o500)
    with pytest.raises(OSError, match="may not be written to"):
        check_writable(tmp_path / "closed" / "new")


def kill_a_writer(path):
    """Kill a process while it writes"""
    script = f"""
import os, signal
from crfit.files import replacing
with replacing({str(path)!r}) as unfinished:
    unfinished.write_text("half")
    os.kill(os.getpid(), signal.SIGKILL)
"""
    assert subprocess.run([sys.executable, "-c", script]).returncode == -signal.SIGKILL
    assert len([*path.parent.glob(".crfit-????????????????.tmp")]) == 1


@pytest.mark.skipif(not hasattr(os, "fork"), reason="temporary files are locked on POSIX systems only")
def test_the_next_write_removes_what_a_killed_process_left(tmp_path):
    path, others = tmp_path / "new", [".crfit-notes.tmp", ".crfit-0123456789abcdef.tmp.txt"]
    for name in others:
        (tmp_path / name).write_text("not ours")
    kill_a_writer(path)
    with replacing(tmp_path / "another") as unfinished:
        unfinished.write_text("content")
        with replacing(path) as second:  # leaves the one in use alone
            second.write_text("more")
            assert unfinished.read_text() == "content"
            assert len([*tmp_path.glob(".crfit-????????????????.tmp")]) == 2
    assert sorted(os.listdir(tmp_path)) == sorted([*others, "another", "new"])


def replace_folder(path):
    with replacing_folder(path) as unfinished:
        (unfinished / "new").write_text("new")


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="other systems cannot exchange folders")
def test_a_folder_is_replaced_in_one_step(tmp_path, monkeypatch):
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "old").write_text("old")
    monkeypatch.setattr(os, "rename", lambda *_: pytest.fail("there is no folder for a moment"))
    replace_folder(tmp_path / "folder")
    assert os.listdir(tmp_path) == ["folder"]
    assert os.listdir(tmp_path / "folder") == ["new"]


@pytest.mark.parametrize("fails", [False, True])
def test_a_folder_is_replaced_where_the_system_cannot_exchange(tmp_path, monkeypatch, fails):
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "old").write_text("old")
    monkeypatch.setattr(files, "_exchange", lambda *_: False)
    rename = os.rename

    def renamed(one, other):
        if fails and os.path.exists(os.path.join(one, "new")):
            raise OSError("no")
        rename(one, other)

    monkeypatch.setattr(os, "rename", renamed)
    if fails:
        with pytest.raises(OSError, match="no"):
            replace_folder(tmp_path / "folder")
    else:
        replace_folder(tmp_path / "folder")
    assert os.listdir(tmp_path) == ["folder"]
    assert os.listdir(tmp_path / "folder") == ["old" if fails else "new"]
