// A checked request: its model, and the input of the model's pipeline. Each
// kind of request with inputs has a class derived from it (inspect.h has no
// inputs):
//
//   EmbedJob::Make(...)   checks the request; returns the error or the job
//   job.Submit(...)       once; `done` gets the result of the pipeline
//   job.Answer(result)    the answer, if it differs from the result
//
// Make gets the model that ModelRegistry::Find has for request.model: the
// adapter looks it up, once, because it counts the call for that model. The
// model outlives the job.
//
// An adapter (server/rpc is one) converts its messages to requests and answers
// to its messages, and reports when a caller cancels. Errors are absl::Status
// with an ErrorDetail; publish.h prepares them for callers.
// Not thread-safe: one thread at a time. Nothing here blocks.
#ifndef ENCODERD_SERVER_API_JOB_H_
#define ENCODERD_SERVER_API_JOB_H_

#include <memory>
#include <string>
#include <utility>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "server/api/inputs.h"
#include "server/api/model_registry.h"
#include "server/pipeline/pipeline.h"

namespace encoderd {

// What adapters find models in and check requests against. All of it outlives
// every job.
struct Api {
  const ModelRegistry* models = nullptr;
  RequestLimits limits;
};

class Job {
 public:
  // The field to reduce if an answer would be too large.
  static constexpr absl::string_view kField = "inputs";

  // Hands the inputs to the model's pipeline; once. `done` as in
  // Pipeline::Submit; `caller` and `deadline` as in PipelineRequest.
  std::shared_ptr<PipelineCall> Submit(absl::Time deadline,
                                       const Caller& caller,
                                       Pipeline::Done done) {
    request_.deadline = deadline;
    request_.caller = caller;
    return model_->pipeline->Submit(std::move(request_), std::move(done));
  }

  const ServedModel& model() const { return *model_; }
  const ModelInfo& info() const { return model_->model->info(); }
  const std::string& request_id() const { return request_id_; }

 protected:
  Job(const ServedModel& model, std::string request_id)
      : model_(&model), request_id_(std::move(request_id)) {}

  PipelineRequest request_;  // until Submit

 private:
  const ServedModel* model_;
  std::string request_id_;
};

}  // namespace encoderd

#endif  // ENCODERD_SERVER_API_JOB_H_
