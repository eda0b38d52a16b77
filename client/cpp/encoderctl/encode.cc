// encoderctl encode
#include "client/cpp/encoderctl/job.h"

namespace encoderd::ctl {

int RunEncode(const Command& command, const Arguments& arguments,
              Environment& environment) {
  Invocation invocation(command, environment, client::ClientOptions().timeout,
                        kAwaitingTimeoutHelp);
  int layer = -1;
  v1::TokenSpan span = v1::TOKEN_SPAN_UNSPECIFIED;
  bool before_norm = false;
  invocation.settings.batch_size =
      client::ClientOptions().texts_per_encode_call;
  invocation.AddListFlags();
  invocation.AddOutputFlags(
      {OutputFormat::kText, OutputFormat::kJsonl, OutputFormat::kNpy});
  invocation.AddTruncateFlag();
  invocation.flags.AddInt("layer", "N",
                          "layer whose states to return; 0: the embedding "
                          "block; N: encoder layer N; -1: the last layer",
                          -1, 1 << 16, &layer);
  invocation.flags.AddChoice(
      "span",
      "tokens whose states to return; without_special_tokens: all but those "
      "that the tokenizer adds",
      {{"all", v1::TOKEN_SPAN_UNSPECIFIED},
       {"without_special_tokens", v1::TOKEN_SPAN_WITHOUT_SPECIAL_TOKENS}},
      &span);
  invocation.flags.AddSwitch("before_norm",
                             "with --layer=0: the sum of the table rows, "
                             "before the block's LayerNorm",
                             &before_norm);
  invocation.AddOnErrorFlag("it has no rows");
  if (const auto over = invocation.Parse(arguments)) return *over;
  if (before_norm && layer != 0) {
    return invocation.Usage("--before_norm needs --layer=0");
  }
  client::EncodeOptions options;
  options.model = invocation.settings.model;
  if (layer >= 0) options.layer = static_cast<uint32_t>(layer);
  options.truncate = invocation.settings.truncate;
  options.span = span;
  options.before_norm = before_norm;
  options.on_error = invocation.settings.on_error;
  return RunJob(invocation, [&](Job& job) {
    return job.client.EncodeEach(
        std::move(job.source), options, [&](const client::TokenStates& states) {
          const int64_t index = job.text_done();
          job.long_texts->Count(states.truncated, /*windows=*/0);
          const OutputFormat format = invocation.settings.format;
          if (!states.error.ok()) {
            // An .npy holds the rows of the others only.
            return job.skip(index, states.error);
          }
          VectorResult result{states.values, states.rows, states.columns};
          result.token_count = states.token_count;
          result.truncated = states.truncated;
          return WriteVectors(format, index, /*states=*/true, result,
                              job.writer);
        });
  });
}

}  // namespace encoderd::ctl
