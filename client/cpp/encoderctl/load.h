// A closed loop: a fixed number of calls of Embed is always in flight, or of
// requests on one EmbedStream; each end begins the next. A call is made once
// and never again; one that fails is followed by a pause, as long as the server
// asks for. Or an open loop: calls are due at random times, whatever has been
// answered, and latencies count from when a call was due.
#ifndef ENCODERD_CLIENT_CPP_ENCODERCTL_LOAD_H_
#define ENCODERD_CLIENT_CPP_ENCODERCTL_LOAD_H_

#include <functional>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "client/cpp/encoderctl/measure.h"
#include "encoderd/v1/encoder.grpc.pb.h"

namespace encoderd::ctl {

struct Load {
  v1::EmbedRequest blank;          // of every call: model and options
  std::vector<std::string> texts;  // used in turn, over and over; not empty
  int texts_per_call = 1;
  int concurrency = 1;  // calls, or requests of the stream, in flight; of an
                        // open loop the most, and what is due then waits
  double rate = 0;      // calls per second of an open loop; 0: a closed one
  bool stream = false;
  absl::Duration timeout;  // of one call
};

// Told of texts answered and the share that is done, some ten times per second,
// and over a stream at every step, so it must be cheap; false ends the work.
using GoOn = std::function<bool(int64_t texts, double share)>;

// Loads the server until the limits are reached, a call is refused with
// INVALID_ARGUMENT or `go_on` says so. Returns once nothing is in flight any
// more. The input_index of Figures::refused counts from the first of the texts,
// and continues past the last text when a call wraps around to the first.
Figures RunLoad(v1::Encoder::Stub* stub, const Load& load,
                const MeasureLimits& limits, const GoOn& go_on);

}  // namespace encoderd::ctl

#endif  // ENCODERD_CLIENT_CPP_ENCODERCTL_LOAD_H_
