// What calls use. Everything in it outlives every call.
#ifndef ENCODERD_SERVER_RPC_CALL_ENVIRONMENT_H_
#define ENCODERD_SERVER_RPC_CALL_ENVIRONMENT_H_

#include <cstdint>
#include <limits>

#include "server/api/job.h"
#include "server/observe/metrics.h"
#include "server/rpc/open_calls.h"
#include "server/rpc/serving_state.h"
#include "server/rpc/unread_answers.h"
#include "server/security/secrets.h"
#include "server/trace/tracer.h"

namespace encoderd {

struct CallEnvironment {
  Api api;
  // For the lists of all TokenSequences of one request together.
  int64_t max_list_values = std::numeric_limits<int64_t>::max();
  ServingState* state = nullptr;
  Metrics* metrics = nullptr;
  OpenCalls* calls = nullptr;    // unary calls that wait for the pipeline
  OpenCalls* held = nullptr;     // unary calls whose rejection is held back
  OpenCalls* streams = nullptr;  // EmbedStreams
  int64_t max_streams = std::numeric_limits<int64_t>::max();
  UnreadAnswers* unread = nullptr;
  Tracer* tracer = nullptr;          // null: no call is traced
  const Secrets* secrets = nullptr;  // null: everyone may call
};

}  // namespace encoderd

#endif  // ENCODERD_SERVER_RPC_CALL_ENVIRONMENT_H_
