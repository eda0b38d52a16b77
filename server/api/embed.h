// Embed: texts or ids in, one vector per input out.
#ifndef ENCODERD_SERVER_API_EMBED_H_
#define ENCODERD_SERVER_API_EMBED_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "engine/base/quantize.h"
#include "server/api/job.h"
#include "server/api/options.h"

namespace encoderd {

// proto/encoderd/v1/encoder.proto has the meaning and default of each.
struct EmbedOptions {
  PoolingChoice pooling = PoolingChoice::kUnset;
  std::optional<bool> normalize;
  uint32_t dimensions = 0;
  TruncateChoice truncate = TruncateChoice::kUnset;
  std::string prompt_name;
  bool packed = false;
  EncodingChoice encoding = EncodingChoice::kUnset;
  std::optional<RangeLists> ranges;
  std::optional<uint32_t> window_overlap;
  OnErrorChoice on_error = OnErrorChoice::kUnset;
};

struct EmbedRequest {
  std::string model;
  std::vector<Input> inputs;
  EmbedOptions options;
  std::string request_id;
};

struct Embedding {
  absl::Status status;        // not OK only with kPerInput: no values
  std::vector<float> values;  // [dimensions]; empty: encoded
  std::string encoded;        // in options.encoding, unless that is FLOAT32
  float scale = 0;            // of bytes without ranges: the step
  int64_t token_count = 0;    // before any cut
  bool truncated = false;
  int64_t windows = 0;
};

class EmbedJob : public Job {
 public:
  static absl::StatusOr<EmbedJob> Make(const ServedModel& model,
                                       const RequestLimits& limits,
                                       EmbedRequest request);

  // Results of the pipeline -> one embedding per input; moves the values.
  std::vector<Embedding> Answer(std::vector<InputResult>* outputs) const;
  // The approximate size of that, four bytes per value; before Submit.
  int64_t AnswerBytes() const {
    return static_cast<int64_t>(request_.inputs.size()) *
           info().config.dimensions() * 4;
  }
  // Whether a caller wants bytes instead of a list of floats.
  bool packed() const { return packed_; }

 private:
  using Job::Job;
  absl::Status Check(const RequestLimits& limits, EmbedRequest* request);

  bool normalize_ = false;
  int32_t dimensions_ = 0;  // 1 .. H
  bool packed_ = false;
  VectorFormat format_ = VectorFormat::kFloat32;
  ByteRanges ranges_;
};

}  // namespace encoderd

#endif  // ENCODERD_SERVER_API_EMBED_H_
