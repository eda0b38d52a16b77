#include "client/cpp/encoderctl/journal.h"

#include <filesystem>
#include <system_error>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace encoderd::ctl {

Progressed ReadJournal(const std::string& path, const std::string& work,
                       bool* other) {
  std::ifstream file(path, std::ios::binary);
  std::string line;
  Progressed done;
  *other = false;
  if (!std::getline(file, line)) return done;
  if (line != work) {
    *other = true;
    return done;
  }
  // A line without its end was being written when the run broke off.
  while (std::getline(file, line) && !file.eof()) {
    const std::vector<std::string> fields = absl::StrSplit(line, ' ');
    Progressed entry;
    if (fields.size() != 2 || !absl::SimpleAtoi(fields[0], &entry.rows) ||
        !absl::SimpleAtoi(fields[1], &entry.bytes)) {
      break;
    }
    done = entry;
  }
  return done;
}

absl::Status Journal::Begin(const std::string& path, const std::string& work,
                            const Progressed& done) {
  path_ = path;
  // Under another name first: no moment without a whole journal.
  const std::string fresh = absl::StrCat(path, ".new");
  std::ofstream(fresh, std::ios::binary)
      << work << "\n"
      << done.rows << " " << done.bytes << "\n";
  std::error_code error;
  std::filesystem::rename(fresh, path, error);
  file_.open(path, std::ios::binary | std::ios::app);
  if (!error && file_) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("cannot open ", path, " for writing"));
}

absl::Status Journal::Add(const Progressed& done) {
  if (path_.empty()) return absl::OkStatus();
  file_ << absl::StrCat(done.rows, " ", done.bytes, "\n") << std::flush;
  if (file_) return absl::OkStatus();
  return absl::DataLossError(absl::StrCat("cannot write to ", path_));
}

void Journal::Remove() {
  if (path_.empty()) return;
  file_.close();
  std::error_code ignored;
  std::filesystem::remove(path_, ignored);
}

}  // namespace encoderd::ctl
