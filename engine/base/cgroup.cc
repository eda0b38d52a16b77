#include "engine/base/cgroup.h"

#include <algorithm>
#include <cmath>
#include <fstream>
#include <sstream>
#include <vector>

#include "absl/strings/numbers.h"

namespace encoderd {
namespace {

// Version 1 says 2^63 less a page where there is no limit.
constexpr int64_t kMostMemory = int64_t{1} << 62;

// Where a hierarchy with a controller is mounted.
struct Mount {
  bool version_2 = false;
  std::string root;   // the group that is mounted
  std::string point;  // the folder where
};

// Whether the list "rw,cpu,cpuacct" holds "cpu".
bool Holds(const std::string& list, const std::string& name) {
  std::istringstream names(list);
  for (std::string one; std::getline(names, one, ',');) {
    if (one == name) return true;
  }
  return false;
}

// A line of mountinfo: "36 25 0:31 ROOT POINT rw,... [tags] - TYPE SOURCE
// rw,cpu". False for mounts of anything else than `controller`.
bool ParseMount(const std::string& line, const std::string& controller,
                Mount* mount) {
  std::istringstream fields(line);
  std::string skipped, type, options;
  fields >> skipped >> skipped >> skipped >> mount->root >> mount->point;
  while (fields >> skipped && skipped != "-") continue;
  fields >> type >> skipped >> options;
  mount->version_2 = type == "cgroup2";
  return mount->version_2 || (type == "cgroup" && Holds(options, controller));
}

// This process's group in the hierarchy of `version_2`, or else `controller`,
// by lines such as "4:cpu,cpuacct:/docker/1f" and "0::/"; "/" where none says
// so.
std::string OwnGroup(const std::string& root, const std::string& controller,
                     bool version_2) {
  std::ifstream file(root + "/proc/self/cgroup");
  std::string id, controllers, group;
  while (std::getline(file, id, ':') && std::getline(file, controllers, ':') &&
         std::getline(file, group)) {
    if (version_2 ? id == "0" && controllers.empty()
                  : Holds(controllers, controller)) {
      return group;
    }
  }
  return "/";
}

// The group as a path below the mount, "" for the mounted group itself. A group
// outside what is mounted, as seen by a container without its own namespace,
// counts as the mounted one.
std::string BelowMount(const std::string& group, const std::string& root) {
  const std::string above = root == "/" ? "" : root;
  const bool inside =
      group.compare(0, above.size(), above) == 0 &&
      (group.size() == above.size() || group[above.size()] == '/') &&
      group.find("/..") == std::string::npos;
  return inside && group != "/" ? group.substr(above.size()) : "";
}

struct Group {
  std::string folder;  // with its files
  bool version_2 = false;
};

// Those that may limit this process: its own and those above it.
std::vector<Group> GroupsOf(const std::string& controller,
                            const std::string& root) {
  std::vector<Group> groups;
  std::ifstream file(root + "/proc/self/mountinfo");
  for (std::string line; std::getline(file, line);) {
    Mount mount;
    if (!ParseMount(line, controller, &mount)) continue;
    const bool version_2 = mount.version_2;
    std::string below =
        BelowMount(OwnGroup(root, controller, version_2), mount.root);
    for (;;) {
      groups.push_back({root + mount.point + below, version_2});
      if (below.empty()) break;
      below.erase(below.rfind('/'));
    }
  }
  return groups;
}

int32_t WholeCores(double quota, double period) {
  if (!(quota > 0) || !(period > 0)) return kNoQuota;  // -1: none
  const double cores = std::round(quota / period);
  return static_cast<int32_t>(std::clamp<double>(cores, 1, kNoQuota));
}

int32_t QuotaOf(const Group& group) {
  double quota = 0, period = 0;
  if (group.version_2) {  // "max 100000" is no number
    std::ifstream(group.folder + "/cpu.max") >> quota >> period;
  } else {
    std::ifstream(group.folder + "/cpu.cfs_quota_us") >> quota;
    std::ifstream(group.folder + "/cpu.cfs_period_us") >> period;
  }
  return WholeCores(quota, period);
}

int64_t MemoryLimitOf(const Group& group) {
  std::string text;  // "max" is no number
  std::ifstream(group.folder +
                (group.version_2 ? "/memory.max" : "/memory.limit_in_bytes")) >>
      text;
  int64_t bytes = 0;
  const bool limited =
      absl::SimpleAtoi(text, &bytes) && bytes > 0 && bytes < kMostMemory;
  return limited ? bytes : kNoMemoryLimit;
}

}  // namespace

int32_t QuotaCores(const std::string& root) {
  int32_t least = kNoQuota;
  for (const Group& group : GroupsOf("cpu", root)) {
    least = std::min(least, QuotaOf(group));
  }
  return least;
}

int64_t MemoryLimitBytes(const std::string& root) {
  int64_t least = kNoMemoryLimit;
  for (const Group& group : GroupsOf("memory", root)) {
    least = std::min(least, MemoryLimitOf(group));
  }
  return least;
}

}  // namespace encoderd
