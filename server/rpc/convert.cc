#include "server/rpc/convert.h"

#include <algorithm>
#include <limits>
#include <optional>
#include <string>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "engine/base/batch.h"
#include "engine/base/error.h"
#include "server/pipeline/errors.h"
#include "server/rpc/options.h"

namespace encoderd {
namespace {

// Ids beyond int32 lie beyond every table too: they become its largest value.
void Narrow(const google::protobuf::RepeatedField<uint32_t>& from,
            std::vector<int32_t>* to) {
  constexpr uint32_t kMax = std::numeric_limits<int32_t>::max();
  to->resize(from.size());
  for (int i = 0; i < from.size(); ++i) {
    (*to)[i] = static_cast<int32_t>(std::min(from[i], kMax));
  }
}

// An error about an id, with the id as it was sent, not as Narrow left it.
absl::Status AsSent(const v1::TokenIds& tokens, const absl::Status& status) {
  std::optional<ErrorDetail> detail = GetErrorDetail(status);
  int index = 0;
  if (!detail.has_value() || detail->metadata.count("id") == 0 ||
      !absl::SimpleAtoi(detail->metadata["index"], &index)) {
    return status;
  }
  const auto& ids = detail->field == "tokens.ids" ? tokens.ids()
                    : detail->field == "tokens.segment_ids"
                        ? tokens.segment_ids()
                        : tokens.position_ids();
  const std::string narrow = detail->metadata["id"];
  const std::string sent = absl::StrCat(ids[index]);
  detail->metadata["id"] = sent;
  return MakeError(status.code(),
                   absl::StrReplaceAll(status.message(),
                                       {{absl::StrCat(" id ", narrow, " "),
                                         absl::StrCat(" id ", sent, " ")}}),
                   *detail);
}

// A sequence without content, or with ids that no table has.
absl::Status ConvertTokens(const v1::TokenIds& tokens, const IdLimits& limits,
                           TokenSequence* sequence) {
  Narrow(tokens.ids(), &sequence->token_ids);
  Narrow(tokens.segment_ids(), &sequence->segment_ids);
  Narrow(tokens.position_ids(), &sequence->position_ids);
  return AsSent(tokens, ValidateSequence(*sequence, limits));
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
    case v1::Input::kText:
      return "text";
    case v1::Input::CONTENT_NOT_SET:
      break;
  }
  return "";
}

// What the inputs of one request have in common.
struct InputRules {
  std::string prompt;
  IdLimits limits;
  bool errors_per_input = false;
};

// bad_texts: by index.
absl::Status ConvertInputs(
    const InputRules& rules, const std::vector<InputFault>& bad_texts,
    google::protobuf::RepeatedPtrField<v1::Input>* inputs,
    std::vector<PipelineInput>* converted) {
  std::vector<InputFault> faults;
  int64_t total = 0;
  converted->resize(inputs->size());
  auto bad = bad_texts.begin();
  for (int i = 0; i < inputs->size(); ++i) {
    v1::Input* input = inputs->Mutable(i);
    PipelineInput* const into = &(*converted)[i];
    InputFault fault;
    if (bad != bad_texts.end() && bad->index == i) {
      fault = *bad++;
    } else {
      const absl::Status status =
          ConvertInput(rules.prompt, rules.limits, input, into);
      if (status.ok()) continue;
      fault = MakeInputFault(i, ContentName(*input), status);
    }
    if (rules.errors_per_input) {
      *into = RefusedInput{fault.status};
    } else if (++total <= kMaxViolations) {
      faults.push_back(std::move(fault));
    }
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

absl::StatusOr<EmbedPlan> ConvertEmbed(const ModelInfo& model,
                                       int32_t special_tokens,
                                       const RequestLimits& limits,
                                       v1::EmbedRequest* request,
                                       std::vector<InputFault> bad_texts) {
  const v1::EmbedOptions& options = request->options();
  absl::Status status = CheckInputCount(request->inputs_size(), limits);
  if (!status.ok()) return status;
  status = CheckRequestId(request->request_id());
  if (!status.ok()) return status;

  EmbedPlan plan;
  const auto pooling =
      ToPooling("options.pooling", options.pooling(), model.config.pooling);
  if (!pooling.ok()) return pooling.status();
  plan.request.output.pooling = *pooling;
  plan.request.output.normalize =
      options.has_normalize() ? options.normalize() : model.config.normalize;
  const auto truncate = ToTruncate("options.truncate", options.truncate());
  if (!truncate.ok()) return truncate.status();
  plan.request.truncate = *truncate;
  const auto dimensions = ToDimensions(
      "options.dimensions", options.dimensions(), model.config.dimensions());
  if (!dimensions.ok()) return dimensions.status();
  plan.dimensions = *dimensions;
  const auto format = ToFormat("options.encoding", options.encoding());
  if (!format.ok()) return format.status();
  plan.format = *format;
  plan.packed = options.packed() || plan.format != VectorFormat::kFloat32;
  auto ranges = ToRanges(options, plan.format, plan.dimensions);
  if (!ranges.ok()) return ranges.status();
  plan.ranges = *std::move(ranges);
  plan.request.answer = {FormatBytes(plan.format, plan.dimensions),
                         limits.max_message_bytes};
  const auto windows = ToWindows(options, model.limits.max_len, special_tokens);
  if (!windows.ok()) return windows.status();
  plan.request.window_overlap = *windows;
  const auto per_input =
      ToErrorsPerInput("options.on_error", options.on_error());
  if (!per_input.ok()) return per_input.status();
  plan.request.errors_per_input = *per_input;
  const auto prompt =
      FindPrompt("options.prompt_name", model.config, options.prompt_name());
  if (!prompt.ok()) return prompt.status();

  status = ConvertInputs({*prompt, model.limits, *per_input}, bad_texts,
                         request->mutable_inputs(), &plan.request.inputs);
  if (!status.ok()) return status;
  return plan;
}

absl::StatusOr<PipelineRequest> ConvertEncode(
    const ModelInfo& model, const RequestLimits& limits,
    v1::EncodeRequest* request, std::vector<InputFault> bad_texts) {
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
  const auto span = ToWithoutSpecialTokens("span", request->span());
  if (!span.ok()) return span.status();
  converted.without_special_tokens = *span;
  if (request->before_norm()) {
    if (converted.output.layer != 0) {
      return BadOption(
          "before_norm",
          absl::StrCat("is asked for with layer ", converted.output.layer,
                       "; only layer 0 has a sum before its norm"),
          converted.output.layer, 0);
    }
    converted.output.layer = kTableSum;
  }
  const auto per_input = ToErrorsPerInput("on_error", request->on_error());
  if (!per_input.ok()) return per_input.status();
  converted.errors_per_input = *per_input;
  const int32_t columns = converted.output.layer == kTableSum
                              ? model.config.table_columns()
                              : model.config.hidden_size;
  converted.answer = {columns * int64_t{sizeof(float)},
                      limits.max_message_bytes};
  status = ConvertInputs({"", model.limits, *per_input}, bad_texts,
                         request->mutable_inputs(), &converted.inputs);
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
  status = ConvertInputs({"", any_length, false}, {}, request->mutable_inputs(),
                         &inputs);
  if (!status.ok()) return status;
  return inputs;
}

}  // namespace encoderd
