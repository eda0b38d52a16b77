// encoderctl bench
#include <cstdint>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "client/cpp/encoderctl/bench_report.h"
#include "client/cpp/encoderctl/embed_flags.h"
#include "client/cpp/encoderctl/load.h"
#include "client/cpp/encoderctl/progress.h"
#include "client/cpp/encoderctl/signals.h"
#include "client/cpp/encoderctl/text_source.h"
#include "client/cpp/encoderctl/texts_of_run.h"
#include "client/cpp/encoderctl/writer.h"
#include "client/cpp/error.h"
#include "client/cpp/requests.h"
#include "client/cpp/utf8.h"

namespace encoderd::ctl {
namespace {

constexpr size_t kSyntheticTexts = 1024;
constexpr int kMostWords = 100000;
constexpr int kMostConcurrency = 1024;
constexpr size_t kMostTexts = 100000;  // that are read; the first are taken
constexpr int64_t kMostBytes = 64 << 20;

struct Choices {
  Load load;
  MeasureLimits limits{absl::Seconds(1), absl::Seconds(10), 0};
  EmbedFlags embed;
  int words = 16;
  int count = 1000000;
};

// Common English words, one token each in most vocabularies; no two texts of
// some length alike, because a server computes equal texts of a batch once.
// Another process, which may measure the same server, makes up others.
std::vector<std::string> MakeTexts(int words) {
  constexpr const char* kWords[] = {
      "time",  "people", "water", "world", "music", "house", "river", "light",
      "money", "night",  "woman", "child", "paper", "group", "party", "story"};
  std::vector<std::string> texts;
  int64_t bytes = 0;
  uint32_t state = std::random_device()();  // of a linear generator
  while (texts.size() < kSyntheticTexts && bytes < kMostBytes) {
    std::string& text = texts.emplace_back();
    for (int i = 0; i < words; ++i) {
      state = state * 1664525u + 1013904223u;
      absl::StrAppend(&text, i == 0 ? "" : " ", kWords[state >> 28]);
    }
    bytes += static_cast<int64_t>(text.size());
  }
  return texts;
}

absl::StatusOr<std::vector<std::string>> ReadTexts(TextSource& source,
                                                   const Invocation& told) {
  std::vector<std::string> texts;
  std::string text;
  absl::Status refused;
  int64_t bytes = 0;
  while (texts.size() < kMostTexts && bytes < kMostBytes) {
    const absl::StatusOr<bool> more = source.Next(&text, &refused);
    // Of the input, not of the command line.
    if (!more.ok()) {
      return absl::FailedPreconditionError(more.status().message());
    }
    if (!*more) return texts;
    if (!refused.ok()) {
      return absl::FailedPreconditionError(absl::StrCat(
          source.NameOf(source.texts_read() - 1), ": ", refused.message()));
    }
    const size_t valid = client::ValidUtf8Prefix(text);
    if (valid < text.size()) {
      return absl::FailedPreconditionError(
          absl::StrCat(source.NameOf(source.texts_read() - 1),
                       " is not valid UTF-8 at byte ", valid,
                       "; if the file has another encoding: iconv -f ENCODING "
                       "-t UTF-8 FILE"));
    }
    bytes += static_cast<int64_t>(text.size());
    texts.push_back(text);
  }
  const absl::StatusOr<bool> more = source.Next(&text, &refused);
  if (more.ok() && !*more) return texts;
  told.Note("the first ", texts.size(), " texts are used");
  return texts;
}

void AddFlags(Invocation* invocation, Choices* choices) {
  Flags& flags = invocation->flags;
  Settings& settings = invocation->settings;
  settings.input = "";
  choices->load.concurrency = 0;
  invocation->AddModelFlag();
  flags.AddInt("concurrency", "N",
               "calls in flight at a time; with --rate, the upper limit; 0: 8, "
               "or 1024 with --rate",
               0, kMostConcurrency, &choices->load.concurrency);
  flags.AddNumber(
      "rate", "N",
      "open loop: begin N calls per second, such as 200 or 0.5, at random "
      "times (Poisson), even if earlier ones are unanswered; the latency of a "
      "call counts from the time it was due; 0: closed loop",
      0, 1000000, &choices->load.rate);
  flags.AddInt("batch_size", "N", "texts per call, 1 to 65536", 1, 65536,
               &settings.batch_size);
  flags.AddSwitch("stream",
                  "send the texts over one EmbedStream; each of its requests "
                  "then counts as a call",
                  &choices->load.stream);
  invocation->AddInputFlags(
      "file of texts in --input_format, reused as needed; -: standard input; "
      "not given: the arguments, else made-up texts of --words words");
  flags.AddInt("words", "N", "words per made-up text", 1, kMostWords,
               &choices->words);
  flags.AddDuration("warm_up", "time under load before counting begins",
                    &choices->limits.warm_up, /*or_none=*/true);
  flags.AddDuration("duration", "ends the run after this time",
                    &choices->limits.duration);
  flags.AddInt("count", "N", "ends the run after this many calls", 1, 10000000,
               &choices->count);
  choices->embed.Add(invocation);
  invocation->AddProgressFlag();
  invocation->AddOutputFlags({OutputFormat::kText, OutputFormat::kJsonl},
                             /*one_value=*/true);
}

absl::Status CheckSizes(const Choices& choices, const v1::Model& model) {
  const Load& load = choices.load;
  if (load.stream && load.concurrency > client::kMostCallsInFlight) {
    return absl::InvalidArgumentError(absl::StrCat(
        "--concurrency is ", load.concurrency, "; a server reads at most ",
        client::kMostCallsInFlight, " requests of a stream ahead"));
  }
  const auto most = static_cast<int64_t>(model.max_inputs_per_request());
  if (most > 0 && load.texts_per_call > most) {
    return absl::InvalidArgumentError(
        absl::StrCat("--batch_size is ", load.texts_per_call,
                     "; this server takes at most ", most, " texts per call"));
  }
  return absl::OkStatus();
}

// The texts of the load; OK and none where there were none. Where they are not
// made up, *source knows what they are called.
absl::StatusOr<std::vector<std::string>> GetTexts(
    Invocation& invocation, int words, std::unique_ptr<TextSource>* source) {
  std::string& file = invocation.settings.input;
  if (file.empty() && invocation.positional.empty()) return MakeTexts(words);
  if (file.empty()) file.push_back('-');
  auto opened = OpenTexts(invocation);
  if (!opened.ok()) return opened.status();
  *source = *std::move(opened);
  return ReadTexts(**source, invocation);
}

}  // namespace

int RunBench(const Command& command, const Arguments& arguments,
             Environment& environment) {
  Invocation invocation(
      command, environment, client::ClientOptions().timeout,
      "time limit of one call, and of the wait at the start for a server that "
      "is loading");
  const Settings& settings = invocation.settings;
  Choices choices;
  AddFlags(&invocation, &choices);
  if (const auto over = invocation.Parse(arguments)) return *over;
  Load& load = choices.load;
  if (load.stream && load.rate > 0) {
    return invocation.Usage(
        "--rate and --stream are both given; --rate is for calls: drop one");
  }
  const absl::Status checked = choices.embed.Check(invocation);
  if (!checked.ok()) return invocation.Refuse(checked);
  if (load.concurrency == 0) {
    load.concurrency = load.rate > 0 ? kMostConcurrency : settings.in_flight;
  }
  choices.limits.calls = choices.count;
  load.texts_per_call = settings.batch_size;
  load.timeout = settings.timeout;
  load.blank = client::ToRequest(choices.embed.ToOptions(invocation));
  std::unique_ptr<TextSource> source;
  auto texts = GetTexts(invocation, choices.words, &source);
  if (!texts.ok()) return invocation.Refuse(texts.status());
  if (texts->empty()) return invocation.Refuse(NoTexts(invocation));
  load.texts = *std::move(texts);
  client::ClientOptions options;
  // No call is made twice; several servers share them.
  options.service_config_json =
      R"({"loadBalancingConfig":[{"round_robin":{}}]})";
  const auto client = invocation.Connect(options);
  if (!client.ok()) return invocation.Refuse(client.status());
  const auto model = (*client)->GetModel(settings.model);
  if (!model.ok()) return invocation.Fail(model.status());
  const absl::Status sizes = CheckSizes(choices, *model);
  if (!sizes.ok()) return invocation.Usage(sizes.message());
  auto writer = Writer::Open(settings.output, false, environment);
  if (!writer.ok()) return invocation.Refuse(writer.status());

  const StopOnSignal stop;
  Progress progress = MakeProgress(invocation);
  const Figures figures = RunLoad((*client)->stub(), load, choices.limits,
                                  [&](int64_t answered, double share) {
                                    progress.Update(answered, share);
                                    return !stop.wanted();
                                  });
  progress.Clear();
  if (!figures.refused.ok()) {
    const auto index = client::GetInputIndex(figures.refused);
    const auto size = static_cast<int64_t>(load.texts.size());
    return invocation.Fail(figures.refused, index && source != nullptr
                                                ? source->NameOf(*index % size)
                                                : "");
  }
  const BenchReport report{figures, load, choices.limits, model->name(),
                           stop.wanted()};
  absl::Status status = (*writer)->Write(settings.format == OutputFormat::kJsonl
                                             ? report.ToJson()
                                             : report.ToText());
  status.Update((*writer)->Finish());
  if (absl::IsCancelled(status)) return kExitSignal + StopOnSignal::Signal();
  if (!status.ok()) return invocation.Fail(status);
  return figures.answered > 0 && figures.failed == 0 ? kExitOk : kExitFailed;
}

}  // namespace encoderd::ctl
