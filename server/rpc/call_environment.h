// What calls work with. Everything in it outlives every call.
#ifndef ENCODERD_SERVER_RPC_CALL_ENVIRONMENT_H_
#define ENCODERD_SERVER_RPC_CALL_ENVIRONMENT_H_

#include "server/observe/metrics.h"
#include "server/rpc/convert.h"
#include "server/rpc/model_registry.h"
#include "server/rpc/open_calls.h"
#include "server/rpc/serving_state.h"

namespace encoderd {

struct CallEnvironment {
  ServingState* state = nullptr;
  const ModelRegistry* models = nullptr;
  Metrics* metrics = nullptr;
  OpenCalls* calls = nullptr;    // unary ones that wait for the pipeline
  OpenCalls* streams = nullptr;  // EmbedStreams
  RequestLimits limits;
};

}  // namespace encoderd

#endif  // ENCODERD_SERVER_RPC_CALL_ENVIRONMENT_H_
