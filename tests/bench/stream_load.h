// Load on EmbedStream: many texts over a few streams, every answer matched to
// its request by request_id.
#ifndef ENCODERD_TESTS_BENCH_STREAM_LOAD_H_
#define ENCODERD_TESTS_BENCH_STREAM_LOAD_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "encoderd/v1/encoder.grpc.pb.h"

namespace encoderd {

struct StreamLoadOptions {
  int64_t streams = 1;  // that read at once; two threads each
  // All of them together send this many texts, or 0: what they can in `time`.
  int64_t total_texts = 0;
  absl::Duration time;
  // Above 0: one more stream, of a tenth of the texts, stops reading for so
  // long once half of its requests are answered. Needs total_texts.
  absl::Duration stall;
};

// What one stream saw.
struct StreamLoadResult {
  int64_t requests = 0;
  int64_t texts = 0;   // answered with a vector
  int64_t tokens = 0;  // computed, as the server counts them
  int64_t errors = 0;  // refused requests, and faults of the stream
  std::string first_error;
  double seconds = 0;  // from the first request to the last answer

  void Fail(const std::string& error);
  void Add(const StreamLoadResult& other);
};

struct StreamLoadResults {
  StreamLoadResult reading;  // the sum; seconds: the longest
  StreamLoadResult stalled;
};

// Blocks until every stream has ended. An id that was never sent or was
// answered before, an answer of another number of vectors than texts, and a
// request left without an answer are each an error.
StreamLoadResults RunStreams(v1::Encoder::Stub* stub,
                             const std::vector<v1::EmbedRequest>& requests,
                             const StreamLoadOptions& options);

}  // namespace encoderd

#endif  // ENCODERD_TESTS_BENCH_STREAM_LOAD_H_
