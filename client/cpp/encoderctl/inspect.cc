// encoderctl inspect
#include <algorithm>
#include <cstring>
#include <filesystem>
#include <limits>
#include <nlohmann/json.hpp>
#include <system_error>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "client/cpp/encoderctl/heatmap.h"
#include "client/cpp/encoderctl/invocation.h"
#include "client/cpp/encoderctl/json_line.h"
#include "client/cpp/encoderctl/wrap.h"
#include "client/cpp/encoderctl/writer.h"

namespace encoderd::ctl {
namespace {

using Json = nlohmann::ordered_json;

constexpr int kMost = std::numeric_limits<int>::max();

std::string VerdictWord(v1::PositionVerdict verdict) {
  switch (verdict) {
    case v1::POSITION_VERDICT_TRAINED:
      return "trained";
    case v1::POSITION_VERDICT_LOOKS_RANDOM:
      return "looks random";
    case v1::POSITION_VERDICT_PARTLY_TRAINED:
      return "partly trained";
    case v1::POSITION_VERDICT_UNSPECIFIED:
      return "undecided";
    default:  // of a newer server
      return absl::StrCat("unknown verdict ", static_cast<int>(verdict));
  }
}

// The sentence that the figures come to.
std::string Conclusion(const v1::InspectPositionsResponse& response) {
  const std::string figures = absl::StrFormat(
      "mean centered cosine of neighboring rows %.4f, threshold %.4f",
      response.verdict_cosine(), response.threshold());
  switch (response.verdict()) {
    case v1::POSITION_VERDICT_TRAINED:
      return absl::StrCat("trained: ", figures);
    case v1::POSITION_VERDICT_LOOKS_RANDOM:
      return absl::StrCat("WARNING: these rows look random: ", figures);
    case v1::POSITION_VERDICT_PARTLY_TRAINED:
      return absl::StrCat("WARNING: trained up to row ",
                          response.change_row() - 1, ", random from row ",
                          response.change_row(), " on: before it ", figures);
    case v1::POSITION_VERDICT_UNSPECIFIED:
      return "undecided: too few rows";
    default:
      return absl::StrCat(VerdictWord(response.verdict()),
                          ": the server is newer than this program");
  }
}

std::string ToText(const v1::InspectPositionsResponse& response) {
  double least = 0, most = 0, sum = 0;
  if (response.norms_size() > 0) least = most = response.norms(0);
  for (const double norm : response.norms()) {
    least = std::min(least, norm);
    most = std::max(most, norm);
    sum += norm;
  }
  std::string text = absl::StrCat(
      "model            ", Printable(response.model()), "\nposition scheme  ",
      Printable(response.position_scheme()), "\nrows             ",
      response.first_row(), " to ",
      response.first_row() + response.row_count() - 1, " of ",
      response.table_rows(), ", ", response.columns(), " columns\n");
  absl::StrAppendFormat(&text,
                        "norms            least %.4f, mean %.4f, most %.4f\n",
                        least, sum / std::max(1, response.norms_size()), most);
  absl::StrAppend(&text, "distance   mean cosine   centered\n");
  for (const auto& entry : response.profile()) {
    absl::StrAppendFormat(&text, "%8d   %11.4f   %8.4f\n", entry.distance(),
                          entry.mean_cosine(), entry.mean_centered_cosine());
  }
  return absl::StrCat(text, Conclusion(response), "\n");
}

std::string ToJson(const v1::InspectPositionsResponse& response) {
  Json json;
  json["model"] = response.model();
  json["position_scheme"] = response.position_scheme();
  json["table_rows"] = response.table_rows();
  json["columns"] = response.columns();
  json["first_row"] = response.first_row();
  json["row_count"] = response.row_count();
  json["verdict"] = VerdictWord(response.verdict());
  json["verdict_cosine"] = response.verdict_cosine();
  json["threshold"] = response.threshold();
  if (response.verdict() == v1::POSITION_VERDICT_PARTLY_TRAINED) {
    json["change_row"] = response.change_row();
  }
  json["norms"] =
      std::vector<float>(response.norms().begin(), response.norms().end());
  json["profile"] = Json::array();
  for (const auto& entry : response.profile()) {
    json["profile"].push_back(
        {{"distance", entry.distance()},
         {"mean_cosine", entry.mean_cosine()},
         {"mean_centered_cosine", entry.mean_centered_cosine()}});
  }
  return JsonLine(json) + "\n";
}

// The heatmaps; rows before `first_position` are for padding. INTERNAL: the
// answer's bytes are not the matrices they should be.
absl::Status WritePicture(const v1::InspectPositionsResponse& response,
                          int64_t first_position, const std::string& file) {
  const int64_t rows = response.row_count(), columns = response.columns();
  const auto floats = [](const std::string& bytes) {
    std::vector<float> values(bytes.size() / sizeof(float));
    std::memcpy(values.data(), bytes.data(), values.size() * sizeof(float));
    return values;
  };
  const std::vector<float> table = floats(response.values());
  const std::vector<float> cosine = floats(response.cosine());
  if (static_cast<int64_t>(table.size()) != rows * columns ||
      static_cast<int64_t>(cosine.size()) != rows * rows || rows == 0 ||
      columns == 0) {
    return absl::InternalError(absl::StrCat(
        "the answer has ", table.size(), " values and ", cosine.size(),
        " cosines of ", rows, " rows of ", columns, " columns"));
  }
  const std::vector<float> centered = CenterCosines(cosine, rows);
  const int64_t first = response.first_row(), marked = first_position;
  std::vector<std::string> title = {
      absl::StrCat(response.model(), ": rows ", first, " to ", first + rows - 1,
                   " of its ", response.position_scheme(), " positions"),
      Conclusion(response)};
  if (first < marked) {
    title.push_back(absl::StrCat("orange: rows 0 to ", marked - 1,
                                 " hold no position (padding)"));
  }
  const Heatmap maps[] = {
      {"position table", "value", "column", table, rows, columns, first, 0,
       BulkLimit(table), marked, 0},
      {"cosines of rows", "cosine", "row", cosine, rows, rows, first, first, 1,
       marked, marked},
      {"centered: the mean of the rows taken out", "cosine", "row", centered,
       rows, rows, first, first, 1, marked, marked}};
  return DrawHeatmaps(title, maps).WritePng(file);
}

absl::Status WriteFile(const std::string& file, const std::string& text,
                       const Environment& environment) {
  auto writer = Writer::Open(file, false, environment);
  if (!writer.ok()) return writer.status();
  absl::Status status = (*writer)->Write(text);
  status.Update((*writer)->Finish());
  return status;
}

// Whether both name one file, be it there or not.
bool SameFile(const std::string& a, const std::string& b) {
  std::error_code error;
  if (std::filesystem::equivalent(a, b, error)) return true;
  const auto path_a = std::filesystem::weakly_canonical(a, error);
  if (error) return a == b;
  const auto path_b = std::filesystem::weakly_canonical(b, error);
  return error ? a == b : path_a == path_b;
}

// INVALID_ARGUMENT: the files, empty for none, cannot be written as asked.
absl::Status CheckFiles(const std::string& png, const std::string& json) {
  if (png.empty()) return absl::OkStatus();
  if (png == "-") {
    return absl::InvalidArgumentError(
        "--png=-: a picture goes to a file; name one, such as positions.png");
  }
  for (const absl::string_view ending :
       {".jpg", ".jpeg", ".gif", ".svg", ".webp", ".bmp", ".tif", ".tiff",
        ".pdf", ".json"}) {
    if (!absl::EndsWithIgnoreCase(png, ending)) continue;
    return absl::InvalidArgumentError(absl::StrCat(
        "--png=", png, ": only PNG is written, not ", ending, "; name a .png"));
  }
  if (!json.empty() && json != "-" && SameFile(png, json)) {
    return absl::InvalidArgumentError(
        absl::StrCat("--png and --json both name ", png, "; name two files"));
  }
  return absl::OkStatus();
}

}  // namespace

int RunInspect(const Command& command, const Arguments& arguments,
               Environment& environment) {
  Invocation invocation(command, environment);
  client::InspectOptions options;
  int first_row = 0, row_count = 0;
  std::string png, json;
  invocation.flags.AddString(
      "model", "NAME", "the model; empty: the default one", &options.model);
  invocation.flags.AddInt("first_row", "N", "first row of the table", 0, kMost,
                          &first_row);
  invocation.flags.AddInt("row_count", "N",
                          "rows; 0: to the table's end, at most 1024", 0, kMost,
                          &row_count);
  invocation.flags.AddFile(
      "png", "draw the table and its cosines into this file", &png);
  invocation.flags.AddFile("json",
                           "write the figures into this file; -: print them "
                           "instead of the text",
                           &json);
  if (const auto over = invocation.Parse(arguments)) return *over;
  if (!invocation.positional.empty()) {
    return invocation.Usage("takes no arguments, only flags");
  }
  const absl::Status files = CheckFiles(png, json);
  if (!files.ok()) return invocation.Usage(files.message());
  const auto client = invocation.Connect();
  if (!client.ok()) return invocation.Refuse(client.status());
  options.first_row = static_cast<uint32_t>(first_row);
  options.row_count = static_cast<uint32_t>(row_count);
  options.cosine = options.values = !png.empty();
  const auto response = (*client)->InspectPositions(options);
  if (!response.ok()) return invocation.Fail(response.status());
  absl::Status status;
  if (json != "-") status = WriteFile("-", ToText(*response), environment);
  if (!json.empty()) {
    status.Update(WriteFile(json, ToJson(*response), environment));
  }
  if (!png.empty()) {
    const auto model = (*client)->GetModel(options.model);
    if (!model.ok()) return invocation.Fail(model.status());
    status.Update(WritePicture(*response, model->position_offset(), png));
  }
  if (absl::IsNotFound(status) || absl::IsAborted(status) ||
      absl::IsFailedPrecondition(status)) {
    return invocation.Refuse(status);  // of a file
  }
  return status.ok() ? kExitOk : invocation.Fail(status);
}

}  // namespace encoderd::ctl
