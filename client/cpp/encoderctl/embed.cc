// encoderctl embed
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "client/cpp/encoderctl/bulk_embed.h"
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

v1::EmbedOptions ToMessage(const client::EmbedOptions& options,
                           const std::string& encoding) {
  v1::EmbedOptions message;
  message.set_pooling(options.pooling);
  if (options.normalize.has_value()) message.set_normalize(*options.normalize);
  message.set_dimensions(options.dimensions);
  message.set_truncate(options.truncate);
  message.set_prompt_name(options.prompt_name);
  v1::Encoding value = v1::ENCODING_UNSPECIFIED;
  v1::Encoding_Parse("ENCODING_" + absl::AsciiStrToUpper(encoding), &value);
  message.set_encoding(value);
  return message;
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
  BulkChoices bulk;
  std::string on_error = "fail";
  std::string resume = "yes";
  invocation.settings.format = "auto";
  invocation.AddOutputFlags({"auto", "text", "jsonl", "npy"});
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
  invocation.flags.AddChoice(
      "encoding",
      "of the values of an .npy; int8, uint8: the step of each "
      "row goes to OUTPUT.scales.npy",
      {"float32", "float16", "int8", "uint8", "binary", "ubinary"},
      &bulk.encoding);
  invocation.flags.AddChoice("input_format",
                             "into an .npy: a text a line, or JSON strings or "
                             "objects a line; auto: by the file's name",
                             {"auto", "lines", "jsonl"}, &bulk.input_format);
  invocation.flags.AddString("field", "NAME", "of a JSON object: its text",
                             &bulk.field);
  invocation.flags.AddChoice(
      "on_error",
      "into an .npy: what a bad text does; skip: its row is 0, and "
      "its line is named",
      {"fail", "skip"}, &on_error);
  invocation.flags.AddChoice(
      "resume", "into an .npy: go on where the same command broke off",
      {"yes", "no"}, &resume);
  if (const auto over = invocation.Parse(arguments)) return *over;
  options.model = invocation.settings.model;
  options.pooling = ToPooling(pooling);
  if (normalize != "model") options.normalize = normalize == "yes";
  options.dimensions = static_cast<uint32_t>(dimensions);
  options.truncate = invocation.truncate();
  std::string& format = invocation.settings.format;
  const std::string& output = invocation.settings.output;
  if (format == "auto") {
    format = absl::EndsWith(output, ".npy") ? "npy" : "text";
  }
  if (format != "npy" && bulk.encoding != "float32") {
    return invocation.Usage("--encoding is for an .npy; add --format=npy");
  }
  if (format == "npy" && output != "-") {
    bulk.options = ToMessage(options, bulk.encoding);
    bulk.skip_bad = on_error == "skip";
    bulk.resume = resume == "yes";
    return RunBulkEmbed(invocation, bulk);
  }
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
