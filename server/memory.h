// Returns memory to the system after a burst. The C library keeps memory that
// was freed between used blocks; a server that once held hundreds of megabytes
// of requests would keep them.
//
// The main thread checks every kLook. The rule is pure: it sees the resident
// size only. Not thread-safe.
#ifndef ENCODERD_SERVER_MEMORY_H_
#define ENCODERD_SERVER_MEMORY_H_

#include <algorithm>
#include <cstdint>
#include <functional>

#include "absl/time/time.h"

namespace encoderd {

class TrimRule {
 public:
  static constexpr absl::Duration kLook = absl::Seconds(5);
  // Above the minimum seen: less is not worth the walk through the free lists.
  static constexpr int64_t kWorthBytes = 32 << 20;
  // Checks between two trims if the first returned nothing: memory in use.
  static constexpr int kMaxPause = 12;

  // At each check: whether to trim now.
  bool Look(int64_t resident_bytes) {
    least_ = std::min(least_, resident_bytes);
    if (wait_ > 0) --wait_;
    return wait_ == 0 && resident_bytes - least_ > kWorthBytes;
  }
  // After a trim.
  void Trimmed(int64_t before_bytes, int64_t after_bytes) {
    const bool gave = before_bytes - after_bytes > kWorthBytes / 4;
    pause_ = gave ? 1 : std::min(2 * pause_, kMaxPause);
    wait_ = pause_;
    least_ = std::min(least_, after_bytes);
  }

 private:
  int64_t least_ = INT64_MAX;
  int pause_ = 1;  // looks
  int wait_ = 0;
};

// The memory of this process, or a fake of a test.
struct ProcessMemory {
  std::function<int64_t()> resident_bytes;
  std::function<void()> trim;  // null if the system has no such call
};
ProcessMemory ThisProcess();

// Applies the rule, trims if necessary, and logs what was returned.
void LookAtMemory(TrimRule* rule, const ProcessMemory& memory);

}  // namespace encoderd

#endif  // ENCODERD_SERVER_MEMORY_H_
