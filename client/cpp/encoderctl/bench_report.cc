#include "client/cpp/encoderctl/bench_report.h"

#include <cstdint>
#include <nlohmann/json.hpp>
#include <set>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "client/cpp/encoderctl/json_line.h"
#include "client/cpp/encoderctl/wrap.h"

namespace encoderd::ctl {
namespace {

double Milliseconds(absl::Duration duration) {
  return absl::ToDoubleMilliseconds(duration);
}

// Why the measurement ended, for programs.
const char* EndedBy(const BenchReport& report) {
  if (report.stopped) return "interrupted";
  return report.figures.answered + report.figures.failed >= report.limits.calls
             ? "count"
             : "duration";
}

// Of an open loop no caller waits for another, but p99.9 is to mean something.
int64_t Fewest(const Load& load) {
  return load.rate > 0 ? 1000 : FewestCalls(load.concurrency);
}

bool TooSmall(const BenchReport& report) {
  return report.figures.answered < Fewest(report.load);
}

int64_t InFlight(const Load& load) {
  return int64_t{load.concurrency} * load.texts_per_call;
}

int64_t Distinct(const Load& load) {
  return static_cast<int64_t>(
      std::set<absl::string_view>(load.texts.begin(), load.texts.end()).size());
}

std::string EndInWords(const BenchReport& report) {
  const std::string by = EndedBy(report);
  return report.stopped ? by : absl::StrCat("ended by ", by);
}

std::string LoadInWords(const Load& load) {
  if (load.rate > 0) {
    return absl::StrFormat(
        "%.10g calls per second at random times, at most %d in flight",
        load.rate, load.concurrency);
  }
  const char* const what = load.stream
                               ? "requests of one stream"
                               : (load.concurrency == 1 ? "call" : "calls");
  return absl::StrFormat("%d %s in flight", load.concurrency, what);
}

}  // namespace

std::string BenchReport::ToText() const {
  std::string text = absl::StrFormat(
      "model         %s\n"
      "load          %s, %d %s each, %s\n"
      "measured      %.2f s after a warm-up of %s, %s\n"
      "calls         %d answered, %d failed, %d cut off at the end%s\n"
      "texts/s       %.1f\n"
      "tokens/s      %.0f\n",
      Printable(model), LoadInWords(load), load.texts_per_call,
      load.texts_per_call == 1 ? "text" : "texts",
      load.stream ? "EmbedStream" : "Embed",
      absl::ToDoubleSeconds(figures.measured),
      absl::FormatDuration(limits.warm_up), EndInWords(*this), figures.answered,
      figures.failed, figures.cut_off,
      figures.not_begun > 0
          ? absl::StrCat(", ", figures.not_begun, " due and not begun")
          : "",
      figures.PerSecond(static_cast<double>(figures.texts)),
      figures.PerSecond(static_cast<double>(figures.tokens)));
  if (figures.answered > 0) {
    absl::StrAppendFormat(
        &text,
        "latency, ms   mean %.2f, p50 %.2f, p90 %.2f, p99 %.2f, p99.9 %.2f, "
        "max %.2f\n",
        Milliseconds(figures.Mean()), Milliseconds(figures.Quantile(0.5)),
        Milliseconds(figures.Quantile(0.9)),
        Milliseconds(figures.Quantile(0.99)),
        Milliseconds(figures.Quantile(0.999)),
        Milliseconds(figures.Quantile(1)));
  }
  if (TooSmall(*this)) {
    // A longer run does not help where every call fails.
    const bool all_failed = figures.answered == 0 && figures.failed > 0;
    absl::StrAppend(
        &text, "sample        too small for these figures: ", figures.answered,
        " answered calls; it needs ", Fewest(load),
        all_failed ? "" : ": raise --duration or --count", "\n");
  }
  const int64_t distinct = Distinct(load);
  // Of a closed loop: an open one has few in flight, unless it is overloaded.
  if (load.rate == 0 && distinct < InFlight(load)) {
    absl::StrAppend(&text, "texts         only ", distinct, " distinct for ",
                    InFlight(load),
                    " in flight; the server computes duplicates in a batch "
                    "once, so these rates are inflated\n");
  }
  for (const auto& [reason, failure] : figures.failures) {
    absl::StrAppend(&text, "failed        ", failure.calls, " ",
                    Printable(reason),
                    "; the first: ", Printable(failure.first), "\n");
  }
  return text;
}

std::string BenchReport::ToJson() const {
  nlohmann::ordered_json json;
  json["model"] = model;
  json["method"] = load.stream ? "EmbedStream" : "Embed";
  json["concurrency"] = load.concurrency;
  json["rate"] = load.rate;
  json["batch_size"] = load.texts_per_call;
  json["distinct_texts"] = Distinct(load);
  json["warm_up_s"] = absl::ToDoubleSeconds(limits.warm_up);
  json["measured_s"] = absl::ToDoubleSeconds(figures.measured);
  json["ended_by"] = EndedBy(*this);
  json["calls_answered"] = figures.answered;
  json["calls_failed"] = figures.failed;
  json["calls_cut_off"] = figures.cut_off;
  json["calls_not_begun"] = figures.not_begun;
  json["sample_too_small"] = TooSmall(*this);
  json["texts"] = figures.texts;
  json["tokens"] = figures.tokens;
  json["texts_per_s"] = figures.PerSecond(static_cast<double>(figures.texts));
  json["tokens_per_s"] = figures.PerSecond(static_cast<double>(figures.tokens));
  json["latency_ms"] = nullptr;  // without answers
  if (figures.answered > 0) {
    json["latency_ms"] = {{"mean", Milliseconds(figures.Mean())},
                          {"p50", Milliseconds(figures.Quantile(0.5))},
                          {"p90", Milliseconds(figures.Quantile(0.9))},
                          {"p99", Milliseconds(figures.Quantile(0.99))},
                          {"p99.9", Milliseconds(figures.Quantile(0.999))},
                          {"max", Milliseconds(figures.Quantile(1))}};
  }
  json["failures"] = nlohmann::ordered_json::object();
  for (const auto& [reason, failure] : figures.failures) {
    json["failures"][reason] = failure.calls;
  }
  return JsonLine(json) + "\n";
}

}  // namespace encoderd::ctl
