#include "server/rpc/request.h"

#include <cstdint>
#include <exception>
#include <string>

#include "absl/strings/str_cat.h"
#include "encoderd/v1/encoder.pb.h"
#include "engine/error.h"
#include "server/rpc/status.h"
#include "server/rpc/wire.h"

namespace encoderd {
namespace {

// The field number of `inputs` in every request that has inputs.
constexpr int kInputsField = 2;
static_assert(v1::EmbedRequest::kInputsFieldNumber == kInputsField);
static_assert(v1::EncodeRequest::kInputsFieldNumber == kInputsField);
static_assert(v1::TokenizeRequest::kInputsFieldNumber == kInputsField);

}  // namespace

absl::Status ParseInputs(const RequestLimits& limits,
                         const grpc::ByteBuffer& bytes,
                         google::protobuf::Message* request,
                         std::vector<InputFault>* bad_texts) {
  const int64_t count = CountEntries(bytes, kInputsField);
  const absl::Status status = CheckInputCount(count, limits);
  // An empty list is told after parsing: garbage has no inputs either.
  if (!status.ok() && count > 0) return status;
  const absl::Status parsed = ParseMessage(bytes, request);
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
                             const RequestLimits& limits) {
  const int64_t size = static_cast<int64_t>(answer.ByteSizeLong());
  const int64_t limit = limits.max_message_bytes;
  if (size <= limit) return absl::OkStatus();
  return AnswerTooLargeError(size, limit);
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
