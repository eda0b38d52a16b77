// Options -> requests of the contract, but for their inputs. Internal to the
// library and its command line. Thread-safe: pure functions.
#ifndef ENCODERD_CLIENT_CPP_REQUESTS_H_
#define ENCODERD_CLIENT_CPP_REQUESTS_H_

#include "client/cpp/options.h"
#include "encoderd/v1/encoder.pb.h"

namespace encoderd::client {

// Answers are asked for as packed bytes.
v1::EmbedRequest ToRequest(const EmbedOptions& options);
v1::EncodeRequest ToRequest(const EncodeOptions& options);

}  // namespace encoderd::client

#endif  // ENCODERD_CLIENT_CPP_REQUESTS_H_
