// encoderctl encode
#include "client/cpp/encoderctl/job.h"

namespace encoderd::ctl {

int RunEncode(const Command& command, const Arguments& arguments,
              Environment& environment) {
  Invocation invocation(command, environment);
  int layer = -1;
  invocation.AddListFlags();
  invocation.AddOutputFlags({"text", "jsonl", "npy"});
  invocation.AddTruncateFlag();
  invocation.flags.AddInt("layer", "N",
                          "0: the embedding block's own output; N: encoder "
                          "layer N's; -1: the last layer's",
                          -1, 1 << 16, &layer);
  if (const auto over = invocation.Parse(arguments)) return *over;
  client::EncodeOptions options;
  options.model = invocation.settings.model;
  if (layer >= 0) options.layer = static_cast<uint32_t>(layer);
  options.truncate = invocation.truncate();
  return RunJob(invocation, [&](Job& job) {
    return job.client.EncodeEach(
        std::move(job.source), options, [&](const client::TokenStates& states) {
          const int64_t index = job.text_done();
          return WriteVectors(invocation.settings.format, index,
                              /*states=*/true,
                              {states.values, states.rows, states.columns,
                               states.token_count, states.truncated},
                              job.writer);
        });
  });
}

}  // namespace encoderd::ctl
