#include "server/rpc/answer.h"

#include <bit>
#include <cstring>

#include "absl/time/time.h"
#include "server/rpc/status.h"

namespace encoderd {

void SetUsage(const PipelineResult& result, v1::Usage* usage) {
  usage->set_tokens(static_cast<uint64_t>(result.tokens));
  usage->set_tokenize_ms(absl::ToDoubleMilliseconds(result.tokenize_time));
  usage->set_queue_ms(absl::ToDoubleMilliseconds(result.queue_time));
  usage->set_compute_ms(absl::ToDoubleMilliseconds(result.compute_time));
}

float PackVector(VectorFormat format, const ByteRanges& ranges,
                 absl::Span<const float> values, std::string* bytes) {
  bytes->resize(FormatBytes(format, static_cast<int64_t>(values.size())));
  if constexpr (std::endian::native == std::endian::little) {
    if (format == VectorFormat::kFloat32) {
      // A span of no tokens has no data to point at.
      if (!values.empty()) {
        std::memcpy(bytes->data(), values.data(), bytes->size());
      }
      return 0;
    }
  }
  return WriteVector(format, ranges, values,
                     reinterpret_cast<uint8_t*>(bytes->data()));
}

google::rpc::Status InputError(const absl::Status& status, Metrics* metrics) {
  const absl::Status published = Publish(status);
  metrics->InputRejected(ReasonOf(published));
  return ToRpcStatus(published, kMaxInputErrorBytes);
}

}  // namespace encoderd
