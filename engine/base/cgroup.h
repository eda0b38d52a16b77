// What this process's control groups, of version 1 and 2, let it use: what
// `docker run --cpus --memory` and a Kubernetes limit set. Each limit is the
// least of the process's own group and the groups above it, as far as they are
// mounted here. Thread-safe; each call rereads the system's files. A file that
// cannot be read sets no limit. `root` prefixes every path: "" for this host, a
// folder in tests.
#ifndef ENCODERD_ENGINE_BASE_CGROUP_H_
#define ENCODERD_ENGINE_BASE_CGROUP_H_

#include <cstdint>
#include <string>

namespace encoderd {

// What QuotaCores gives where there is no quota.
constexpr int32_t kNoQuota = 1 << 20;

// The CPU quota in whole CPUs, rounded to the nearest and at least 1.
int32_t QuotaCores(const std::string& root = "");

// What MemoryLimitBytes gives where there is no limit.
constexpr int64_t kNoMemoryLimit = INT64_MAX;

// At this much memory the kernel ends a process of the group.
int64_t MemoryLimitBytes(const std::string& root = "");

}  // namespace encoderd

#endif  // ENCODERD_ENGINE_BASE_CGROUP_H_
