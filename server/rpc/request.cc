// Bytes -> requests of the API.
#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "google/protobuf/arena.h"
#include "server/api/publish.h"
#include "server/pipeline/errors.h"
#include "server/pipeline/reasons.h"
#include "server/rpc/convert.h"
#include "server/rpc/parse_cost.h"
#include "server/rpc/wire.h"

namespace encoderd {
namespace {

using google::protobuf::Arena;

// The field number of `inputs` in every request that has inputs.
constexpr int kInputsField = 2;
static_assert(v1::EmbedRequest::kInputsFieldNumber == kInputsField);
static_assert(v1::EncodeRequest::kInputsFieldNumber == kInputsField);
static_assert(v1::TokenizeRequest::kInputsFieldNumber == kInputsField);

// Choices are cast: their numbers are those of the contract, value by value.
template <typename Choice, typename Proto>
struct Pairing {
  Choice choice;
  Proto proto;
};
// Every value from 0 to `last`, once, in order, equal on both sides.
template <typename Choice, typename Proto, size_t kSize>
constexpr bool Same(const Pairing<Choice, Proto> (&pairs)[kSize], int last) {
  for (size_t i = 0; i < kSize; ++i) {
    const auto number = static_cast<int>(i);
    if (static_cast<int>(pairs[i].choice) != number) return false;
    if (static_cast<int>(pairs[i].proto) != number) return false;
  }
  return static_cast<int>(kSize) == last + 1;
}
static_assert(Same<PoolingChoice, v1::Pooling>(
    {{PoolingChoice::kUnset, v1::POOLING_UNSPECIFIED},
     {PoolingChoice::kCls, v1::POOLING_CLS},
     {PoolingChoice::kMean, v1::POOLING_MEAN},
     {PoolingChoice::kMax, v1::POOLING_MAX},
     {PoolingChoice::kMeanSqrtLen, v1::POOLING_MEAN_SQRT_LEN},
     {PoolingChoice::kWeightedMean, v1::POOLING_WEIGHTED_MEAN},
     {PoolingChoice::kLastToken, v1::POOLING_LAST_TOKEN}},
    v1::Pooling_MAX));
static_assert(Same<TruncateChoice, v1::Truncate>(
    {{TruncateChoice::kUnset, v1::TRUNCATE_UNSPECIFIED},
     {TruncateChoice::kNone, v1::TRUNCATE_NONE},
     {TruncateChoice::kStart, v1::TRUNCATE_START},
     {TruncateChoice::kEnd, v1::TRUNCATE_END}},
    v1::Truncate_MAX));
static_assert(Same<OnErrorChoice, v1::OnError>(
    {{OnErrorChoice::kUnset, v1::ON_ERROR_UNSPECIFIED},
     {OnErrorChoice::kFailRequest, v1::ON_ERROR_FAIL_REQUEST},
     {OnErrorChoice::kPerInput, v1::ON_ERROR_PER_INPUT}},
    v1::OnError_MAX));
static_assert(Same<SpanChoice, v1::TokenSpan>(
    {{SpanChoice::kUnset, v1::TOKEN_SPAN_UNSPECIFIED},
     {SpanChoice::kAll, v1::TOKEN_SPAN_ALL},
     {SpanChoice::kWithoutSpecialTokens,
      v1::TOKEN_SPAN_WITHOUT_SPECIAL_TOKENS}},
    v1::TokenSpan_MAX));
static_assert(Same<EncodingChoice, v1::Encoding>(
    {{EncodingChoice::kUnset, v1::ENCODING_UNSPECIFIED},
     {EncodingChoice::kFloat32, v1::ENCODING_FLOAT32},
     {EncodingChoice::kFloat16, v1::ENCODING_FLOAT16},
     {EncodingChoice::kInt8, v1::ENCODING_INT8},
     {EncodingChoice::kUint8, v1::ENCODING_UINT8},
     {EncodingChoice::kBinary, v1::ENCODING_BINARY},
     {EncodingChoice::kUbinary, v1::ENCODING_UBINARY}},
    v1::Encoding_MAX));

// Fields of an input with everything it can have: itself, its content, and two
// texts or three lists.
constexpr int64_t kFieldsOfAnInput = 5;

ParseLimits LimitsOf(const CallEnvironment& environment) {
  return {std::max(kMaxFields,
                   2 * kFieldsOfAnInput * environment.api.limits.max_inputs),
          environment.max_list_values};
}

// Parses `bytes` into `request`, a message whose only list is `inputs`.
// bad_texts: if not null, an input that is not UTF-8 is not an error here: the
// request has an input without content in its place, and *bad_texts has the
// error (by index); if there are more than an answer has room for, the first is
// an error here.
absl::Status ParseInputs(const CallEnvironment& environment,
                         const grpc::ByteBuffer& bytes,
                         google::protobuf::Message* request,
                         std::vector<InputFault>* bad_texts) {
  ParseCost cost;
  absl::Status status = CheckParseCost(bytes, *request->GetDescriptor(),
                                       LimitsOf(environment), &cost);
  if (!status.ok()) return status;
  status = CheckInputCount(cost.entries, environment.api.limits);
  // An empty list is reported after parsing: garbage has no inputs either.
  if (!status.ok() && cost.entries > 0) return status;
  const absl::Status parsed = ParseChecked(bytes, request);
  if (parsed.ok() || bad_texts == nullptr) return parsed;
  std::string mended;
  const int64_t most =
      environment.api.limits.max_answer_bytes / kLeastErrorBytes;
  if (ReasonOf(parsed) == reason::kInvalidUtf8 &&
      EmptyInvalidEntries(bytes, *request->GetDescriptor(), kInputsField, most,
                          &mended, bad_texts) &&
      request->ParseFromString(mended)) {
    return absl::OkStatus();
  }
  bad_texts->clear();
  return parsed;
}

// An id keeps its bits: one beyond int32 becomes negative and lies beyond every
// table in either form.
std::vector<int32_t> ToIds(
    const google::protobuf::RepeatedField<uint32_t>& from) {
  return {from.begin(), from.end()};
}

Input ToInput(v1::Input* input) {
  switch (input->content_case()) {
    case v1::Input::kText:
      return TextInput{std::move(*input->mutable_text())};
    case v1::Input::kPair:
      return PairInput{std::move(*input->mutable_pair()->mutable_first()),
                       std::move(*input->mutable_pair()->mutable_second())};
    case v1::Input::kTokens:
      return TokenSequence{ToIds(input->tokens().ids()),
                           ToIds(input->tokens().segment_ids()),
                           ToIds(input->tokens().position_ids())};
    case v1::Input::CONTENT_NOT_SET:
      break;
  }
  static const absl::Status kNoContent =
      EmptyInputError("the input has no content: set text, pair or tokens");
  return RefusedInput{kNoContent, 0, /*complete=*/false};
}

// bad_texts: by index.
std::vector<Input> ToInputs(
    std::vector<InputFault> bad_texts,
    google::protobuf::RepeatedPtrField<v1::Input>* inputs) {
  std::vector<Input> converted(inputs->size());
  auto bad = bad_texts.begin();
  for (int i = 0; i < inputs->size(); ++i) {
    if (bad != bad_texts.end() && bad->index == i) {
      converted[i] = RefusedInput{std::move(bad++->status)};
    } else {
      converted[i] = ToInput(inputs->Mutable(i));
    }
  }
  return converted;
}

EmbedOptions ToOptions(v1::EmbedOptions* from) {
  EmbedOptions to;
  to.pooling = static_cast<PoolingChoice>(from->pooling());
  if (from->has_normalize()) to.normalize = from->normalize();
  to.dimensions = from->dimensions();
  to.truncate = static_cast<TruncateChoice>(from->truncate());
  to.prompt_name = std::move(*from->mutable_prompt_name());
  to.packed = from->packed();
  to.encoding = static_cast<EncodingChoice>(from->encoding());
  if (from->has_ranges()) {
    const v1::QuantizationRanges& ranges = from->ranges();
    to.ranges = {{ranges.minimum().begin(), ranges.minimum().end()},
                 {ranges.maximum().begin(), ranges.maximum().end()}};
  }
  if (from->has_windows()) to.window_overlap = from->windows().overlap();
  to.on_error = static_cast<OnErrorChoice>(from->on_error());
  return to;
}

}  // namespace

absl::Status Read(const CallEnvironment& environment,
                  const grpc::ByteBuffer& bytes, EmbedRequest* request) {
  Arena arena;
  auto* from = Arena::CreateMessage<v1::EmbedRequest>(&arena);
  std::vector<InputFault> bad_texts;
  const absl::Status status = ParseInputs(environment, bytes, from, &bad_texts);
  if (!status.ok()) return status;
  request->model = std::move(*from->mutable_model());
  request->inputs = ToInputs(std::move(bad_texts), from->mutable_inputs());
  request->options = ToOptions(from->mutable_options());
  request->request_id = std::move(*from->mutable_request_id());
  return absl::OkStatus();
}

absl::Status Read(const CallEnvironment& environment,
                  const grpc::ByteBuffer& bytes, EncodeRequest* request) {
  Arena arena;
  auto* from = Arena::CreateMessage<v1::EncodeRequest>(&arena);
  std::vector<InputFault> bad_texts;
  const absl::Status status = ParseInputs(environment, bytes, from, &bad_texts);
  if (!status.ok()) return status;
  request->model = std::move(*from->mutable_model());
  request->inputs = ToInputs(std::move(bad_texts), from->mutable_inputs());
  if (from->has_layer()) request->layer = from->layer();
  request->truncate = static_cast<TruncateChoice>(from->truncate());
  request->request_id = std::move(*from->mutable_request_id());
  request->span = static_cast<SpanChoice>(from->span());
  request->before_norm = from->before_norm();
  request->on_error = static_cast<OnErrorChoice>(from->on_error());
  return absl::OkStatus();
}

absl::Status Read(const CallEnvironment& environment,
                  const grpc::ByteBuffer& bytes, TokenizeRequest* request) {
  Arena arena;
  auto* from = Arena::CreateMessage<v1::TokenizeRequest>(&arena);
  const absl::Status status = ParseInputs(environment, bytes, from, nullptr);
  if (!status.ok()) return status;
  request->model = std::move(*from->mutable_model());
  request->inputs = ToInputs({}, from->mutable_inputs());
  return absl::OkStatus();
}

absl::Status Read(const CallEnvironment&, const grpc::ByteBuffer& bytes,
                  InspectRequest* request) {
  v1::InspectPositionsRequest from;
  const absl::Status status = ParseMessage(bytes, &from);
  if (!status.ok()) return status;
  *request = {from.model(), from.first_row(), from.row_count(), from.cosine(),
              from.values()};
  return absl::OkStatus();
}

}  // namespace encoderd
