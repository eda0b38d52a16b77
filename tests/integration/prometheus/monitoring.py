"""What deploy/ gives to Prometheus and Grafana, read as data, and what a scrape
holds: names, labels, values. No check is here."""

import json
import pathlib
import re

import yaml

ROOT = pathlib.Path(__file__).resolve().parents[3]
PROMETHEUS = ROOT / "deploy/prometheus"
DASHBOARD = ROOT / "deploy/grafana/encoderd.json"
COMPOSE = ROOT / "deploy/compose/compose.yml"
OPERATIONS = ROOT / "deploy/README.md"
RULES = ("encoderd.rules.yml", "encoderd.alerts.yml")

# Series that Prometheus makes itself, and the labels that it adds to all; on
# Kubernetes also a namespace.
OF_PROMETHEUS = {"up", "ALERTS"}
LABELS_OF_PROMETHEUS = {"job", "instance", "namespace", "alertname",
                        "alertstate"}

STRING = re.compile(r'"(?:[^"\\]|\\.)*"')
NAME = re.compile(r"\b((?:encoderd|process)[a-z0-9_:]*|up|ALERTS)\b")
SELECTOR = re.compile(r"\b([a-zA-Z_:][a-zA-Z0-9_:]*)\{([^}]*)\}")
MATCHER = re.compile(r'(\w+)\s*(=~|!~|!=|=)\s*"((?:[^"\\]|\\.)*)"')
GROUPING = re.compile(r"\b(?:by|without|on|ignoring|group_left)\s*\(([^)]*)\)")
LEGEND = re.compile(r"\{\{\s*(\w+)\s*\}\}")
SERIES = re.compile(r"^([a-zA-Z_:][\w:]*)(?:\{(.*)\})? (\S+)$")
LABEL = re.compile(r'(\w+)="((?:[^"\\]|\\.)*)"')


def rules():
    """Every rule of both files, in their order."""
    return [rule for name in RULES
            for group in yaml.safe_load((PROMETHEUS / name).read_text())[
                "groups"] for rule in group["rules"]]


def alerts():
    return {rule["alert"]: rule for rule in rules() if "alert" in rule}


def dashboard():
    return json.loads(DASHBOARD.read_text(encoding="utf-8"))


def panels():
    return [p for p in dashboard()["panels"] if p["type"] != "row"]


def variables():
    return {v["name"]: v for v in dashboard()["templating"]["list"]}


def expressions():
    """Pairs of where and PromQL, of rules and dashboard; label_values(A, b),
    which Grafana alone knows, as the series A."""
    found = [(rule.get("record") or rule["alert"], rule["expr"])
             for rule in rules()]
    for panel in panels():
        found += [(f"panel '{panel['title']}'", target["expr"])
                  for target in panel["targets"]]
    for variable in variables().values():
        query = variable["query"]
        if variable["type"] == "query":
            found.append((f"variable {variable['name']}", re.fullmatch(
                r"label_values\((.*), \w+\)", query["query"])[1]))
    return found + [(f"annotation {a['name']}", a["expr"])
                    for a in dashboard()["annotations"]["list"]]


def names(expression):
    """The metrics that an expression asks for."""
    return set(NAME.findall(STRING.sub('""', expression)))


def selectors(expression):
    """Pairs of a metric and its matchers [(label, operator, value)]."""
    return [(name, MATCHER.findall(inside))
            for name, inside in SELECTOR.findall(expression)]


def labels_named(expression, legend=""):
    found = set(LEGEND.findall(legend))
    for inside in GROUPING.findall(expression):
        found |= {name.strip() for name in inside.split(",") if name.strip()}
    return found


def scraped(text):
    """{metric: [labels of each series]} of the text format."""
    found = {}
    for line in text.splitlines():
        if not line or line.startswith("#"):
            continue
        match = SERIES.match(line)
        if not match:
            raise ValueError(f"no line of the text format: {line}")
        found.setdefault(match[1], []).append(
            dict(LABEL.findall(match[2] or "")))
    return found


def _matches(series, matchers):
    for label, operator, wanted in matchers:
        if "$" in wanted or label in LABELS_OF_PROMETHEUS:
            continue
        value = series.get(label, "")
        equal = (value == wanted if operator in ("=", "!=")
                 else re.fullmatch(wanted, value) is not None)
        if equal == operator.startswith("!"):
            return False
    return True


def unknown(scrape, recorded):
    """What rules and dashboard name and neither a scrape nor a rule has."""
    labels = LABELS_OF_PROMETHEUS | {
        name for series in scrape.values() for one in series for name in one}
    found = []
    for where, expression in expressions():
        asked = names(expression)
        if not asked:
            found.append(f"{where} asks for no metric: {expression}")
        found += [f"{where}: no metric {name}" for name in sorted(
            asked - set(scrape) - recorded - OF_PROMETHEUS)]
        for name, matchers in selectors(expression):
            if name in scrape and not any(
                    _matches(one, matchers) for one in scrape[name]):
                found.append(f"{where}: no series {name}{matchers}")
        found += [f"{where}: no label {name}"
                  for name in sorted(labels_named(expression) - labels)]
    for panel in panels():
        for target in panel["targets"]:
            found += [f"panel '{panel['title']}': no label {name}" for name in
                      labels_named("", target["legendFormat"]) - labels]
    return found
