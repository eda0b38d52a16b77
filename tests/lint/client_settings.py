"""The pages name the figures that all clients share as their file has them."""

import json
import re

SETTINGS = "client/client_settings.json"
# Pages, and what they say; {KEY} is a figure of the file.
PLACES = (
    ("client/README.md", "{texts_per_call} texts"),
    ("client/README.md", "{bytes_per_call >> 20} MiB of text"),
    ("client/README.md", "in flight ({calls_in_flight})"),
    ("client/README.md", "longer than {retry_buffer_bytes >> 20} MiB"),
    ("client/README.md", "comes for {keepalive_time_ms // 1000} s and the "
     "ping is not answered within {keepalive_time_ms // 2000} s"),
    ("client/python/README.md", "({stream_calls_in_flight}) requests of"),
    ("client/python/README.md", "({texts_per_call}) inputs are in"),
    ("client/python/README.md", "ping after {keepalive_time_ms // 1000} s "
     "without data, {keepalive_time_ms // 2000} s for its answer"),
)
FIGURE = re.compile(r"\{(\w+)(?: (>>|//) (\d+))?\}")


def sentences(figures):
    """PLACES with `figures`."""
    def figure(match):
        value, by = figures[match[1]], int(match[3] or 1)
        if match[2] == ">>":
            return str(value >> by)
        return str(value // by)

    return [(page, FIGURE.sub(figure, words)) for page, words in PLACES]


def check(tree):
    if SETTINGS not in tree.files:
        return [f"{SETTINGS} is missing"]
    figures = json.loads(tree.read(SETTINGS))
    lost = {key for _, words in PLACES
            for key, _, _ in FIGURE.findall(words)} - set(figures)
    if lost:
        return [f"{SETTINGS}: has no {key}" for key in sorted(lost)]
    return [f"{page}: does not say '{words}', as {SETTINGS} has it"
            for page, words in sentences(figures)
            if page not in tree.files
            or words not in " ".join(tree.read(page).split())]
