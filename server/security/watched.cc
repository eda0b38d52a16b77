#include "server/security/watched.h"

#include <tuple>
#include <utility>

#include "server/base/log.h"

namespace encoderd {

bool FileMark::operator==(const FileMark& other) const {
  const auto all = [](const FileMark& mark) {
    return std::tie(mark.device, mark.inode, mark.size, mark.changed_ns);
  };
  return all(*this) == all(other);
}

ChangeRule::ChangeRule(std::vector<std::string> paths)
    : paths_(std::move(paths)) {
  Taken();
}

bool ChangeRule::Look() {
  std::vector<FileMark> now = Marks();
  const bool settled = now == last_;
  last_ = std::move(now);
  if (!settled || last_ == taken_) return false;
  taken_ = last_;
  return true;
}

std::vector<FileMark> ChangeRule::Marks() const {
  std::vector<FileMark> marks;
  for (const std::string& path : paths_) {
    FileMark mark;
    struct stat info = {};
    if (stat(path.c_str(), &info) == 0) {
      mark = {info.st_dev, info.st_ino, info.st_size,
              info.st_ctim.tv_sec * int64_t{1000000000} + info.st_ctim.tv_nsec};
    }
    marks.push_back(mark);
  }
  return marks;
}

void LogReload(absl::string_view what, const absl::Status& status,
               const std::string& holds) {
  LogFields fields;
  fields.Add("what", what);
  if (status.ok()) {
    Log(LogLevel::kInfo, "reloaded", fields.Add("holds", holds));
  } else {
    fields.Add("message", status.message()).Add("kept", "the previous version");
    Log(LogLevel::kWarning, "reload_failed", fields);
  }
}

}  // namespace encoderd
