#include "engine/device/cpu/cgroup.h"

#include <algorithm>
#include <cmath>
#include <fstream>
#include <sstream>

namespace encoderd {
namespace cpu {
namespace {

// Where a hierarchy with the CPU controller is mounted.
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
// rw,cpu". False for mounts of anything else.
bool ParseMount(const std::string& line, Mount* mount) {
  std::istringstream fields(line);
  std::string skipped, type, options;
  fields >> skipped >> skipped >> skipped >> mount->root >> mount->point;
  while (fields >> skipped && skipped != "-") continue;
  fields >> type >> skipped >> options;
  mount->version_2 = type == "cgroup2";
  return mount->version_2 || (type == "cgroup" && Holds(options, "cpu"));
}

// This process's group in the hierarchy of `version_2`, by lines such as
// "4:cpu,cpuacct:/docker/1f" and "0::/"; "/" where none says so.
std::string OwnGroup(const std::string& root, bool version_2) {
  std::ifstream file(root + "/proc/self/cgroup");
  std::string id, controllers, group;
  while (std::getline(file, id, ':') && std::getline(file, controllers, ':') &&
         std::getline(file, group)) {
    if (version_2 ? id == "0" && controllers.empty()
                  : Holds(controllers, "cpu")) {
      return group;
    }
  }
  return "/";
}

int32_t WholeCores(double quota, double period) {
  if (!(quota > 0) || !(period > 0)) return kNoQuota;  // -1: none
  const double cores = std::round(quota / period);
  return static_cast<int32_t>(std::clamp<double>(cores, 1, kNoQuota));
}

int32_t QuotaOfFolder(const std::string& folder, bool version_2) {
  double quota = 0, period = 0;
  if (version_2) {  // "max 100000" is no number
    std::ifstream(folder + "/cpu.max") >> quota >> period;
  } else {
    std::ifstream(folder + "/cpu.cfs_quota_us") >> quota;
    std::ifstream(folder + "/cpu.cfs_period_us") >> period;
  }
  return WholeCores(quota, period);
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

}  // namespace

int32_t QuotaCores(const std::string& root) {
  int32_t least = kNoQuota;
  std::ifstream file(root + "/proc/self/mountinfo");
  for (std::string line; std::getline(file, line);) {
    Mount mount;
    if (!ParseMount(line, &mount)) continue;
    std::string below = BelowMount(OwnGroup(root, mount.version_2), mount.root);
    for (;;) {
      const std::string folder = root + mount.point + below;
      least = std::min(least, QuotaOfFolder(folder, mount.version_2));
      if (below.empty()) break;
      below.erase(below.rfind('/'));
    }
  }
  return least;
}

}  // namespace cpu
}  // namespace encoderd
