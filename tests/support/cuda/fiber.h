// A call that can stop in the middle and go on later, on one thread.
#ifndef ENCODERD_TESTS_SUPPORT_CUDA_FIBER_H_
#define ENCODERD_TESTS_SUPPORT_CUDA_FIBER_H_

#include <memory>

#if !defined(__x86_64__)
#include <ucontext.h>
#endif

namespace encoderd {
namespace emulation {

class Fiber {
 public:
  Fiber();
  ~Fiber();
  Fiber(const Fiber&) = delete;
  Fiber& operator=(const Fiber&) = delete;

  // entry(argument) will run at the first Resume; it must end in Leave.
  void Start(void (*entry)(void*), void* argument);
  // Goes on where the fiber stopped; returns at its next Leave.
  void Resume();
  // Called within the fiber: back to Resume's caller.
  void Leave();

 private:
  std::unique_ptr<char[]> stack_;
#if defined(__x86_64__)
  void* inside_ = nullptr;  // stack pointers of who does not run
  void* outside_ = nullptr;
#else
  ucontext_t inside_;
  ucontext_t outside_;
#endif
};

}  // namespace emulation
}  // namespace encoderd

#endif  // ENCODERD_TESTS_SUPPORT_CUDA_FIBER_H_
