// Bulk over EmbedStream: a list of any length through one call, a bounded
// window of requests in flight, answers matched by request_id and handed over
// in the list's order.
//
// A stream that breaks (server restarted, connection lost, DRAINING) is opened
// anew and only what was not answered is sent again; so are requests that a
// full queue refused, after the pause that the server asks for. Memory is that
// of the window. One bad input costs its own answer only.
// Client::EmbedBulk (client.h) does it; here is what it takes and gives.
#ifndef ENCODERD_CLIENT_CPP_BULK_H_
#define ENCODERD_CLIENT_CPP_BULK_H_

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "encoderd/v1/encoder.pb.h"

namespace encoderd::client {

struct BulkOptions {
  std::string model;           // empty: the only or the default model
  v1::EmbedOptions options;    // `packed` and `on_error` are set here
  int64_t first_input = 0;     // place of the source's first in the list
  int texts_per_request = 64;  // inputs of one request at most
  int64_t bytes_per_request = 1 << 20;  // of text, after which it is closed
  int requests_in_flight = 16;          // the server reads at most 64 ahead
  // Ends with the last error (or DEADLINE_EXCEEDED) when nothing at all was
  // answered for so long, reconnecting included.
  absl::Duration patience = absl::Seconds(60);
  // Asked some ten times a second; true ends the work with CANCELLED. Null:
  // never.
  std::function<bool()> stop;
};

// The next input, or, in `refused`, why it cannot be sent; false at the end.
// An error ends the list with that error once all before it is answered.
using BulkSource = std::function<absl::StatusOr<bool>(v1::Input* input,
                                                      absl::Status* refused)>;

// What came of consecutive inputs of the list.
struct BulkAnswer {
  int64_t first_input = 0;
  std::vector<v1::Embedding> embeddings;  // of each input
  std::vector<absl::Status> errors;       // OK: the embedding holds values
};

}  // namespace encoderd::client

#endif  // ENCODERD_CLIENT_CPP_BULK_H_
