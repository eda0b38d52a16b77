// Streams of the emulation. What is put on one runs at once; or, while the
// stream captures, is kept for the graph. Thread-safe.
#ifndef ENCODERD_TESTS_SUPPORT_CUDA_EMULATED_STREAM_H_
#define ENCODERD_TESTS_SUPPORT_CUDA_EMULATED_STREAM_H_

#include <functional>
#include <vector>

namespace encoderd {
namespace emulation {

using Work = std::function<int()>;  // its code, 0 for success

// The work's code; 0 where it is kept.
int Put(void* stream, Work work);

void BeginCapture(void* stream);
bool Captures(void* stream);
// What was put since BeginCapture.
std::vector<Work> EndCapture(void* stream);

}  // namespace emulation
}  // namespace encoderd

#endif  // ENCODERD_TESTS_SUPPORT_CUDA_EMULATED_STREAM_H_
