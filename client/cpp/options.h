// What a caller of the client library may choose. Plain values; constant after
// they are handed over.
#ifndef ENCODERD_CLIENT_CPP_OPTIONS_H_
#define ENCODERD_CLIENT_CPP_OPTIONS_H_

#include <grpcpp/security/credentials.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "client/cpp/client_settings.h"
#include "encoderd/v1/encoder.pb.h"

namespace encoderd::client {

// Where a server listens unless told otherwise.
inline constexpr char kDefaultTarget[] = "localhost:8400";

// Defaults from settings:: are those of every client here:
// client/client_settings.json.
struct ClientOptions {
  // Inputs of one call at most. Larger calls cost less for each text, but the
  // first answer comes later. Where they exceed the server's own limit,
  // Model.max_inputs_per_request, their inputs are sent again in smaller calls,
  // and later calls are no larger than it takes.
  int texts_per_call = settings::kTextsPerCall;
  // The same for Encode, whose answers are as large as their tokens.
  int texts_per_encode_call = settings::kTextsPerEncodeCall;
  // A call is also closed once it carries this many bytes of text, so that it
  // stays under the server's message limit.
  int64_t bytes_per_call = settings::kBytesPerCall;
  // Calls of one list in flight at the same time. More calls hide a longer
  // network latency, but take more memory and room in the server's queue.
  int calls_in_flight = settings::kCallsInFlight;
  // Time for one call, its retries and the wait for a server that is loading
  // its model included; not for the whole list. InfiniteDuration: no limit.
  absl::Duration timeout = settings::kTimeout;
  // While a call waits and nothing has come over its connection for this long,
  // the server is pinged; if nothing comes for half as long again, the
  // connection is closed, and what waited for it fails with UNAVAILABLE and is
  // made again. An encoderd server allows a ping every 5 s. InfiniteDuration:
  // no pings.
  absl::Duration keepalive_time = settings::kKeepaliveTime;
  // Asked often, so it must be cheap, while a list waits for answers, or any
  // call for a server that loads its model or is full; true ends it with
  // CANCELLED, calls in flight included. Null: never.
  std::function<bool()> stop;
  // Called with the error if the server is UNAVAILABLE (restarting, perhaps) or
  // cancelled an Embed or Encode call of a list, after it answered another call
  // of the list. True: the call waits until its timeout for the server to
  // return. Null, or false: the list ends with the error.
  std::function<bool(const absl::Status&)> await_return;
  // The largest answer that is accepted, in bytes.
  int max_answer_bytes = settings::kMaxAnswerBytes;
  // How calls are spread over addresses and tried again: a gRPC service
  // config. Empty: the one of service_config.h, for the name localhost with
  // pick_first instead of round_robin.
  std::string service_config_json;

  // Encryption and identity. Files are read once, by Client::Connect.
  //
  // TLS, 1.2 or newer. Unset: on where ca_file or certificate_file is set.
  std::optional<bool> tls;
  // PEM: the CAs to trust. Empty: the system's.
  std::string ca_file;
  // PEM: the client's own certificate and its key, without a passphrase, for
  // servers that ask for one. Both or none.
  std::string certificate_file;
  std::string key_file;
  // The name that the server's certificate must have, where it does not have
  // the target's. Empty: the target's host.
  std::string server_name;
  // Sent with every call as "authorization: Bearer TOKEN". Visible ASCII only.
  // Without TLS it is refused unless the target is this machine.
  std::optional<std::string> token;
  // The same from a file: its first line without blanks at the ends. Not
  // together with `token`.
  std::string token_file;
  // A caller's own, instead of all of the above. Null: those above.
  std::shared_ptr<grpc::ChannelCredentials> credentials;
};

// What is computed, of single calls and in bulk. Unset fields mean what they
// mean in the contract.
struct EmbedOptions {
  std::string model;  // empty: the only or the default model
  v1::Pooling pooling = v1::POOLING_UNSPECIFIED;     // the model's own
  std::optional<bool> normalize;                     // unset: as the model does
  uint32_t dimensions = 0;                           // 0: all
  v1::Truncate truncate = v1::TRUNCATE_UNSPECIFIED;  // refuse what is too long
  std::string prompt_name;  // empty: the model's default, if it has one
  // A text that is too long is computed in windows that share this many tokens,
  // and their average given. Unset: no windows. Not together with truncate.
  std::optional<uint32_t> windows;
  // PER_INPUT: an input at fault costs its own row only, which is 0. EmbedBulk
  // does so in any case.
  v1::OnError on_error = v1::ON_ERROR_UNSPECIFIED;
  // How values travel. EmbedBulk takes any; the others give floats and take
  // FLOAT32 only.
  v1::Encoding encoding = v1::ENCODING_UNSPECIFIED;
  // Of INT8 and UINT8: D minima and D maxima. Empty: each vector's own.
  v1::QuantizationRanges ranges;
  // Model.fingerprint that every answer must have; an answer with another one
  // ends the job with FAILED_PRECONDITION. Empty: that of the first answer.
  std::string fingerprint;
};

struct EncodeOptions {
  std::string model;              // empty: the only or the default model
  std::optional<uint32_t> layer;  // 0: the embedding block; unset: the last
  v1::Truncate truncate = v1::TRUNCATE_UNSPECIFIED;
  v1::TokenSpan span = v1::TOKEN_SPAN_UNSPECIFIED;  // all tokens
  bool before_norm = false;  // with layer 0: the sum before the LayerNorm
  // PER_INPUT: an input at fault costs its own states only, which are none.
  v1::OnError on_error = v1::ON_ERROR_UNSPECIFIED;
};

struct InspectOptions {
  std::string model;       // empty: the only or the default model
  uint32_t first_row = 0;  // of the position table
  uint32_t row_count = 0;  // 0: to the table's end, but 1024 at most
  bool cosine = false;     // give the cosine matrix
  bool values = false;     // give the rows themselves
};

struct TokenizeOptions {
  std::string model;  // empty: the only or the default model
};

}  // namespace encoderd::client

#endif  // ENCODERD_CLIENT_CPP_OPTIONS_H_
