"""The report's folder and the scratch folder next to it, held by one run.

The lock is flock's on OUT/.lock. The process that clears the scratch folder
inherits it, so that the next run starts after that. OUT.scratch is removed
only where it holds the marker of an earlier run.
"""

import fcntl
import os
import pathlib
import shutil
import time

LOCK = ".lock"
MARKER = ".made-by-gpu-sh"
WAIT = 3  # seconds for a run that was just killed to clear its scratch folder


class Refused(Exception):
    """The folder cannot be used; names it and what to do."""


def path_of(flag, words):
    """An absolute path; line breaks would end the words of engine.py."""
    try:
        path = pathlib.Path(words).resolve()
    except (OSError, RuntimeError) as failure:
        raise Refused(f"{flag}={words!r}: {failure}") from None
    text = os.fsencode(path).decode(errors="replace")
    if not words or not text.isprintable() or "\ufffd" in text:
        raise Refused(f"{flag}={words!r}: expected a path of printable "
                      f"characters in UTF-8")
    return path


def claim(words):
    """(folder, scratch folder), both made and this process's until it ends."""
    out = path_of("--out", words)
    flag = f"--out={words}"
    if out == out.parent:
        raise Refused(f"{flag}: expected a folder below another; its scratch "
                      f"folder lies next to it")
    scratch = out.with_name(out.name + ".scratch")
    try:
        if out.exists() and not out.is_dir():
            raise Refused(f"{flag}: it exists and is not a folder; choose "
                          f"another")
        if (out / MARKER).exists():
            raise Refused(f"{flag}: it is the scratch folder of another run; "
                          f"choose another")
        out.mkdir(parents=True, exist_ok=True)
        lock(flag, out / LOCK)
        make_scratch(flag, scratch)
    except OSError as failure:
        raise Refused(f"{flag}: {failure}; choose a folder that can be "
                      f"written, in one that can be, too") from None
    return out, scratch


def lock(flag, path):
    """Stays open on purpose: the lock ends with its last process."""
    file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o666)
    until = time.monotonic() + WAIT
    while True:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            break
        except BlockingIOError:
            if time.monotonic() < until:
                time.sleep(0.05)
                continue
            holder = os.pread(file, 20, 0).decode(errors="replace").strip()
            os.close(file)
            raise Refused(f"{flag}: another run writes there (process "
                          f"{holder or 'unknown'}); wait for it or choose "
                          f"another folder") from None
    os.ftruncate(file, 0)
    os.pwrite(file, b"%d\n" % os.getpid(), 0)


def make_scratch(flag, scratch):
    """Empty but for the marker; refuses what no run has made."""
    if os.path.lexists(scratch):
        if not marked(scratch):
            raise Refused(
                f"{flag}: {scratch} is not a scratch folder of this script (it "
                f"has no {MARKER}); move it away or choose another --out")
        remove_scratch(scratch)
    scratch.mkdir()
    (scratch / MARKER).write_text("removed by the next tests/gpu.sh\n")


def marked(scratch):
    return not scratch.is_symlink() and (scratch / MARKER).is_file()


def remove_scratch(scratch):
    """As far as it can be; the marker last, so that what a kill leaves of
    the folder is still known."""
    if not marked(scratch):
        return
    try:
        for entry in list(os.scandir(scratch)):
            if entry.is_dir(follow_symlinks=False):
                shutil.rmtree(entry, ignore_errors=True)
            elif entry.name != MARKER:
                os.unlink(entry)
        if os.listdir(scratch) == [MARKER]:
            os.unlink(scratch / MARKER)
            os.rmdir(scratch)
    except OSError:
        pass
