#!/usr/bin/env python3
"""Rules, alerts, dashboard and composition of deploy/, without load: promtool
finds nothing, all names are those of a live scrape, Grafana's model holds the
dashboard, every alert has its section of the operations page.

    monitoring_test.py --server=build/dev/bin/encoderd_fake_server
"""

import argparse
import copy
import os
import re
import shutil
import subprocess
import sys
import unittest

import yaml

import monitoring
import processes
import schema

HERE = monitoring.pathlib.Path(__file__).resolve().parent
SERVER = None  # set by main


def run(*command, **environment):
    if not shutil.which(command[0]):
        raise unittest.TestCase.failureException(
            f"{command[0]} is not here: deploy/install-deps.sh --tests "
            "installs it")
    return subprocess.run(command, text=True, capture_output=True, timeout=120,
                          check=False, env=dict(os.environ, **environment))


class RulesTest(unittest.TestCase):
    def promtool(self, *arguments):
        done = run("promtool", *arguments)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        return done.stdout

    def test_promtool_accepts_config_and_rules(self):
        self.promtool("check", "config", monitoring.PROMETHEUS /
                      "prometheus.yml")
        shown = self.promtool("check", "rules", *(
            monitoring.PROMETHEUS / name for name in monitoring.RULES))
        counts = map(int, re.findall(r"(\d+) rules found", shown))
        self.assertEqual(sum(counts), len(monitoring.rules()))

    def test_rules_give_and_alerts_fire_as_their_cases_say(self):
        self.promtool("test", "rules", HERE / "rules_test.yml",
                      HERE / "alerts_test.yml")

    def test_every_rule_has_a_case(self):
        cases = "".join((HERE / name).read_text()
                        for name in ("rules_test.yml", "alerts_test.yml"))
        for rule in monitoring.rules():
            name = rule.get("record") or f'alertname="{rule["alert"]}"'
            self.assertIn(name, cases)

    def test_every_alert_leads_to_its_section_of_the_operations_page(self):
        page = monitoring.OPERATIONS.read_text(encoding="utf-8")
        sections = re.findall(r"^#### (Encoderd\w+)$", page, re.MULTILINE)
        self.assertEqual(sections, list(monitoring.alerts()))
        for name, alert in monitoring.alerts().items():
            self.assertEqual(alert["annotations"]["runbook"],
                             f"deploy/README.md#{name.lower()}")
            self.assertIn(alert["labels"]["severity"], ("page", "ticket"))

    def test_the_operations_page_names_panels_that_are_there(self):
        page = monitoring.OPERATIONS.read_text(encoding="utf-8")
        named = re.findall(r'[Pp]anel\s"([^"]+)"', page)
        self.assertGreater(len(named), 3)
        self.assertLessEqual(set(named),
                             {panel["title"] for panel in monitoring.panels()})

    def test_windows_hold_four_scrapes(self):
        config = yaml.safe_load(
            (monitoring.PROMETHEUS / "prometheus.yml").read_text())
        self.assertEqual(config["global"]["scrape_interval"], "15s")
        for where, expression in monitoring.expressions():
            for window in re.findall(r"\[(.*?)\]", expression):
                self.assertIn(window, ("$__rate_interval", "1m", "2m", "5m",
                                       "15m", "6h", "1d"), where)


class NamesTest(unittest.TestCase):
    def test_every_name_is_in_a_live_scrape(self):
        with processes.Server(SERVER, "fake=hidden_size:8") as server:
            text = server.metrics()
        recorded = {rule["record"] for rule in monitoring.rules()
                    if "record" in rule}
        scrape = monitoring.scraped(text)
        # The fake device is not a CPU; alerts_live.py has one.
        scrape["encoderd_model_info"] += [
            {**labels, "device": "cpu"} for labels in scrape["encoderd_model_info"]]
        self.assertEqual(monitoring.unknown(scrape, recorded), [])
        # What a slip of the pen looks like to this test.
        scrape.pop("encoderd_queue_tokens")
        scrape["encoderd_state"].clear()
        found = "\n".join(monitoring.unknown(scrape, recorded - {
            "encoderd:queue_fill:ratio"}))
        for slip in ("no metric encoderd_queue_tokens",
                     "no series encoderd_state",
                     "no metric encoderd:queue_fill:ratio", "no label state"):
            self.assertIn(slip, found)
        lint = subprocess.run(["promtool", "check", "metrics"], input=text,
                              text=True, capture_output=True, check=False)
        self.assertEqual((lint.returncode, lint.stderr), (0, ""))


class DashboardTest(unittest.TestCase):
    def test_grafanas_model_holds_it(self):
        self.assertEqual(schema.findings(monitoring.dashboard()), [])

    def test_a_slip_in_it_is_found(self):
        slips = {
            "titel is no field": lambda p: p.update(titel="x"),
            "grid_pos.w is '3'": lambda p: p["gridPos"].update(w="3"),
            "color_mode is 'blue'":
                lambda p: p["options"].update(colorMode="blue"),
            "exp is no field": lambda p: p["targets"][0].update(exp="1"),
        }
        for finding, slip in slips.items():
            broken = copy.deepcopy(monitoring.dashboard())
            slip(next(p for p in broken["panels"] if p["type"] == "stat"))
            self.assertIn(finding, "\n".join(schema.findings(broken)))

    def test_panels_say_what_they_show_and_cover_nothing(self):
        taken, ids = {}, set()
        for panel in monitoring.dashboard()["panels"]:
            title, at = panel["title"], panel["gridPos"]
            self.assertNotIn(panel["id"], ids, title)
            ids.add(panel["id"])
            if panel["type"] != "row":
                self.assertTrue(panel["description"], title)
            self.assertLessEqual(at["x"] + at["w"], 24, title)
            for x in range(at["x"], at["x"] + at["w"]):
                for y in range(at["y"], at["y"] + at["h"]):
                    self.assertNotIn((x, y), taken, f"{title} over "
                                     f"{taken.get((x, y))}")
                    taken[x, y] = title

    def test_all_jobs_are_jobs_of_encoderd(self):
        """Other programs have up and process_*, too."""
        job = monitoring.variables()["job"]
        self.assertEqual(job["current"]["value"], ["encoderd"])
        # "All" is then the values of the query, no pattern for every job.
        self.assertNotIn("allValue", job)
        for where, expression in monitoring.expressions():
            for name, matchers in monitoring.selectors(expression):
                if name == "up" or name.startswith("process_"):
                    self.assertIn("job", [label for label, _, _ in matchers],
                                  where)
            bare = re.findall(r"\b(?:up|process_\w+)\b(?!\{)",
                              monitoring.STRING.sub('""', expression))
            self.assertEqual(bare, [], where)

    def test_variables_are_defined(self):
        known = set(monitoring.variables()) | {"__rate_interval"}
        text = monitoring.DASHBOARD.read_text(encoding="utf-8")
        used = set(re.findall(r"\$\{?(\w+)", text)) - {"__all"}
        self.assertEqual(used, known)


class CompositionTest(unittest.TestCase):
    def config(self, **environment):
        return run("docker-compose", "-f", str(monitoring.COMPOSE), "config",
                   **environment)

    def test_without_a_model_it_says_where_one_comes_from(self):
        done = self.config(ENCODERD_MODEL="")
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("deploy/fetch-model.sh", done.stderr)

    def test_it_mounts_what_is_there_and_scrapes_what_it_starts(self):
        done = self.config(ENCODERD_MODEL="/model")
        self.assertEqual(done.returncode, 0, done.stderr)
        services = yaml.safe_load(done.stdout)["services"]
        self.assertEqual(set(services), {"encoderd", "prometheus", "grafana"})
        for service in services.values():  # no log fills the disk
            self.assertIn("max-size", service["logging"]["options"])
        self.assertEqual(services["encoderd"]["ulimits"], {"core": 0})
        self.assertTrue([word for word in services["prometheus"]["command"]
                         if word.startswith("--storage.tsdb.retention.size=")])
        self.assertEqual("false", services["grafana"]["environment"][
            "GF_AUTH_BASIC_ENABLED"])
        mounted = {}
        for service in services.values():
            for volume in service["volumes"]:
                if isinstance(volume, str):
                    source, target = volume.split(":")[:2]
                else:
                    source, target = volume["source"], volume["target"]
                mounted[target] = source
                if source.startswith(str(monitoring.ROOT)):
                    self.assertTrue(os.path.exists(source), source)
            for port in service["ports"]:
                host = (port.split(":")[0] if isinstance(port, str)
                        else port["host_ip"])
                self.assertEqual(host, "127.0.0.1")
        for name in ("prometheus.yml", "targets.yml", *monitoring.RULES):
            self.assertIn(f"/etc/prometheus/{name}", mounted)
        targets = yaml.safe_load(monitoring.pathlib.Path(
            mounted["/etc/prometheus/targets.yml"]).read_text())
        self.assertEqual(targets, [{"targets": ["encoderd:8401"]}])
        self.assertIn("--http_listen=0.0.0.0:8401",
                      services["encoderd"]["command"])
        home = services["grafana"]["environment"][
            "GF_DASHBOARDS_DEFAULT_HOME_DASHBOARD_PATH"]
        self.assertEqual(mounted[home], str(monitoring.DASHBOARD))
        provider = yaml.safe_load(
            (monitoring.DASHBOARD.parent / "provisioning/dashboards"
             / "encoderd.yml").read_text())["providers"][0]
        self.assertEqual(provider["options"]["path"], os.path.dirname(home))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--server", required=True,
                        help="encoderd_fake_server, for a live scrape")
    arguments, rest = parser.parse_known_args()
    SERVER = arguments.server
    unittest.main(argv=[sys.argv[0], *rest])
