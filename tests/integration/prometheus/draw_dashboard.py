#!/usr/bin/env python3
"""The dashboard as a picture: its own panels, queries, units and places, over
a real Prometheus that watched two servers for a few minutes.

    draw_dashboard.py --programs=build/dev/bin \\
        --model="$(deploy/fetch-model.sh)" --out=dashboard.png

One server is calm, then busy, then has more callers than room; the other has
another model and is restarted. Ends with 1 where a panel has no data."""

import argparse
import contextlib
import pathlib
import re
import sys
import tempfile
import time

import matplotlib

matplotlib.use("Agg")
from matplotlib import pyplot  # noqa: E402  after the choice of backend

import monitoring
from processes import Prometheus, Server, eventually, load, mistakes

EVERY = 1  # seconds between scrapes
RATE = "8s"  # what Grafana takes for $__rate_interval then: four and more
UNITS = {"percentunit": (100, " %"), "s": (1, " s"), "bytes": (1e-6, " MB"),
         "reqps": (1, " /s"), "short": (1, "")}
COLORS = {"green": "tab:green", "yellow": "gold", "orange": "tab:orange",
          "purple": "tab:purple", "red": "tab:red", "blue": "tab:blue",
          "dark-red": "darkred"}


def filled(expression):
    """With the dashboard's variables as it opens, and its windows to seconds."""
    text = expression.replace("$__rate_interval", RATE)
    for name, variable in monitoring.variables().items():
        chosen = variable.get("current", {}).get("value", [""])[0]
        text = text.replace(f"${name}", variable["allValue"]
                            if chosen == "$__all" else chosen)
    return text


def legend(target, labels):
    return re.sub(r"\{\{(\w+)\}\}", lambda m: labels.get(m[1], ""),
                  target["legendFormat"]).strip()


def color_of(panel, name):
    for override in panel["fieldConfig"]["overrides"]:
        if override["matcher"]["options"] == name:
            return COLORS[override["properties"][0]["value"]["fixedColor"]]
    return None


def shown(panel, value):
    scale, unit = UNITS[panel["fieldConfig"]["defaults"]["unit"]]
    return f"{value * scale:.3g}{unit}"


def draw_stat(axes, panel, prometheus, end):
    found = prometheus.ask("query", time=end, query=filled(
        panel["targets"][0]["expr"]))["result"]
    value = float(found[0]["value"][1]) if found else None
    defaults = panel["fieldConfig"]["defaults"]
    color = "gray"
    for step in defaults["thresholds"]["steps"] if found else ():
        if step["value"] is None or value >= step["value"]:
            color = COLORS[step["color"]]
    axes.set_facecolor(color)
    axes.text(0.5, 0.5, shown(panel, value) if found
              else defaults.get("noValue", "No data"), ha="center",
              va="center", color="white", fontsize=16,
              transform=axes.transAxes)
    axes.set_xticks([])
    axes.set_yticks([])
    return len(found)


def draw_lines(axes, panel, prometheus, start, end):
    defaults = panel["fieldConfig"]["defaults"]
    scale, unit = UNITS[defaults["unit"]]
    lines = []
    for target in panel["targets"]:
        for series in prometheus.ask(
                "query_range", query=filled(target["expr"]), start=start,
                end=end, step=EVERY)["result"]:
            lines.append((legend(target, series["metric"]),
                          {round(float(at) - start): float(value) * scale
                           for at, value in series["values"]}))
    lines.sort(key=lambda line: line[0])
    places = range(round(end - start) + 1)
    if "stacking" in defaults["custom"] and lines:
        axes.stackplot(places, [[values.get(x, 0) for x in places]
                                for _, values in lines], alpha=0.6,
                       labels=[name for name, _ in lines],
                       colors=[color_of(panel, name) or f"C{i}"
                               for i, (name, _) in enumerate(lines)])
    else:
        for name, values in lines:
            axes.plot(places, [values.get(x, float("nan")) for x in places],
                      label=name, linewidth=1, color=color_of(panel, name))
    if "scaleDistribution" in defaults["custom"]:
        axes.set_yscale("log")
    else:
        axes.set_ylim(bottom=0)
    axes.yaxis.set_major_formatter(lambda y, _: f"{y:g}{unit}")
    axes.tick_params(labelsize=7)
    axes.grid(alpha=0.3)
    if lines:
        axes.legend(fontsize=6, ncols=2, loc="upper left")
    return sum(any(v == v for v in values.values()) for _, values in lines)


def draw_table(axes, panel, prometheus, end):
    found = prometheus.ask("query", time=end, query=filled(
        panel["targets"][0]["expr"]))["result"]
    hidden = panel["transformations"][0]["options"]["excludeByName"]
    text = "\n\n".join("\n".join(
        f"{name}: {value[:46]}" for name, value in one["metric"].items()
        if name not in hidden) for one in found)
    axes.text(0.01, 0.98, text, fontsize=5, va="top", family="monospace",
              transform=axes.transAxes)
    axes.set_axis_off()
    return len(found)


def draw(prometheus, start, end, out):
    """Titles of the panels without data."""
    empty = []
    places = monitoring.dashboard()["panels"]
    height = max(p["gridPos"]["y"] + p["gridPos"]["h"] for p in places)
    figure = pyplot.figure(figsize=(24, height * 0.45))
    for panel in places:
        at = panel["gridPos"]
        box = [at["x"] / 24 + 0.025, 1 - (at["y"] + at["h"] - 0.7) / height,
               at["w"] / 24 - 0.032, (at["h"] - 1.9) / height]
        if panel["type"] == "row":
            figure.text(0.005, 1 - (at["y"] + 0.8) / height, panel["title"],
                        fontsize=14, weight="bold")
            continue
        axes = figure.add_axes(box)
        axes.set_title(panel["title"], fontsize=9, loc="left")
        if panel["type"] == "stat":
            series = draw_stat(axes, panel, prometheus, end)
        elif panel["type"] == "table":
            series = draw_table(axes, panel, prometheus, end)
        else:
            series = draw_lines(axes, panel, prometheus, start, end)
        if not series:
            empty.append(panel["title"])
    figure.savefig(out, dpi=80)
    return empty


def story(options, stack, folder):
    """Starts all, lets it happen; Prometheus, and from when to when."""
    def serve(program, model, *flags, **ports):
        return stack.enter_context(Server(options.programs / program, model,
                                          *flags, **ports))

    first = serve("encoderd", f"minilm={options.model}",
                  "--max_queue_tokens=32768")
    other = serve("encoderd_fake_server", "fake=token_us:20")
    prometheus = stack.enter_context(Prometheus(
        folder, [first.http, other.http], f"{EVERY}s",
        lambda text: text.replace("[5m]", "[10s]").replace("[1m]", "[10s]")))
    eventually(lambda: prometheus.value("count(encoderd_state) > 7"), "scrapes")
    start = time.time()

    def call(server, seconds, *flags):
        with load(options.programs / "encoderctl", server, *flags,
                  lasting=True):
            time.sleep(seconds)

    with load(options.programs / "encoderctl", other, "--stream", "--words=6",
              "--concurrency=4", "--batch_size=2"):
        part = options.seconds / 5
        call(first, part, "--concurrency=1", "--batch_size=2", "--words=12")
        call(first, part, "--concurrency=16", "--batch_size=4", "--words=48")
        # More callers than room, some of them without patience.
        with load(options.programs / "encoderctl", first, "--concurrency=8",
                  "--batch_size=4", "--words=32", "--timeout=200ms"):
            call(first, part, "--concurrency=64", "--batch_size=16",
                 "--words=64")
        with mistakes(options.programs / "encoderctl", first):
            call(first, part, "--concurrency=4", "--batch_size=1",
                 "--words=24")
    other.kill()
    time.sleep(part / 4)
    again = serve("encoderd_fake_server", "fake=token_us:20", grpc=other.grpc,
                  http=other.http)
    with load(options.programs / "encoderctl", again, "--concurrency=1"):
        call(first, part * 3 / 4, "--concurrency=4", "--batch_size=2",
             "--words=24")
    return prometheus, start, time.time()


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--programs", required=True, type=pathlib.Path,
                        help="folder of encoderd, encoderd_fake_server, "
                        "encoderctl")
    parser.add_argument("--model", required=True, help="a model's folder")
    parser.add_argument("--seconds", type=int, default=120)
    parser.add_argument("--out", required=True, help="the picture, a PNG")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder, \
            contextlib.ExitStack() as stack:
        prometheus, start, end = story(options, stack, folder)
        empty = draw(prometheus, start, end, options.out)
    print(f"{len(monitoring.panels())} panels, {len(empty)} without data"
          + "".join(f"; {title}" for title in empty))
    return 1 if empty else 0


if __name__ == "__main__":
    sys.exit(main())
