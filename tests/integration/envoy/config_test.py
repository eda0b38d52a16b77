#!/usr/bin/env python3
"""What deploy/envoy/envoy.yml promises without an Envoy: whom it lets in, how
long a call may wait, how often it is tried, how much metadata it may have."""

import json
import pathlib
import re
import unittest

import yaml

ROOT = pathlib.Path(__file__).resolve().parents[3]
FOLDER = ROOT / "deploy/envoy"


def seconds(text):
    number, unit = re.fullmatch(r"(\d+(?:\.\d+)?)(s|m|h)", text).groups()
    return float(number) * {"s": 1, "m": 60, "h": 3600}[unit]


class ConfigTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.config = yaml.safe_load((FOLDER / "envoy.yml").read_text())
        cls.listener, = cls.config["static_resources"]["listeners"]
        cls.page = (FOLDER / "README.md").read_text()

        manager = cls.listener["filter_chains"][0]["filters"][0]
        cls.manager = manager["typed_config"]

    def routes(self):
        host, = self.manager["route_config"]["virtual_hosts"]
        return [route["route"] for route in host["routes"]]

    def test_without_tls_it_listens_on_loopback_only(self):
        for chain in self.listener["filter_chains"]:
            self.assertNotIn("transport_socket", chain)
        for one in (self.listener, self.config["admin"]):
            self.assertEqual(one["address"]["socket_address"]["address"],
                             "127.0.0.1")

    def test_a_call_may_wait_as_long_as_the_server_lets_it(self):
        flags = (ROOT / "server/docs/flags.md").read_text()
        longest = seconds(re.search(
            r"^\| `--max_queue_time` \| (\w+) \|", flags, re.MULTILINE)[1])
        for route in self.routes():
            self.assertEqual(route["timeout"], "0s")
            self.assertGreater(seconds(route["idle_timeout"]), longest)

    def test_the_page_says_how_often_both_retries_try(self):
        config = json.loads(
            (ROOT / "client/service_config.json").read_text())
        callers, = (one["retryPolicy"]["maxAttempts"]
                    for one in config["methodConfig"])
        retries, = {route["retry_policy"]["num_retries"]
                    for route in self.routes() if "retry_policy" in route}
        self.assertIn(f"{callers} attempts, and Envoy up to {retries + 1} of "
                      f"each, {callers * (retries + 1)} in all", self.page)

    def test_callers_together_are_bound_as_the_page_says(self):
        manager = self.config["overload_manager"]
        heap, connections = (one["typed_config"]
                             for one in manager["resource_monitors"])
        most = connections["max_active_downstream_connections"]
        self.assertIn(f"Envoy takes {most:,} callers' connections", self.page)
        shed, = {trigger["threshold"]["value"]
                 for one in manager["actions"] + manager["loadshed_points"]
                 if "shrink_heap" not in one["name"]
                 for trigger in one["triggers"]}
        words = " ".join(self.page.split())
        self.assertIn(f"uses {100 * shed:g} % of "
                      f"{heap['max_heap_size_bytes'] >> 30} GiB of heap", words)
        names = {one["name"] for one in manager["resource_monitors"]}
        acted = {trigger["name"] for one in
                 manager["actions"] + manager["loadshed_points"]
                 for trigger in one["triggers"]}
        self.assertLessEqual(acted, names)
        # One caller with the largest message does not reach it.
        self.assertGreater(heap["max_heap_size_bytes"],
                           8 * self.listener["per_connection_buffer_limit_bytes"])
        # The operator can look when callers are too many.
        self.assertTrue(self.config["admin"]["ignore_global_conn_limit"])

    def test_metadata_that_passes_does_not_end_a_servers_connection(self):
        source = (ROOT / "server/rpc/grpc_server.cc").read_text()
        limit = int(re.search(r"GRPC_ARG_MAX_METADATA_SIZE, (\d+)", source)[1])
        # Envoy passes at most 100 headers. gRPC counts 32 bytes more for each.
        passes = self.manager["max_request_headers_kb"] * 1024 + 100 * 32
        self.assertLess(passes + 1024, limit)  # what Envoy adds


if __name__ == "__main__":
    unittest.main()
