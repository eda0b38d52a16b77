#include "server/rpc/convert.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "engine/batch.h"
#include "engine/error.h"
#include "server/pipeline/errors.h"

namespace encoderd {
namespace {

constexpr size_t kMaxNameInMessage = 64;  // bytes

absl::Status BadOption(absl::string_view field, absl::string_view message,
                       int64_t value, int64_t limit) {
  return MakeError(
      absl::StatusCode::kInvalidArgument, absl::StrCat(field, " ", message),
      {"INVALID_OPTION",
       {{"value", absl::StrCat(value)}, {"limit", absl::StrCat(limit)}},
       std::string(field)});
}

absl::Status CheckRequestId(const std::string& request_id) {
  const int64_t size = static_cast<int64_t>(request_id.size());
  if (size <= kMaxRequestIdBytes) return absl::OkStatus();
  return BadOption("request_id",
                   absl::StrCat("has ", size, " bytes; at most ",
                                kMaxRequestIdBytes, " are allowed"),
                   size, kMaxRequestIdBytes);
}

absl::StatusOr<Pooling> ToPooling(int value, Pooling model_pooling) {
  switch (value) {
    case v1::POOLING_UNSPECIFIED:
      return model_pooling;
    case v1::POOLING_CLS:
      return Pooling::kCls;
    case v1::POOLING_MEAN:
      return Pooling::kMean;
    case v1::POOLING_MAX:
      return Pooling::kMax;
    case v1::POOLING_MEAN_SQRT_LEN:
      return Pooling::kMeanSqrtLen;
    case v1::POOLING_WEIGHTED_MEAN:
      return Pooling::kWeightedMean;
    case v1::POOLING_LAST_TOKEN:
      return Pooling::kLastToken;
    default:
      return BadOption("options.pooling",
                       absl::StrCat("is ", value, "; this server knows 0 to ",
                                    v1::Pooling_MAX),
                       value, v1::Pooling_MAX);
  }
}

absl::StatusOr<TruncateMode> ToTruncate(absl::string_view field, int value) {
  switch (value) {
    case v1::TRUNCATE_UNSPECIFIED:
    case v1::TRUNCATE_NONE:
      return TruncateMode::kNone;
    case v1::TRUNCATE_START:
      return TruncateMode::kStart;
    case v1::TRUNCATE_END:
      return TruncateMode::kEnd;
    default:
      return BadOption(field,
                       absl::StrCat("is ", value, "; this server knows 0 to ",
                                    v1::Truncate_MAX),
                       value, v1::Truncate_MAX);
  }
}

absl::StatusOr<std::string> FindPrompt(const ModelConfig& config,
                                       const std::string& asked) {
  const std::string& name = asked.empty() ? config.default_prompt_name : asked;
  if (name.empty()) return std::string();
  const auto at = config.prompts.find(name);
  if (at != config.prompts.end()) return at->second;
  std::string available;
  for (const auto& entry : config.prompts) {
    absl::StrAppend(&available, available.empty() ? "" : ", ", entry.first);
  }
  return MakeError(
      absl::StatusCode::kNotFound,
      absl::StrCat("no prompt '", ForMessage(name), "'; this model has ",
                   available.empty() ? "none" : available),
      {"PROMPT_NOT_FOUND",
       {{"prompt", ForMessage(name)}, {"available", available}},
       "options.prompt_name"});
}

// Ids beyond int32 lie beyond every table too: they become its largest value.
void Narrow(const google::protobuf::RepeatedField<uint32_t>& from,
            std::vector<int32_t>* to) {
  constexpr uint32_t kMax = std::numeric_limits<int32_t>::max();
  to->resize(from.size());
  for (int i = 0; i < from.size(); ++i) {
    (*to)[i] = static_cast<int32_t>(std::min(from[i], kMax));
  }
}

// A sequence without content, or with ids that no table has.
absl::Status ConvertTokens(const v1::TokenIds& tokens, const IdLimits& limits,
                           TokenSequence* sequence) {
  Narrow(tokens.ids(), &sequence->token_ids);
  Narrow(tokens.segment_ids(), &sequence->segment_ids);
  Narrow(tokens.position_ids(), &sequence->position_ids);
  return ValidateSequence(*sequence, limits);
}

absl::Status EmptyInput(absl::string_view message) {
  return MakeError(absl::StatusCode::kInvalidArgument, message,
                   {"EMPTY_INPUT", {}, ""});
}

absl::Status ConvertInput(const std::string& prompt, const IdLimits& limits,
                          v1::Input* input, PipelineInput* converted) {
  switch (input->content_case()) {
    case v1::Input::kText: {
      if (input->text().empty()) {
        return EmptyInput("the input is an empty text");
      }
      TextInput text;
      if (prompt.empty()) {
        text.text = std::move(*input->mutable_text());
      } else {
        text.text = absl::StrCat(prompt, input->text());
      }
      *converted = std::move(text);
      return absl::OkStatus();
    }
    case v1::Input::kPair: {
      v1::TextPair* pair = input->mutable_pair();
      *converted = PairInput{std::move(*pair->mutable_first()),
                             std::move(*pair->mutable_second())};
      return absl::OkStatus();
    }
    case v1::Input::kTokens: {
      TokenSequence sequence;
      const absl::Status status =
          ConvertTokens(input->tokens(), limits, &sequence);
      *converted = std::move(sequence);
      return status;
    }
    case v1::Input::CONTENT_NOT_SET:
      break;
  }
  return EmptyInput("the input has no content: set text, pair or tokens");
}

absl::string_view ContentName(const v1::Input& input) {
  switch (input.content_case()) {
    case v1::Input::kPair:
      return "pair";
    case v1::Input::kTokens:
      return "tokens";
    default:
      return "text";
  }
}

absl::Status ConvertInputs(
    const std::string& prompt, const IdLimits& limits,
    google::protobuf::RepeatedPtrField<v1::Input>* inputs,
    std::vector<PipelineInput>* converted) {
  std::vector<InputFault> faults;
  int64_t total = 0;
  converted->resize(inputs->size());
  for (int i = 0; i < inputs->size(); ++i) {
    v1::Input* input = inputs->Mutable(i);
    const absl::Status status =
        ConvertInput(prompt, limits, input, &(*converted)[i]);
    if (status.ok()) continue;
    if (++total > kMaxViolations) continue;
    faults.push_back(MakeInputFault(i, ContentName(*input), status));
  }
  if (total == 0) return absl::OkStatus();
  return CombineInputFaults(std::move(faults), total);
}

}  // namespace

absl::Status CheckInputCount(int64_t count, const RequestLimits& limits) {
  if (count == 0) {
    return MakeError(absl::StatusCode::kInvalidArgument,
                     "inputs is empty; give at least one",
                     {"NO_INPUTS", {}, "inputs"});
  }
  if (count <= limits.max_inputs) return absl::OkStatus();
  return MakeError(absl::StatusCode::kInvalidArgument,
                   absl::StrCat("inputs has ", count,
                                " entries; one request may carry at most ",
                                limits.max_inputs),
                   {"TOO_MANY_INPUTS",
                    {{"count", absl::StrCat(count)},
                     {"limit", absl::StrCat(limits.max_inputs)}},
                    "inputs"});
}

v1::Pooling PoolingToProto(Pooling pooling) {
  switch (pooling) {
    case Pooling::kCls:
      return v1::POOLING_CLS;
    case Pooling::kMean:
      return v1::POOLING_MEAN;
    case Pooling::kMax:
      return v1::POOLING_MAX;
    case Pooling::kMeanSqrtLen:
      return v1::POOLING_MEAN_SQRT_LEN;
    case Pooling::kWeightedMean:
      return v1::POOLING_WEIGHTED_MEAN;
    case Pooling::kLastToken:
      return v1::POOLING_LAST_TOKEN;
  }
  return v1::POOLING_UNSPECIFIED;
}

std::string ForMessage(absl::string_view name) {
  size_t end = std::min(name.size(), kMaxNameInMessage);
  const bool cut = end < name.size();
  while (cut && end > 0 &&
         (static_cast<unsigned char>(name[end]) & 0xC0) == 0x80) {
    --end;
  }
  return absl::StrCat(absl::Utf8SafeCEscape(name.substr(0, end)),
                      cut ? "..." : "");
}

absl::StatusOr<EmbedPlan> ConvertEmbed(const ModelInfo& model,
                                       const RequestLimits& limits,
                                       v1::EmbedRequest* request) {
  const v1::EmbedOptions& options = request->options();
  absl::Status status = CheckInputCount(request->inputs_size(), limits);
  if (!status.ok()) return status;
  status = CheckRequestId(request->request_id());
  if (!status.ok()) return status;

  EmbedPlan plan;
  const auto pooling = ToPooling(options.pooling(), model.config.pooling);
  if (!pooling.ok()) return pooling.status();
  plan.request.output.pooling = *pooling;
  plan.request.output.normalize =
      options.has_normalize() ? options.normalize() : model.config.normalize;
  const auto truncate = ToTruncate("options.truncate", options.truncate());
  if (!truncate.ok()) return truncate.status();
  plan.request.truncate = *truncate;
  const int64_t hidden = model.config.hidden_size;
  if (options.dimensions() > hidden) {
    return BadOption(
        "options.dimensions",
        absl::StrCat("is ", options.dimensions(), "; this model has ", hidden),
        options.dimensions(), hidden);
  }
  plan.dimensions = static_cast<int32_t>(
      options.dimensions() == 0 ? hidden : options.dimensions());
  plan.packed = options.packed();
  const auto prompt = FindPrompt(model.config, options.prompt_name());
  if (!prompt.ok()) return prompt.status();

  status = ConvertInputs(*prompt, model.limits, request->mutable_inputs(),
                         &plan.request.inputs);
  if (!status.ok()) return status;
  return plan;
}

absl::StatusOr<PipelineRequest> ConvertEncode(const ModelInfo& model,
                                              const RequestLimits& limits,
                                              v1::EncodeRequest* request) {
  absl::Status status = CheckInputCount(request->inputs_size(), limits);
  if (!status.ok()) return status;
  status = CheckRequestId(request->request_id());
  if (!status.ok()) return status;

  PipelineRequest converted;
  const int64_t layers = model.config.num_hidden_layers;
  if (request->has_layer() && request->layer() > layers) {
    return MakeError(absl::StatusCode::kInvalidArgument,
                     absl::StrCat("layer is ", request->layer(),
                                  "; this model has layers 0 to ", layers),
                     {"LAYER_OUT_OF_RANGE",
                      {{"layer", absl::StrCat(request->layer())},
                       {"limit", absl::StrCat(layers)}},
                      "layer"});
  }
  converted.output.kind = SequenceOutput::Kind::kStates;
  converted.output.layer =
      static_cast<int32_t>(request->has_layer() ? request->layer() : layers);
  const auto truncate = ToTruncate("truncate", request->truncate());
  if (!truncate.ok()) return truncate.status();
  converted.truncate = *truncate;
  status = ConvertInputs("", model.limits, request->mutable_inputs(),
                         &converted.inputs);
  if (!status.ok()) return status;
  return converted;
}

absl::StatusOr<std::vector<PipelineInput>> ConvertTokenize(
    const ModelInfo& model, const RequestLimits& limits,
    v1::TokenizeRequest* request) {
  absl::Status status = CheckInputCount(request->inputs_size(), limits);
  if (!status.ok()) return status;
  IdLimits any_length = model.limits;
  any_length.max_len = std::numeric_limits<int32_t>::max();
  std::vector<PipelineInput> inputs;
  status = ConvertInputs("", any_length, request->mutable_inputs(), &inputs);
  if (!status.ok()) return status;
  return inputs;
}

}  // namespace encoderd
