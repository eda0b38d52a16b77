#include "server/pipeline/input_encoder.h"

#include <algorithm>
#include <utility>
#include <variant>

#include "server/pipeline/errors.h"

namespace encoderd {
namespace {

// English text has four to five bytes per token.
constexpr int64_t kBytesPerToken = 4;

// Larger texts are tokenized twice if offsets are requested: the first time
// only counts.
constexpr int64_t kCountFirstBytes = 64 << 10;

absl::Status EncodeText(const Tokenizer& tokenizer, const Input& input,
                        const Tokenizer::EncodeOptions& options,
                        TokenizerScratch* scratch, Encoding* out) {
  // The one place where a tokenizer's exception (no memory for a huge text)
  // becomes a Status.
  try {
    if (const auto* pair = std::get_if<PairInput>(&input)) {
      return tokenizer.EncodePair(pair->first, pair->second, options, scratch,
                                  out);
    }
    return tokenizer.Encode(std::get<TextInput>(input).text, options, scratch,
                            out);
  } catch (...) {
    return InternalFaultError(NewErrorId());
  }
}

// A model without a segment table never gets segments.
bool WantsSegments(const Encoding& encoding, const IdLimits& limits) {
  return limits.segment_rows > 0 &&
         std::any_of(encoding.segment_ids.begin(), encoding.segment_ids.end(),
                     [](int32_t id) { return id != 0; });
}

std::vector<TextRange> SpanOfTexts(const Encoding& encoding) {
  std::vector<TextRange> span;
  for (int text = 0; text < (encoding.pair ? 2 : 1); ++text) {
    const int64_t begin = encoding.text_begins[text];
    span.push_back({begin, begin + encoding.text_tokens[text]});
  }
  return span;
}

std::vector<TextRange> SpanOfIds(const Tokenizer& tokenizer,
                                 const std::vector<int32_t>& ids) {
  std::vector<TextRange> span;
  for (size_t i = 0; i < ids.size(); ++i) {
    if (tokenizer.is_special(ids[i])) continue;
    const auto at = static_cast<int64_t>(i);
    if (span.empty() || span.back().end != at) span.push_back({at, at});
    ++span.back().end;
  }
  return span;
}

}  // namespace

absl::Status InputEncoder::Encode(Input* input, const EncodeRules& rules,
                                  TokenizerScratch* scratch, Encoding* buffer,
                                  TokenizedInput* out) const {
  absl::Status status = EncodeKept(input, rules, scratch, buffer, out);
  if (!status.ok()) {
    out->sequence = TokenSequence();
    out->span = std::vector<TextRange>();
  }
  return status;
}

absl::Status InputEncoder::EncodeKept(Input* input, const EncodeRules& rules,
                                      TokenizerScratch* scratch,
                                      Encoding* buffer,
                                      TokenizedInput* out) const {
  out->truncated = false;
  if (auto* tokens = std::get_if<TokenSequence>(input)) {
    out->sequence = std::move(*tokens);
    out->token_count = out->tokens = out->sequence.size();
    if (rules.without_special_tokens) {
      out->span = SpanOfIds(tokenizer_, out->sequence.token_ids);
    }
    return absl::OkStatus();
  }
  absl::Status status = EncodeText(tokenizer_, *input, {}, scratch, buffer);
  if (!status.ok()) return status;
  out->token_count = static_cast<int64_t>(buffer->token_ids.size());
  IdLimits limits = limits_;
  const bool too_long = out->token_count > limits_.max_len;
  if (too_long && rules.window_overlap.has_value() && !buffer->pair) {
    const WindowRule rule = RuleOf(*rules.window_overlap);
    out->text_begin = buffer->text_begins[0];
    out->text_tokens = buffer->text_tokens[0];
    out->windows = CountWindows(rule, out->text_tokens);
    out->tokens = WindowTokens(rule, out->text_tokens);
    limits.max_len = static_cast<int32_t>(out->token_count);
  } else if (too_long && rules.truncate != TruncateMode::kNone) {
    tokenizer_.Truncate(limits_.max_len,
                        rules.truncate == TruncateMode::kStart
                            ? TruncateSide::kStart
                            : TruncateSide::kEnd,
                        buffer);
    out->truncated = true;
  }
  if (rules.without_special_tokens) out->span = SpanOfTexts(*buffer);
  const bool segments = WantsSegments(*buffer, limits_);
  if (static_cast<int64_t>(buffer->token_ids.size()) > limits_.max_len) {
    // Swapped, not copied: it may be long and is only read once.
    std::swap(out->sequence.token_ids, buffer->token_ids);
  } else {
    out->sequence.token_ids.assign(buffer->token_ids.begin(),
                                   buffer->token_ids.end());
  }
  if (segments) {
    out->sequence.segment_ids.assign(buffer->segment_ids.begin(),
                                     buffer->segment_ids.end());
  }
  if (out->windows == 0) out->tokens = out->sequence.size();
  status = ValidateSequence(out->sequence, limits);
  return rules.prompt_name.empty() || buffer->pair
             ? status
             : WithPrompt(status, rules.prompt_name);
}

absl::Status InputEncoder::Tokenize(const Input& input,
                                    const Tokenizer::EncodeOptions& options,
                                    int64_t max_ids, TokenizerScratch* scratch,
                                    Encoding* out) const {
  const auto* tokens = std::get_if<TokenSequence>(&input);
  if (tokens == nullptr) {
    if (options.offsets && InputBytes(input) > kCountFirstBytes) {
      absl::Status status = EncodeText(tokenizer_, input, {}, scratch, out);
      if (!status.ok() ||
          static_cast<int64_t>(out->token_ids.size()) > max_ids) {
        return status;
      }
    }
    return EncodeText(tokenizer_, input, options, scratch, out);
  }
  out->Clear();
  out->token_ids = tokens->token_ids;
  out->segment_ids = tokens->segment_ids;
  out->segment_ids.resize(out->token_ids.size(), 0);
  return absl::OkStatus();
}

int64_t InputEncoder::EstimateTokens(const Input& input,
                                     const EncodeRules& rules,
                                     bool* exact) const {
  if (const auto* tokens = std::get_if<TokenSequence>(&input)) {
    return rules.any_length
               ? tokens->size()
               : std::min<int64_t>(tokens->size(), limits_.max_len);
  }
  if (std::holds_alternative<RefusedInput>(input)) return 0;
  *exact = false;
  int64_t bytes = 0;
  bool pair = false;
  if (const auto* both = std::get_if<PairInput>(&input)) {
    bytes = static_cast<int64_t>(both->first.size() + both->second.size());
    pair = true;
  } else {
    bytes = static_cast<int64_t>(std::get<TextInput>(input).text.size());
  }
  const int64_t tokens =
      tokenizer_.num_special_tokens(pair) + bytes / kBytesPerToken;
  if (rules.any_length || (rules.window_overlap.has_value() && !pair)) {
    return tokens;
  }
  return std::min<int64_t>(tokens, limits_.max_len);
}

}  // namespace encoderd
