// Bulk over EmbedStream: a list of any length through one call, a bounded
// window of requests in flight, answers matched by request_id and handed over
// in the list's order.
//
// A stream that breaks (server restarted, connection lost, DRAINING) is
// reopened, and only unanswered requests are resent. Requests that a full queue
// refused, or that expired in it, are resent after a pause. Memory is that of
// the window. A bad input loses only its own answer, as does an input that is
// too large for the server by itself. A call that is too large as a whole is
// resent in halves. One that has more inputs than the server takes is resent as
// calls of as many as it takes, and later ones have no more.
// Client::EmbedBulk (client.h) does this; this header has its types.
#ifndef ENCODERD_CLIENT_CPP_BULK_H_
#define ENCODERD_CLIENT_CPP_BULK_H_

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "client/cpp/client_settings.h"
#include "encoderd/v1/encoder.pb.h"

namespace encoderd::client {

// A server reads at most this many requests of a stream ahead.
inline constexpr int kMostCallsInFlight = 64;

// How the work is sent. A request of the stream is called a call, as in
// ClientOptions, whose sizes and timeout do not count here.
struct BulkOptions {
  int64_t first_input = 0;  // place of the source's first in the list
  // Inputs of one call at most.
  int texts_per_call = settings::kTextsPerCall;
  // Bytes of text after which a call is closed.
  int64_t bytes_per_call = settings::kBytesPerCall;
  // kMostCallsInFlight at most; parts of refused requests may add to it.
  int calls_in_flight = settings::kStreamCallsInFlight;
  // Ends when nothing at all was answered for so long, reconnecting included:
  // with the reason why there is no connection, the last error, or
  // DEADLINE_EXCEEDED. What source and sink take, and time in which the process
  // was stopped, does not count. InfiniteDuration: no limit.
  absl::Duration patience = settings::kTimeout;
  // Asked before each input, and often while waiting for the server, so it must
  // be cheap; true ends the work with CANCELLED. Null: never.
  std::function<bool()> stop;
  // Model.fingerprint when the job began, such as GetModel's. An answer with
  // another one ends the job: the model changed during it. Empty: the first
  // answer's.
  std::string seen_fingerprint;
};

// What came of consecutive inputs of the list.
struct BulkAnswer {
  int64_t first_input = 0;
  std::vector<v1::Embedding> embeddings;  // of each input
  std::vector<absl::Status> errors;       // OK: the embedding holds values
};

}  // namespace encoderd::client

#endif  // ENCODERD_CLIENT_CPP_BULK_H_
