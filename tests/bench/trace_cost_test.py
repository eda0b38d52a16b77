#!/usr/bin/env python3
"""trace_cost.py keeps what servers export, and divides a span completely."""

import secrets
import subprocess
import sys
import unittest

import grpc
import loads
import trace_cost
from opentelemetry.proto.collector.trace.v1 import trace_service_pb2
from opentelemetry.proto.trace.v1 import trace_pb2


def span(events, trace_id=b"t" * 16):
    return trace_pb2.Span(
        trace_id=trace_id, start_time_unix_nano=100, end_time_unix_nano=900,
        events=[trace_pb2.Span.Event(name=name, time_unix_nano=time)
                for name, time in events.items()])


class TraceCostTest(unittest.TestCase):
    def test_the_parts_of_a_span_follow_each_other_from_start_to_end(self):
        self.assertEqual(
            trace_cost.parts_of(span({"tokenized": 200, "compute_started": 500,
                                      "computed": 800})),
            [("tokenize", 100, 200), ("queue", 200, 500),
             ("compute", 500, 800), ("answer", 800, 900)])

    def test_a_call_that_was_not_computed_has_only_an_answer(self):
        self.assertEqual(trace_cost.parts_of(span({})),
                         [("answer", 100, 900)])

    def test_the_collector_has_the_spans_of_each_trace(self):
        traces = [secrets.token_bytes(16) for _ in range(2)]
        with trace_cost.Collector() as collector, \
                grpc.insecure_channel(collector.endpoint) as channel:
            export = channel.unary_unary(
                f"/{trace_cost.SERVICE}/Export",
                request_serializer=(trace_service_pb2.ExportTraceServiceRequest
                                    .SerializeToString),
                response_deserializer=(
                    trace_service_pb2.ExportTraceServiceResponse.FromString))
            for trace_id in (*traces, traces[0]):
                request = trace_service_pb2.ExportTraceServiceRequest()
                scope = request.resource_spans.add().scope_spans.add()
                scope.spans.append(span({}, trace_id))
                answer = export(request, timeout=60)
                self.assertEqual(answer.partial_success.rejected_spans, 0)
            self.assertEqual(
                [len(collector.spans(trace_id)) for trace_id in traces], [2, 1])

    def test_nobody_answers_where_nobody_is(self):
        with trace_cost.nobody() as endpoint, \
                grpc.insecure_channel(endpoint) as channel:
            with self.assertRaises(grpc.RpcError) as refused:
                channel.unary_unary("/a/B")(b"", timeout=60)
            self.assertEqual(refused.exception.code(),
                             grpc.StatusCode.UNAVAILABLE)


class LoadsTest(unittest.TestCase):
    def load(self, text):
        return subprocess.Popen([sys.executable, "-c", f"print({text!r})"],
                                stdout=subprocess.PIPE, text=True)

    def test_a_load_whose_calls_failed_ends_the_script(self):
        failed = '{"calls_failed": 2, "failures": {"UNAVAILABLE": 2}}'
        with self.assertRaisesRegex(SystemExit, "calls failed: .*UNAVAILABLE"):
            loads.finish(self.load(failed))
        self.assertEqual(
            loads.finish(self.load(failed), may_fail=True)["calls_failed"], 2)

    def test_a_load_without_figures_ends_the_script(self):
        silent = subprocess.Popen([sys.executable, "-c", ""],
                                  stdout=subprocess.PIPE, text=True)
        with self.assertRaisesRegex(SystemExit, "gave no figures"):
            loads.finish(silent, may_fail=True)

    def test_a_spread_is_the_median_with_the_extremes(self):
        self.assertEqual(loads.spread([3, 1, 2], ".1f"), "2.0 (1.0-3.0)")

    def test_ratios_are_those_of_each_round(self):
        self.assertEqual(loads.ratios([1, 6], [2, 3]), [0.5, 2.0])
        with self.assertRaises(ValueError):
            loads.ratios([1], [2, 3])


if __name__ == "__main__":
    unittest.main()
