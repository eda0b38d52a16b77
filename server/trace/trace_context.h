// Which trace a call belongs to, as its metadata `traceparent` says: Trace
// Context, https://www.w3.org/TR/trace-context/, section 3.2. Pure.
#ifndef ENCODERD_SERVER_TRACE_TRACE_CONTEXT_H_
#define ENCODERD_SERVER_TRACE_TRACE_CONTEXT_H_

#include <array>
#include <cstdint>
#include <optional>

#include "absl/strings/string_view.h"

namespace encoderd {

using TraceId = std::array<uint8_t, 16>;
using SpanId = std::array<uint8_t, 8>;

struct TraceContext {
  TraceId trace_id = {};
  SpanId parent = {};    // the caller's span; all zero: there is none
  bool sampled = false;  // the caller records this trace
};

// None where the value is not of that form, or an id is all zero. Later
// versions are read as version 00 is.
std::optional<TraceContext> ParseTraceparent(absl::string_view value);

}  // namespace encoderd

#endif  // ENCODERD_SERVER_TRACE_TRACE_CONTEXT_H_
