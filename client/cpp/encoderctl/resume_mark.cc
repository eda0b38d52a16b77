#include "client/cpp/encoderctl/resume_mark.h"

#include <google/protobuf/text_format.h>
#include <openssl/evp.h>

#include <cstdlib>
#include <filesystem>
#include <system_error>

#include "absl/strings/str_cat.h"
#include "client/cpp/requests.h"

namespace encoderd::ctl {
namespace {

std::string Mark(absl::string_view text, int64_t bytes) {
  std::string digest(EVP_MAX_MD_SIZE, '\0');
  if (EVP_Digest(text.data(), text.size(),
                 reinterpret_cast<unsigned char*>(digest.data()), nullptr,
                 EVP_sha256(), nullptr) != 1) {
    std::abort();  // a libcrypto without SHA-256
  }
  digest.resize(static_cast<size_t>(bytes));
  return digest;
}

// The same text for the same message: maps are sorted.
std::string ToText(const google::protobuf::Message& message) {
  std::string text;
  google::protobuf::TextFormat::PrintToString(message, &text);
  return text;
}

}  // namespace

std::string ResumePathOf(const std::string& output) {
  std::error_code error;
  if (std::filesystem::is_symlink(output, error)) {
    const auto file = std::filesystem::canonical(output, error);
    if (!error) return absl::StrCat(file.string(), ".resume");
  }
  return absl::StrCat(output, ".resume");
}

bool HoldsMarks(const std::string& path) {
  std::error_code none;
  return std::filesystem::is_regular_file(path, none) &&
         RowFile::CountIn(path, kMarkLayout).has_value();
}

absl::Status CheckMarksFile(const std::string& path) {
  return CheckSideFile(
      path, kMarkLayout,
      " is damaged, or not what encoderctl wrote there; move or remove it, or "
      "write to another --output");
}

std::string MarkWork(const v1::Model& model,
                     const client::EmbedOptions& options) {
  client::EmbedOptions changing = options;
  // Changes only the rows that it skips: MarkSkipped.
  changing.on_error = v1::ON_ERROR_PER_INPUT;
  const int64_t bytes = kMarkLayout.row_bytes();
  // A server of an older version gives no fingerprint: all that it says of the
  // model counts, but for a limit of requests.
  v1::Model said = model;
  said.clear_max_inputs_per_request();
  return Mark(model.fingerprint().empty() ? ToText(said) : model.fingerprint(),
              bytes) +
         Mark(ToText(client::ToRequest(changing).options()), bytes);
}

std::string MarkText(absl::string_view text, const absl::Status& refused) {
  return Mark(refused.ok() ? absl::StrCat("text ", text)
                           : absl::StrCat("refused ", refused.message()),
              kTextMarkBytes);
}

std::string MarkSkipped(absl::string_view mark) {
  return Mark(absl::StrCat("skipped ", mark), kTextMarkBytes);
}

std::string MarkRow(absl::string_view row, absl::string_view scale) {
  return Mark(absl::StrCat(row, scale), kRowMarkBytes);
}

}  // namespace encoderd::ctl
