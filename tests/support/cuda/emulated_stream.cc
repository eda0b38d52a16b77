#include "tests/support/cuda/emulated_stream.h"

#include <map>
#include <mutex>
#include <utility>

namespace encoderd {
namespace emulation {
namespace {

struct Capturing {
  std::mutex mutex;
  std::map<void*, std::vector<Work>> of;  // the streams that capture
};

Capturing& All() {
  static auto* const kAll = new Capturing;
  return *kAll;
}

}  // namespace

int Put(void* stream, Work work) {
  {
    const std::lock_guard<std::mutex> lock(All().mutex);
    const auto found = All().of.find(stream);
    if (found != All().of.end()) {
      found->second.push_back(std::move(work));
      return 0;
    }
  }
  return work();
}

void BeginCapture(void* stream) {
  const std::lock_guard<std::mutex> lock(All().mutex);
  All().of[stream].clear();
}

bool Captures(void* stream) {
  const std::lock_guard<std::mutex> lock(All().mutex);
  return All().of.count(stream) > 0;
}

std::vector<Work> EndCapture(void* stream) {
  const std::lock_guard<std::mutex> lock(All().mutex);
  std::vector<Work> captured = std::move(All().of[stream]);
  All().of.erase(stream);
  return captured;
}

}  // namespace emulation
}  // namespace encoderd
