// encoderctl similarity
#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "client/cpp/encoderctl/embed_flags.h"
#include "client/cpp/encoderctl/job.h"
#include "client/cpp/encoderctl/number.h"
#include "client/cpp/encoderctl/wrap.h"
#include "client/cpp/utf8.h"

namespace encoderd::ctl {
namespace {

constexpr size_t kMaxTexts = 4096;  // the matrix grows with its square
constexpr size_t kLabelBytes = 60;
constexpr char kOneText[] = "there is one text; give at least two";

// Client::Embed, with progress.
absl::StatusOr<client::EmbeddingMatrix> EmbedAll(
    const std::vector<std::string>& texts, const client::EmbedOptions& options,
    const Job& job) {
  client::EmbeddingMatrix all;
  const absl::Status status = job.client.EmbedEach(
      client::FromTexts(texts), options,
      [&](const client::EmbeddingMatrix& rows) {
        for (int64_t i = 0; i < rows.rows; ++i) {
          job.text_done();
          job.long_texts->Count(rows.truncated[i] != 0, rows.windows[i]);
        }
        return client::AppendRows(rows, &all);
      });
  if (!status.ok()) return status;
  return all;
}

// Cosines of all pairs of rows, [n,n]. Sums in double. 0 for a zero vector.
std::vector<float> Cosines(const client::EmbeddingMatrix& matrix) {
  const int64_t n = matrix.rows;
  const auto dot = [&matrix](int64_t a, int64_t b) {
    const auto x = matrix.row(a);
    const auto y = matrix.row(b);
    double sum = 0;
    for (size_t i = 0; i < x.size(); ++i) sum += double{x[i]} * y[i];
    return sum;
  };
  std::vector<double> norms;
  for (int64_t i = 0; i < n; ++i) norms.push_back(std::sqrt(dot(i, i)));
  std::vector<float> cosines(n * n);
  for (int64_t a = 0; a < n; ++a) {
    for (int64_t b = a; b < n; ++b) {
      const double scale = norms[a] * norms[b];
      const double cosine =
          scale > 0 ? std::clamp(dot(a, b) / scale, -1.0, 1.0) : 0.0;
      cosines[a * n + b] = cosines[b * n + a] = static_cast<float>(cosine);
    }
  }
  return cosines;
}

// The start of a text, on one line.
std::string Label(absl::string_view text) {
  const bool cut = text.size() > kLabelBytes;
  text = text.substr(0, kLabelBytes);
  const std::string label =
      Printable(text.substr(0, client::ValidUtf8Prefix(text)));
  return cut ? label + "..." : label;
}

std::string ToTable(absl::Span<const float> cosines,
                    const std::vector<std::string>& texts) {
  std::string table = "    ";
  for (size_t i = 0; i < texts.size(); ++i) {
    absl::StrAppendFormat(&table, "%8d", i + 1);
  }
  table += '\n';
  for (size_t i = 0; i < texts.size(); ++i) {
    absl::StrAppendFormat(&table, "%4d", i + 1);
    for (size_t j = 0; j < texts.size(); ++j) {
      absl::StrAppendFormat(&table, "%8.4f", cosines[i * texts.size() + j]);
    }
    absl::StrAppend(&table, "  ", Label(texts[i]), "\n");
  }
  return table;
}

std::string ToJsonLines(absl::Span<const float> cosines, size_t n) {
  std::string lines;
  for (size_t i = 0; i < n; ++i) {
    absl::StrAppend(&lines, "{\"index\":", i, ",\"similarities\":[");
    AppendFloats(cosines.subspan(i * n, n), ",", &lines);
    lines += "]}\n";
  }
  return lines;
}

}  // namespace

int RunSimilarity(const Command& command, const Arguments& arguments,
                  Environment& environment) {
  Invocation invocation(command, environment, client::ClientOptions().timeout,
                        kAwaitingTimeoutHelp);
  EmbedFlags embed;
  invocation.AddListFlags();
  invocation.AddOutputFlags(
      {OutputFormat::kText, OutputFormat::kJsonl, OutputFormat::kNpy});
  embed.Add(&invocation);
  if (const auto over = invocation.Parse(arguments)) return *over;
  if (invocation.positional.size() == 1 &&
      invocation.flags.Given("input") == 0) {
    return invocation.Usage(kOneText);
  }
  const absl::Status checked = embed.Check(invocation);
  if (!checked.ok()) return invocation.Refuse(checked);
  const client::EmbedOptions options = embed.ToOptions(invocation);
  return RunJob(invocation, [&](Job& job) {
    job.one_result = true;
    std::vector<std::string> texts;
    v1::Input input;
    absl::Status refused;
    while (true) {
      const absl::StatusOr<bool> more = job.source.next(&input, &refused);
      if (!more.ok()) return more.status();
      if (!refused.ok()) return refused;
      if (!*more) break;
      texts.push_back(input.text());
      if (texts.size() > kMaxTexts) {
        return absl::InvalidArgumentError(
            absl::StrCat("more than ", kMaxTexts,
                         " texts: similarity takes no more; "
                         "embed them into an .npy instead"));
      }
    }
    if (texts.size() == 1) {
      job.unfit = absl::FailedPreconditionError(kOneText);
    }
    if (texts.size() < 2) return absl::OkStatus();  // nothing is written
    const auto matrix = EmbedAll(texts, options, job);
    if (!matrix.ok()) return matrix.status();
    const std::vector<float> cosines = Cosines(*matrix);
    const int64_t n = matrix->rows;
    if (invocation.settings.format == OutputFormat::kNpy) {
      return job.writer->WriteRows(cosines, n, n);
    }
    return job.writer->Write(invocation.settings.format == OutputFormat::kText
                                 ? ToTable(cosines, texts)
                                 : ToJsonLines(cosines, n));
  });
}

}  // namespace encoderd::ctl
