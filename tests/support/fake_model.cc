#include "tests/support/fake_model.h"

#include <random>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/time/clock.h"
#include "engine/checkpoint/architecture.h"
#include "engine/checkpoint/positions.h"

namespace encoderd {

FakeModel::FakeModel(const FakeModelOptions& options)
    : device_(options.max_batch_tokens, options.hidden_size) {
  device_.SetLatency(options.batch_time, options.token_time);
  device_.SetHashing(options.hashing);
  device_.SetLogging(options.hashing);
  if (options.lost_after > 0) device_.LoseAfter(options.lost_after);
  if (options.poison >= 0) device_.PoisonToken(options.poison);
  if (options.stuck >= 0) device_.HoldToken(options.stuck);
  if (options.stuck_after > 0) {
    device_.CloseGate();
    device_.LetThrough(options.stuck_after);
  }
  ModelConfig& config = info_.config;
  config.model_type = "bert";
  config.tensors = FindArchitecture("bert")->tensors;
  config.num_hidden_layers = options.layers;
  config.hidden_size = options.hidden_size;
  config.num_attention_heads = 2;
  config.intermediate_size = 4 * options.hidden_size;
  config.vocab_size = FakeTokenizer::kVocab;
  config.max_position_embeddings = options.positions;
  config.type_vocab_size = options.segments;
  config.pooling = Pooling::kMean;
  config.normalize = true;
  if (!options.warning.empty()) config.warnings = {options.warning};
  info_.notes = {"computes nothing"};
  config.prompts = {{"query", "q: "}, {"passage", "p: "}};
  if (!options.prompt_name.empty()) {
    config.prompts.emplace(options.prompt_name, "x: ");
  }
  config.max_len = options.max_len;
  config.max_len_source = MaxLenSource::kSentenceTransformers;
  info_.limits.token_rows = config.vocab_size;
  info_.limits.segment_rows = options.segments;
  info_.limits.position_rows = options.positions;
  info_.limits.max_len = options.max_len;
  info_.device = "fake";
  info_.dtype = "fp32";
  info_.weights_sha256 = std::string(64, '0');
  info_.fingerprint = std::string(16, '0');
  info_.tokenizer = tokenizer_.algorithm();
  info_.preferred_sessions = options.sessions;
  info_.least_sessions = options.least_sessions;
  info_.pauses = options.pauses;
  info_.parameters = CountParameters(config);
  position_rows_ = SinusoidalPositions()
                       .Rows(options.positions, options.hidden_size, nullptr)
                       .value()
                       .Widened();
  if (options.random_from >= 0) {
    std::mt19937 random(7);
    for (size_t i = static_cast<size_t>(options.random_from) *
                    static_cast<size_t>(options.hidden_size);
         i < position_rows_.data.size(); ++i) {
      position_rows_.data[i] =
          static_cast<float>(static_cast<int32_t>(random() % 2001) - 1000);
    }
  }
}

absl::StatusOr<std::shared_ptr<FakeModel>> FakeModel::Load(
    const FakeModelOptions& fake, const ModelOptions& options) {
  absl::SleepFor(fake.load_time);
  if (options.max_len > fake.positions) {
    return absl::InvalidArgumentError(
        absl::StrCat("max_len is ", options.max_len,
                     "; the position table has ", fake.positions, " rows"));
  }
  FakeModelOptions used = fake;
  if (options.max_len > 0) used.max_len = options.max_len;
  return std::make_shared<FakeModel>(used);
}

absl::StatusOr<std::unique_ptr<Session>> FakeModel::NewSession(
    const SessionOptions&) const {
  return device_.NewSession();
}

absl::StatusOr<FakeModelOptions> ParseFakeModelOptions(
    const std::string& text) {
  FakeModelOptions options;
  for (absl::string_view entry : absl::StrSplit(text, ',', absl::SkipEmpty())) {
    const std::pair<std::string, std::string> parts =
        absl::StrSplit(entry, absl::MaxSplits(':', 1));
    int32_t value = 0;
    if (!absl::SimpleAtoi(parts.second, &value)) {
      return absl::InvalidArgumentError(absl::StrCat("no number: ", entry));
    }
    if (parts.first == "positions") {
      options.positions = value;
    } else if (parts.first == "max_len") {
      options.max_len = value;
    } else if (parts.first == "sessions") {
      options.sessions = value;
    } else if (parts.first == "hidden_size") {
      options.hidden_size = value;
    } else if (parts.first == "hashing") {
      options.hashing = value != 0;
    } else if (parts.first == "load_ms") {
      options.load_time = absl::Milliseconds(value);
    } else if (parts.first == "batch_us") {
      options.batch_time = absl::Microseconds(value);
    } else if (parts.first == "token_us") {
      options.token_time = absl::Microseconds(value);
    } else if (parts.first == "lost_after_batches") {
      options.lost_after = value;
    } else if (parts.first == "stuck_after_batches") {
      options.stuck_after = value;
    } else if (parts.first == "poison_token") {
      options.poison = value;
    } else if (parts.first == "stuck_token") {
      options.stuck = value;
    } else {
      return absl::InvalidArgumentError(absl::StrCat("unknown: ", entry));
    }
  }
  return options;
}

}  // namespace encoderd
