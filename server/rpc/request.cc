#include "server/rpc/request.h"

#include <algorithm>
#include <cstdint>
#include <exception>
#include <string>

#include "absl/strings/str_cat.h"
#include "encoderd/v1/encoder.pb.h"
#include "engine/base/error.h"
#include "server/rpc/parse_cost.h"
#include "server/rpc/status.h"
#include "server/rpc/wire.h"

namespace encoderd {
namespace {

// The field number of `inputs` in every request that has inputs.
constexpr int kInputsField = 2;
static_assert(v1::EmbedRequest::kInputsFieldNumber == kInputsField);
static_assert(v1::EncodeRequest::kInputsFieldNumber == kInputsField);
static_assert(v1::TokenizeRequest::kInputsFieldNumber == kInputsField);

// Fields of an input with all that it can have: itself, its content, and two
// texts or three lists.
constexpr int64_t kFieldsOfAnInput = 5;

ParseLimits LimitsOf(const RequestLimits& limits) {
  return {std::max(kMaxFields, 2 * kFieldsOfAnInput * limits.max_inputs),
          limits.max_list_values};
}

}  // namespace

absl::Status ParseInputs(const RequestLimits& limits,
                         const grpc::ByteBuffer& bytes,
                         google::protobuf::Message* request,
                         std::vector<InputFault>* bad_texts) {
  ParseCost cost;
  absl::Status status =
      CheckParseCost(bytes, *request->GetDescriptor(), LimitsOf(limits), &cost);
  if (!status.ok()) return status;
  status = CheckInputCount(cost.entries, limits);
  // An empty list is told after parsing: garbage has no inputs either.
  if (!status.ok() && cost.entries > 0) return status;
  const absl::Status parsed = ParseChecked(bytes, request);
  if (parsed.ok() || bad_texts == nullptr) return parsed;
  std::string mended;
  if (ReasonOf(parsed) == "INVALID_UTF8" &&
      EmptyInvalidEntries(bytes, *request->GetDescriptor(), kInputsField,
                          &mended, bad_texts) &&
      request->ParseFromString(mended)) {
    return absl::OkStatus();
  }
  bad_texts->clear();
  return parsed;
}

absl::Status CheckAnswerSize(const google::protobuf::Message& answer,
                             const RequestLimits& limits,
                             absl::string_view field) {
  const int64_t size = static_cast<int64_t>(answer.ByteSizeLong());
  const int64_t limit = limits.max_message_bytes;
  if (size <= limit) return absl::OkStatus();
  return AnswerTooLargeError(size, limit, field);
}

absl::Status CatchAll(const std::function<absl::Status()>& body) {
  try {
    return body();
  } catch (const std::exception& error) {
    return absl::InternalError(absl::StrCat("exception: ", error.what()));
  } catch (...) {
    return absl::InternalError("exception of an unknown type");
  }
}

}  // namespace encoderd
