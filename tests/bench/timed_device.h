// A Device that measures what each kind of op takes in another Device: the
// seconds and FLOPs of a profile, one thread.
#ifndef ENCODERD_TESTS_BENCH_TIMED_DEVICE_H_
#define ENCODERD_TESTS_BENCH_TIMED_DEVICE_H_

#include <map>
#include <memory>
#include <string>

#include "engine/device/device.h"

namespace encoderd {

struct OpTime {
  double seconds = 0;
  double flops = 0;  // of products; 0 for the other ops
  int64_t calls = 0;
};
using OpTimes = std::map<std::string, OpTime>;  // by name of the op

// `times` is written by every Executor of the device and outlives it; run one
// at a time.
std::unique_ptr<Device> TimeOps(std::unique_ptr<Device> device, OpTimes* times);

}  // namespace encoderd

#endif  // ENCODERD_TESTS_BENCH_TIMED_DEVICE_H_
