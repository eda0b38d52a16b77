"""The report of a run: gpu.json, gpu.md and logs.tar.gz.

Each is replaced whole after every change (a temporary file, fsync, rename), so
that a run killed at any time leaves what was measured before. "row written" is
told on stdout only once the row is in the file. A file that cannot be written
ends nothing: stderr tells, and the next change tries again.
"""

import io
import json
import math
import os
import pathlib
import sys
import tarfile
import time

LOG_BYTES = 1 << 20  # of one log: its end


def say(line, number=1):
    """A line on stdout (1) or stderr (2); where nobody takes it, the line is
    lost and nothing else."""
    try:
        print(line, file=sys.stderr if number == 2 else sys.stdout, flush=True)
    except (OSError, ValueError):
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, number)  # takes what is still buffered
        os.close(null)


def complain(line):
    say(f"gpu.sh: {line}", 2)


def write_atomically(path, data):
    """Under the lock of out_folder.py, which makes the name this run's."""
    temporary = path.with_name(f".{path.name}.new")
    temporary.unlink(missing_ok=True)  # of a killed run
    with open(temporary, "xb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
    os.replace(temporary, path)


def plain(value):
    """What JSON and UTF-8 can hold: NaN and infinities become words."""
    if isinstance(value, dict):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if isinstance(value, (int, float, bool)) or value is None:
        return value
    return str(value).encode(errors="backslashreplace").decode()


class Report:
    """Holds everything told so far; every method writes it.

    out: a folder of out_folder.claim. OSError where not even the first, empty
    report can be written.
    """

    def __init__(self, out, arguments):
        self.out = out
        self.logs = []
        self.unwritten = None  # why the last gpu.json or gpu.md was not
        self._started = time.monotonic()
        self.content = {"finished": False, "arguments": plain(arguments),
                        "running": None, "facts": {}, "steps": [],
                        "left_out": [], "rows": []}
        self._write()

    def seconds(self):
        return round(time.monotonic() - self._started, 1)

    def fact(self, name, value):
        self.content["facts"][name] = plain(value)
        self.write()

    def begin(self, step):
        self.content["running"] = {"step": step, "since": self.seconds()}
        self.write()
        say(f"gpu.sh: {step} ...")

    def doing(self, what):
        """Names the row in work, so that a killed run tells where it was."""
        if self.content["running"]:
            self.content["running"]["row"] = what
            self.write()

    def row(self, **row):
        rows = self.content["rows"]
        step = (self.content["running"] or {}).get("step", "")
        rows.append(plain({"step": step, **row}))
        written = self.write()
        say(f"gpu.sh: row {'' if written else 'NOT '}written: {len(rows)} "
            f"{json.dumps(rows[-1])}")

    def end(self, step, status, detail, seconds):
        self.content["running"] = None
        self.content["steps"].append(
            {"step": step, "status": status, "detail": plain(str(detail)),
             "seconds": round(seconds, 1)})
        self.write()
        self.write_logs()
        say(f"gpu.sh: {step}: {status} ({seconds:.0f} s): {detail}")

    def left_out(self, what, why):
        self.content["left_out"].append(
            {"what": plain(what), "why": plain(str(why))})
        self.write()
        say(f"gpu.sh: left out: {what}: {why}")

    def failed(self):
        """Whether a step or a row did: the step of a failed row may have ended
        otherwise, cut off by time."""
        return any(step["status"] == "FAILED"
                   for step in self.content["steps"]) or any(
            row.get("verdict") == "FAILED" for row in self.content["rows"])

    def finish(self, ended=""):
        """ended: why the run ended early, if it did."""
        self.content["running"] = None
        self.content["finished"] = not ended
        if ended:
            self.content["ended"] = plain(ended)
        self.content["seconds"] = self.seconds()
        self.write()
        self.write_logs()

    def write(self):
        """True once both files are written."""
        before, self.unwritten = self.unwritten, None
        try:
            self._write()
        except OSError as failure:
            self.unwritten = failure
            if not before:
                complain(f"the report is not written: {failure}")
        return not self.unwritten

    def _write(self):
        write_atomically(self.out / "gpu.json", json.dumps(
            self.content, indent=1, allow_nan=False).encode())
        write_atomically(self.out / "gpu.md", self.page().encode())

    def write_logs(self):
        try:
            write_atomically(self.out / "logs.tar.gz", self.packed_logs())
        except OSError as failure:
            complain(f"logs are not written: {failure}")

    def packed_logs(self):
        data = io.BytesIO()
        with tarfile.open(fileobj=data, mode="w:gz", compresslevel=3) as tar:
            for folder in self.logs:
                for path in sorted(pathlib.Path(folder).glob("*")):
                    if path.is_file():
                        text = path.read_bytes()[-LOG_BYTES:]
                        entry = tarfile.TarInfo(f"{folder.name}/{path.name}")
                        entry.size = len(text)
                        tar.addfile(entry, io.BytesIO(text))
        return data.getvalue()

    def page(self):
        """The same for people: steps, then a table for each step's rows."""
        content = self.content
        lines = ["# GPU report", ""]
        if content["running"]:
            lines += [f"Not finished; running: {content['running']}", ""]
        lines += [f"- {key}: {value}"
                  for key, value in content["facts"].items()]
        lines += ["", *table(content["steps"])]
        if content["left_out"]:
            lines += ["", "## Left out", "", *table(content["left_out"])]
        steps = dict.fromkeys(row["step"] for row in content["rows"])
        for step in steps:
            rows = [{key: value for key, value in row.items() if key != "step"}
                    for row in content["rows"] if row["step"] == step]
            lines += ["", f"## {step}", "", *table(rows)]
        return "\n".join(lines) + "\n"


def table(rows):
    keys = list(dict.fromkeys(key for row in rows for key in row))
    if not keys:
        return []
    lines = ["| " + " | ".join(keys) + " |", "|" + "---|" * len(keys)]
    for row in rows:
        cells = (" ".join(str(row.get(key, "")).replace("|", "/").split())
                 for key in keys)
        lines.append("| " + " | ".join(cells) + " |")
    return lines
