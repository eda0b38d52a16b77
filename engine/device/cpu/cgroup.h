// The CPU quota of this process's control groups, of version 1 and 2: what
// `docker run --cpus` and a Kubernetes limit set. Thread-safe; each call
// rereads the system's files. A file that cannot be read sets no limit.
#ifndef ENCODERD_ENGINE_DEVICE_CPU_CGROUP_H_
#define ENCODERD_ENGINE_DEVICE_CPU_CGROUP_H_

#include <cstdint>
#include <string>

namespace encoderd {
namespace cpu {

// What QuotaCores gives where there is no quota.
constexpr int32_t kNoQuota = 1 << 20;

// The quota in whole CPUs, rounded to the nearest and at least 1: the least of
// the process's own group and the groups above it, as far as they are mounted
// here. `root` prefixes every path: "" for this host, a folder in tests.
int32_t QuotaCores(const std::string& root = "");

}  // namespace cpu
}  // namespace encoderd

#endif  // ENCODERD_ENGINE_DEVICE_CPU_CGROUP_H_
