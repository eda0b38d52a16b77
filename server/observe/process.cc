#include "server/observe/process.h"

#include <dirent.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"

namespace encoderd {
namespace {

// Files of /proc have no size: read to the end.
std::string ReadFile(const char* path) {
  std::string text;
  FILE* file = std::fopen(path, "re");
  if (file == nullptr) return text;
  char buffer[4096];
  size_t size = 0;
  while ((size = std::fread(buffer, 1, sizeof(buffer), file)) > 0) {
    text.append(buffer, size);
  }
  std::fclose(file);
  return text;
}

// Minus the one used here, which may find none free: then all `most` are open.
int64_t CountOpenFds(int64_t most) {
  DIR* folder = opendir("/proc/self/fd");
  if (folder == nullptr) return errno == EMFILE ? most : 0;
  int64_t count = -1;
  while (const dirent* entry = readdir(folder)) {
    if (entry->d_name[0] != '.') ++count;
  }
  closedir(folder);
  return count;
}

ProcUnits UnitsHere() {
  static std::atomic<double> boot_seconds{0};  // 0: not read yet
  if (boot_seconds == 0)
    boot_seconds = ParseBootSeconds(ReadFile("/proc/stat"));
  return {static_cast<double>(sysconf(_SC_CLK_TCK)), sysconf(_SC_PAGESIZE),
          boot_seconds};
}

}  // namespace

bool ParseStat(absl::string_view stat, const ProcUnits& units,
               ProcessFigures* figures) {
  // The second field is the program's name, which may hold spaces and brackets.
  const size_t name_end = stat.rfind(") ");
  if (name_end == absl::string_view::npos) return false;
  const std::vector<absl::string_view> fields =
      absl::StrSplit(stat.substr(name_end + 2), ' ');
  // Numbered as in proc(5); the first field here is its third.
  const auto field = [&](size_t number, int64_t* value) {
    return number - 3 < fields.size() &&
           absl::SimpleAtoi(fields[number - 3], value);
  };
  int64_t user = 0, system = 0, threads = 0, start = 0, bytes = 0, pages = 0;
  if (!field(14, &user) || !field(15, &system) || !field(20, &threads) ||
      !field(22, &start) || !field(23, &bytes) || !field(24, &pages)) {
    return false;
  }
  figures->cpu_seconds =
      static_cast<double>(user + system) / units.ticks_per_second;
  figures->start_time_seconds =
      units.boot_seconds == 0
          ? 0
          : units.boot_seconds +
                static_cast<double>(start) / units.ticks_per_second;
  figures->resident_bytes = pages * units.page_bytes;
  figures->virtual_bytes = bytes;
  figures->threads = threads;
  return true;
}

double ParseBootSeconds(absl::string_view stat) {
  for (const absl::string_view line : absl::StrSplit(stat, '\n')) {
    double seconds = 0;
    if (absl::StartsWith(line, "btime ") &&
        absl::SimpleAtod(line.substr(6), &seconds)) {
      return seconds;
    }
  }
  return 0;
}

ProcessFigures ReadProcess() {
  ProcessFigures figures;
  ParseStat(ReadFile("/proc/self/stat"), UnitsHere(), &figures);
  rlimit limit = {};
  if (getrlimit(RLIMIT_NOFILE, &limit) == 0) {
    figures.max_fds =
        static_cast<int64_t>(std::min<rlim_t>(limit.rlim_cur, INT64_MAX));
  }
  figures.open_fds = CountOpenFds(figures.max_fds);
  return figures;
}

}  // namespace encoderd
