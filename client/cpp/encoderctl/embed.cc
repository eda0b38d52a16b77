// encoderctl embed
#include "absl/strings/str_cat.h"
#include "client/cpp/encoderctl/bulk_embed.h"
#include "client/cpp/encoderctl/embed_flags.h"
#include "client/cpp/encoderctl/job.h"

namespace encoderd::ctl {

int RunEmbed(const Command& command, const Arguments& arguments,
             Environment& environment) {
  Invocation invocation(
      command, environment, client::ClientOptions().timeout,
      absl::StrCat(kAwaitingTimeoutHelp,
                   "; for an .npy: time limit without any answer"));
  invocation.AddListFlags();
  BulkChoices bulk;
  v1::Encoding encoding = v1::ENCODING_FLOAT32;
  invocation.AddOutputFlags(
      {OutputFormat::kText, OutputFormat::kJsonl, OutputFormat::kNpy});
  EmbedFlags embed;
  embed.Add(&invocation);
  invocation.AddOnErrorFlag("its row is all zeros");
  invocation.flags.AddChoice(
      "encoding",
      "type of the values in an .npy; int8, uint8: OUTPUT.scales.npy holds the "
      "scale of each row, and a value is (byte + 1) x scale of int8, (byte - "
      "127) x scale of uint8; binary, ubinary: 8 values per byte",
      {{"float32", v1::ENCODING_FLOAT32},
       {"float16", v1::ENCODING_FLOAT16},
       {"int8", v1::ENCODING_INT8},
       {"uint8", v1::ENCODING_UINT8},
       {"binary", v1::ENCODING_BINARY},
       {"ubinary", v1::ENCODING_UBINARY}},
      &encoding);
  invocation.flags.AddChoice(
      "resume", "for an .npy: resume an interrupted run of the same command",
      {{"yes", true}, {"no", false}}, &bulk.resume);
  if (const auto over = invocation.Parse(arguments)) return *over;
  const absl::Status checked = embed.Check(invocation);
  if (!checked.ok()) return invocation.Refuse(checked);
  client::EmbedOptions options = embed.ToOptions(invocation);
  options.on_error = invocation.settings.on_error;
  const OutputFormat format = invocation.settings.format;
  const std::string& output = invocation.settings.output;
  if (format != OutputFormat::kNpy && encoding != v1::ENCODING_FLOAT32) {
    return invocation.Usage("--encoding is for an .npy; add --output=FILE.npy");
  }
  if (format == OutputFormat::kNpy && output != "-") {
    bulk.embed = options;
    bulk.embed.encoding = encoding;
    return RunBulkEmbed(invocation, bulk);
  }
  return RunJob(invocation, [&](Job& job) {
    return job.client.EmbedEach(
        std::move(job.source), options,
        [&](const client::EmbeddingMatrix& matrix) {
          absl::Status status;
          for (int64_t i = 0; status.ok() && i < matrix.rows; ++i) {
            const int64_t index = job.text_done();
            job.long_texts->Count(matrix.truncated[i] != 0, matrix.windows[i]);
            if (!matrix.errors[i].ok()) {
              status = job.skip(index, matrix.errors[i]);
              continue;
            }
            VectorResult result{matrix.row(i), 1, matrix.columns};
            result.token_count = matrix.token_counts[i];
            result.truncated = matrix.truncated[i] != 0;
            result.windows = matrix.windows[i];
            status = WriteVectors(format, index, /*states=*/false, result,
                                  job.writer);
          }
          return status;
        });
  });
}

}  // namespace encoderd::ctl
