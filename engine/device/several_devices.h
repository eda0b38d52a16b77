// Several devices of one kind as one Device: weights lie on each, Executors are
// dealt out in turn, and each computes whole batches on its own device.
// Sessions of all of them take their batches from one queue.
#ifndef ENCODERD_ENGINE_DEVICE_SEVERAL_DEVICES_H_
#define ENCODERD_ENGINE_DEVICE_SEVERAL_DEVICES_H_

#include <memory>
#include <vector>

#include "engine/device/device.h"

namespace encoderd {

// At least one device, all of one dtype. The caller sees to it that they give
// the same bits. Errors and notes name the device that they are of.
std::unique_ptr<Device> JoinDevices(
    std::vector<std::unique_ptr<Device>> devices);

}  // namespace encoderd

#endif  // ENCODERD_ENGINE_DEVICE_SEVERAL_DEVICES_H_
