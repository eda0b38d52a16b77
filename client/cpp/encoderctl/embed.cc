// encoderctl embed
#include "client/cpp/encoderctl/job.h"

namespace encoderd::ctl {
namespace {

v1::Pooling ToPooling(const std::string& name) {
  if (name == "cls") return v1::POOLING_CLS;
  if (name == "mean") return v1::POOLING_MEAN;
  if (name == "max") return v1::POOLING_MAX;
  if (name == "mean_sqrt_len") return v1::POOLING_MEAN_SQRT_LEN;
  if (name == "weighted_mean") return v1::POOLING_WEIGHTED_MEAN;
  if (name == "last_token") return v1::POOLING_LAST_TOKEN;
  return v1::POOLING_UNSPECIFIED;
}

}  // namespace

int RunEmbed(const Command& command, const Arguments& arguments,
             Environment& environment) {
  Invocation invocation(command, environment);
  client::EmbedOptions options;
  std::string pooling = "model";
  std::string normalize = "model";
  int dimensions = 0;
  invocation.AddListFlags();
  invocation.AddOutputFlags({"text", "jsonl", "npy"});
  invocation.AddTruncateFlag();
  invocation.flags.AddChoice("normalize",
                             "vectors of length 1; model: as it was made for",
                             {"model", "yes", "no"}, &normalize);
  invocation.flags.AddChoice("pooling",
                             "from token states to one vector; model: its own",
                             {"model", "cls", "mean", "max", "mean_sqrt_len",
                              "weighted_mean", "last_token"},
                             &pooling);
  invocation.flags.AddInt("dimensions", "N",
                          "keep the first N values of a vector; 0: all", 0,
                          1 << 20, &dimensions);
  invocation.flags.AddString("prompt_name", "NAME",
                             "a prompt of the model, put before each text",
                             &options.prompt_name);
  if (const auto over = invocation.Parse(arguments)) return *over;
  options.model = invocation.settings.model;
  options.pooling = ToPooling(pooling);
  if (normalize != "model") options.normalize = normalize == "yes";
  options.dimensions = static_cast<uint32_t>(dimensions);
  options.truncate = invocation.truncate();
  return RunJob(invocation, [&](Job& job) {
    return job.client.EmbedEach(
        std::move(job.source), options,
        [&](const client::EmbeddingMatrix& matrix) {
          absl::Status status;
          for (int64_t i = 0; status.ok() && i < matrix.rows; ++i) {
            const int64_t index = job.text_done();
            status = WriteVectors(
                invocation.settings.format, index, /*states=*/false,
                {matrix.row(i), 1, matrix.columns, matrix.token_counts[i],
                 matrix.truncated[i] != 0},
                job.writer);
          }
          return status;
        });
  });
}

}  // namespace encoderd::ctl
