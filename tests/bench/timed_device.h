// A Device that measures what each kind of op takes in another Device: the
// seconds, FLOP and bytes of a profile, one thread.
#ifndef ENCODERD_TESTS_BENCH_TIMED_DEVICE_H_
#define ENCODERD_TESTS_BENCH_TIMED_DEVICE_H_

#include <memory>

#include "engine/device/device.h"

namespace encoderd {

// `observe` is told of every call of an op by every Executor of the device; run
// one at a time.
std::unique_ptr<Device> TimeOps(std::unique_ptr<Device> device,
                                OpObserver observe);

}  // namespace encoderd

#endif  // ENCODERD_TESTS_BENCH_TIMED_DEVICE_H_
