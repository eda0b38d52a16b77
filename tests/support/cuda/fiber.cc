#include "tests/support/cuda/fiber.h"

#include <cstdint>

namespace encoderd {
namespace emulation {
namespace {

constexpr size_t kStackBytes = 128 << 10;

}  // namespace

#if defined(__x86_64__)

// Saves what the ABI says a call keeps, changes stacks, and takes up what the
// other stack had saved. swapcontext does the same with two system calls.
extern "C" void EncoderdSwitchStack(void** from, void* to);
asm(R"(
.text
.globl EncoderdSwitchStack
.type EncoderdSwitchStack,@function
EncoderdSwitchStack:
  pushq %rbp
  pushq %rbx
  pushq %r12
  pushq %r13
  pushq %r14
  pushq %r15
  movq %rsp, (%rdi)
  movq %rsi, %rsp
  popq %r15
  popq %r14
  popq %r13
  popq %r12
  popq %rbx
  popq %rbp
  ret
.globl EncoderdStartStack
.type EncoderdStartStack,@function
EncoderdStartStack:
  movq %r12, %rdi
  callq *%r13
  ud2
.size EncoderdSwitchStack,.-EncoderdSwitchStack
)");
extern "C" void EncoderdStartStack();

Fiber::Fiber() : stack_(new char[kStackBytes]) {}
Fiber::~Fiber() = default;

void Fiber::Start(void (*entry)(void*), void* argument) {
  auto top = reinterpret_cast<uintptr_t>(stack_.get() + kStackBytes);
  auto* words = reinterpret_cast<void**>(top / 16 * 16);
  *--words = nullptr;  // keeps the stack aligned at the call
  *--words = nullptr;
  *--words = reinterpret_cast<void*>(&EncoderdStartStack);
  *--words = nullptr;                         // rbp
  *--words = nullptr;                         // rbx
  *--words = argument;                        // r12
  *--words = reinterpret_cast<void*>(entry);  // r13
  *--words = nullptr;                         // r14
  *--words = nullptr;                         // r15
  inside_ = words;
}
void Fiber::Resume() { EncoderdSwitchStack(&outside_, inside_); }
void Fiber::Leave() { EncoderdSwitchStack(&inside_, outside_); }

#else

namespace {

void Enter(uint32_t entry_high, uint32_t entry_low, uint32_t argument_high,
           uint32_t argument_low) {
  const auto join = [](uint32_t high, uint32_t low) {
    return static_cast<uintptr_t>(uint64_t{high} << 32 | low);
  };
  reinterpret_cast<void (*)(void*)>(join(entry_high, entry_low))(
      reinterpret_cast<void*>(join(argument_high, argument_low)));
}

}  // namespace

Fiber::Fiber() : stack_(new char[kStackBytes]) {}
Fiber::~Fiber() = default;

void Fiber::Start(void (*entry)(void*), void* argument) {
  getcontext(&inside_);
  inside_.uc_stack.ss_sp = stack_.get();
  inside_.uc_stack.ss_size = kStackBytes;
  inside_.uc_link = nullptr;
  const auto e = static_cast<uint64_t>(reinterpret_cast<uintptr_t>(entry));
  const auto a = static_cast<uint64_t>(reinterpret_cast<uintptr_t>(argument));
  makecontext(&inside_, reinterpret_cast<void (*)()>(&Enter), 4,
              static_cast<uint32_t>(e >> 32), static_cast<uint32_t>(e),
              static_cast<uint32_t>(a >> 32), static_cast<uint32_t>(a));
}
void Fiber::Resume() { swapcontext(&outside_, &inside_); }
void Fiber::Leave() { swapcontext(&inside_, &outside_); }

#endif

}  // namespace emulation
}  // namespace encoderd
