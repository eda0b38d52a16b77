// encoderctl tokenize
#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "client/cpp/encoderctl/job.h"
#include "client/cpp/encoderctl/json_line.h"
#include "client/cpp/encoderctl/wrap.h"

namespace encoderd::ctl {
namespace {

std::string ToJson(int64_t index, const v1::TokenizedInput& input) {
  nlohmann::ordered_json json;
  json["index"] = index;
  json["token_count"] = input.token_count();
  json["fits"] = input.fits();
  json["ids"] = input.ids();
  json["segment_ids"] = input.segment_ids();
  json["tokens"] = input.tokens();
  json["begin_offsets"] = input.begin_offsets();
  json["end_offsets"] = input.end_offsets();
  return JsonLine(json);
}

}  // namespace

int RunTokenize(const Command& command, const Arguments& arguments,
                Environment& environment) {
  Invocation invocation(command, environment);
  invocation.AddListFlags();
  invocation.AddOutputFlags({OutputFormat::kText, OutputFormat::kJsonl});
  if (const auto over = invocation.Parse(arguments)) return *over;
  const client::TokenizeOptions options{invocation.settings.model};
  return RunJob(invocation, [&](Job& job) {
    return job.client.TokenizeEach(
        std::move(job.source), options, [&](const v1::TokenizedInput& input) {
          const int64_t index = job.text_done();
          return job.writer->Write(
              absl::StrCat(invocation.settings.format == OutputFormat::kJsonl
                               ? ToJson(index, input)
                               : Printable(absl::StrJoin(input.tokens(), " ")),
                           "\n"));
        });
  });
}

}  // namespace encoderd::ctl
