#include "client/cpp/encoderctl/journal.h"

#include <cerrno>
#include <filesystem>
#include <system_error>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "client/cpp/encoderctl/output_file.h"

namespace encoderd::ctl {
namespace {

constexpr size_t kSealBytes = 17;  // with the space before it

// `text` as a line with its seal.
std::string Sealed(absl::string_view text) {
  uint64_t seal = 14695981039346656037u;
  for (const char byte : text) {
    seal = (seal ^ static_cast<unsigned char>(byte)) * 1099511628211u;
  }
  return absl::StrCat(text, " ", absl::Hex(seal, absl::kZeroPad16), "\n");
}

std::string ToLine(const Progressed& done) {
  return Sealed(absl::StrCat(done.rows, " ", done.bytes));
}

// The next line without its seal; false at the end or if it is damaged.
bool ReadLine(std::ifstream& file, std::string* text, bool* damaged) {
  if (!std::getline(file, *text) || file.eof()) return false;
  const std::string line = *text + "\n";
  text->resize(text->size() - std::min(text->size(), kSealBytes));
  *damaged = Sealed(*text) != line;
  return !*damaged;
}

}  // namespace

std::string JournalOf(const std::string& output) {
  return absl::StrCat(output, ".journal");
}

JournalFound ReadJournal(const std::string& path) {
  JournalFound found;
  std::ifstream file(path, std::ios::binary);
  if (!file) return found;
  std::string text;
  bool damaged = false;
  if (!ReadLine(file, &text, &damaged)) {
    found.damaged_line = 1;  // it is there at once with its first two lines
    return found;
  }
  found.work = text;
  int64_t line = 2;
  for (; ReadLine(file, &text, &damaged); ++line) {
    const std::vector<std::string> fields = absl::StrSplit(text, ' ');
    Progressed entry;
    if (fields.size() != 2 || !absl::SimpleAtoi(fields[0], &entry.rows) ||
        !absl::SimpleAtoi(fields[1], &entry.bytes)) {
      break;
    }
    found.done = entry;
  }
  if (damaged) found.damaged_line = line;
  return found;
}

absl::Status Journal::Begin(const std::string& path, const std::string& work,
                            const Progressed& done) {
  path_ = path;
  // Under another name first: no moment without a whole journal.
  const std::string fresh = absl::StrCat(path, ".new");
  bool wrote = false;
  {
    std::ofstream file(fresh, std::ios::binary);
    file << Sealed(work) << ToLine(done) << std::flush;
    wrote = file.good();
  }
  std::error_code error;
  if (wrote) std::filesystem::rename(fresh, path, error);
  if (wrote && !error) file_.open(path, std::ios::binary | std::ios::app);
  if (wrote && !error && file_) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("cannot open ", path, " for writing"));
}

absl::Status Journal::Add(const Progressed& done) {
  if (path_.empty()) return absl::OkStatus();
  errno = 0;
  file_ << ToLine(done) << std::flush;
  if (file_) return absl::OkStatus();
  return CannotWrite(path_, errno);
}

void Journal::Remove() {
  if (path_.empty()) return;
  file_.close();
  std::error_code ignored;
  std::filesystem::remove(path_, ignored);
}

}  // namespace encoderd::ctl
