// One EmbedRequest and its answer, apart from what carries them: a unary Embed
// and each request of a stream are the same work.
//
//   ParseInputs (request.h) -> EmbedJob::Make -> Submit -> Answer
//
// Not thread-safe; one thread after the other. Nothing here blocks. Errors are
// absl::Status with an ErrorDetail: the carrier publishes them (status.h).
#ifndef ENCODERD_SERVER_RPC_EMBED_JOB_H_
#define ENCODERD_SERVER_RPC_EMBED_JOB_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "encoderd/v1/encoder.pb.h"
#include "server/rpc/call_environment.h"

namespace encoderd {

class EmbedJob {
 public:
  // Finds the model and checks everything that can be checked before anything
  // is spent; texts are moved out of `request`. bad_texts: of ParseInputs. The
  // environment outlives the job.
  static absl::StatusOr<EmbedJob> Make(const CallEnvironment& environment,
                                       v1::EmbedRequest* request,
                                       std::vector<InputFault> bad_texts = {});

  // Hands the inputs to the model's pipeline; once. `done` as in
  // Pipeline::Submit.
  std::shared_ptr<PipelineCall> Submit(absl::Time deadline, uint64_t caller,
                                       Pipeline::Done done);

  // What the pipeline gave -> the answer; once. How large it may be is the
  // carrier's to check.
  void Answer(PipelineResult result, v1::EmbedResponse* response) const;

  const ServedModel& model() const { return *model_; }
  const std::string& request_id() const { return request_id_; }

 private:
  EmbedJob() = default;

  const CallEnvironment* environment_ = nullptr;
  const ServedModel* model_ = nullptr;
  std::string request_id_;
  EmbedPlan plan_;
};

}  // namespace encoderd

#endif  // ENCODERD_SERVER_RPC_EMBED_JOB_H_
