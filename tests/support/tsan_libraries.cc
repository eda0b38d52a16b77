// What Abseil's mutexes and gRPC's completion queues order, told to
// ThreadSanitizer.
//
// Distributions ship both without the sanitizer's hooks, so that it sees a race
// in everything that absl::Mutex guards and in everything that one thread hands
// to another through a completion queue. The functions below come before the
// library's for the whole program, gRPC among it: each tells the sanitizer and
// calls the library's own. Linked into tests of the preset tsan-server; nowhere
// else. What these libraries access themselves is left out by the option
// ignore_noninstrumented_modules (nightly.sh tsan).
#include <dlfcn.h>

#include <cstdio>
#include <cstdlib>

#include "absl/base/options.h"
#include "absl/synchronization/mutex.h"
#include "absl/synchronization/notification.h"
#include "absl/time/time.h"
#include "grpc/grpc.h"

// The sanitizer's own, without a header in gcc.
extern "C" {
void __tsan_acquire(void* address);
void __tsan_release(void* address);
void AnnotateIgnoreReadsBegin(const char* file, int line);
void AnnotateIgnoreReadsEnd(const char* file, int line);
}

namespace {

#define ENCODERD_TEXT_OF(name) #name
#define ENCODERD_TEXT(name) ENCODERD_TEXT_OF(name)
constexpr char kNamespace[] = ENCODERD_TEXT(ABSL_OPTION_INLINE_NAMESPACE_NAME);

// The library's function of this name.
template <typename Function>
Function Next(const char* name) {
  void* const found = dlsym(RTLD_NEXT, name);
  if (found == nullptr) {
    std::fprintf(stderr, "tsan_libraries: no function %s\n", name);
    std::abort();
  }
  return reinterpret_cast<Function>(found);
}

// Abseil's function; `rest`: what follows the namespaces in its mangled name.
template <typename Function>
Function Real(const char* rest, bool is_const = false) {
  char name[256];
  std::snprintf(name, sizeof name, "_ZN%s4absl%zu%s%s", is_const ? "K" : "",
                sizeof kNamespace - 1, kNamespace, rest);
  return Next<Function>(name);
}

// A wait lets go of the mutex and takes it again. Abseil evaluates the
// conditions of others meanwhile, under the mutex, which is not seen.
class Waiting {
 public:
  explicit Waiting(absl::Mutex* mutex) : mutex_(mutex) {
    __tsan_release(mutex_);
    AnnotateIgnoreReadsBegin(__FILE__, __LINE__);
  }
  ~Waiting() {
    AnnotateIgnoreReadsEnd(__FILE__, __LINE__);
    __tsan_acquire(mutex_);
  }

 private:
  absl::Mutex* const mutex_;
};

}  // namespace

namespace absl {
ABSL_NAMESPACE_BEGIN

void Mutex::Lock() {
  static const auto real = Real<void (*)(Mutex*)>("5Mutex4LockEv");
  real(this);
  __tsan_acquire(this);
}

bool Mutex::TryLock() {
  static const auto real = Real<bool (*)(Mutex*)>("5Mutex7TryLockEv");
  const bool locked = real(this);
  if (locked) __tsan_acquire(this);
  return locked;
}

void Mutex::Unlock() {
  static const auto real = Real<void (*)(Mutex*)>("5Mutex6UnlockEv");
  __tsan_release(this);
  AnnotateIgnoreReadsBegin(__FILE__, __LINE__);
  real(this);
  AnnotateIgnoreReadsEnd(__FILE__, __LINE__);
}

void Mutex::Await(const Condition& condition) {
  static const auto real = Real<void (*)(Mutex*, const Condition&)>(
      "5Mutex5AwaitERKNS0_9ConditionE");
  const Waiting waiting(this);
  real(this, condition);
}

bool Mutex::AwaitWithTimeout(const Condition& condition, Duration timeout) {
  static const auto real = Real<bool (*)(Mutex*, const Condition&, Duration)>(
      "5Mutex16AwaitWithTimeoutERKNS0_9ConditionENS0_8DurationE");
  const Waiting waiting(this);
  return real(this, condition, timeout);
}

bool Mutex::AwaitWithDeadline(const Condition& condition, Time deadline) {
  static const auto real = Real<bool (*)(Mutex*, const Condition&, Time)>(
      "5Mutex17AwaitWithDeadlineERKNS0_9ConditionENS0_4TimeE");
  const Waiting waiting(this);
  return real(this, condition, deadline);
}

void CondVar::Wait(Mutex* mutex) {
  static const auto real =
      Real<void (*)(CondVar*, Mutex*)>("7CondVar4WaitEPNS0_5MutexE");
  const Waiting waiting(mutex);
  real(this, mutex);
}

bool CondVar::WaitWithTimeout(Mutex* mutex, Duration timeout) {
  static const auto real = Real<bool (*)(CondVar*, Mutex*, Duration)>(
      "7CondVar15WaitWithTimeoutEPNS0_5MutexENS0_8DurationE");
  const Waiting waiting(mutex);
  return real(this, mutex, timeout);
}

void Notification::Notify() {
  static const auto real =
      Real<void (*)(Notification*)>("12Notification6NotifyEv");
  __tsan_release(this);
  // HasBeenNotified is compiled here and reads the flag behind the mutex.
  __tsan_release(reinterpret_cast<char*>(this) + sizeof(Mutex));
  real(this);
}

void Notification::WaitForNotification() const {
  static const auto real = Real<void (*)(const Notification*)>(
      "12Notification19WaitForNotificationEv", true);
  real(this);
  __tsan_acquire(const_cast<Notification*>(this));
}

bool Notification::WaitForNotificationWithTimeout(Duration timeout) const {
  static const auto real = Real<bool (*)(const Notification*, Duration)>(
      "12Notification30WaitForNotificationWithTimeoutENS0_8DurationE", true);
  const bool notified = real(this, timeout);
  if (notified) __tsan_acquire(const_cast<Notification*>(this));
  return notified;
}

bool Notification::WaitForNotificationWithDeadline(Time deadline) const {
  static const auto real = Real<bool (*)(const Notification*, Time)>(
      "12Notification31WaitForNotificationWithDeadlineENS0_4TimeE", true);
  const bool notified = real(this, deadline);
  if (notified) __tsan_acquire(const_cast<Notification*>(this));
  return notified;
}

ABSL_NAMESPACE_END
}  // namespace absl

// Whoever takes a tag from a completion queue sees what was done before the
// work with this tag was begun.
extern "C" {

grpc_call_error grpc_call_start_batch(grpc_call* call, const grpc_op* ops,
                                      size_t nops, void* tag, void* reserved) {
  static const auto real =
      Next<decltype(&grpc_call_start_batch)>("grpc_call_start_batch");
  __tsan_release(tag);
  return real(call, ops, nops, tag, reserved);
}

grpc_event grpc_completion_queue_next(grpc_completion_queue* queue,
                                      gpr_timespec deadline, void* reserved) {
  static const auto real =
      Next<decltype(&grpc_completion_queue_next)>("grpc_completion_queue_next");
  const grpc_event event = real(queue, deadline, reserved);
  if (event.type == GRPC_OP_COMPLETE) __tsan_acquire(event.tag);
  return event;
}

grpc_event grpc_completion_queue_pluck(grpc_completion_queue* queue, void* tag,
                                       gpr_timespec deadline, void* reserved) {
  static const auto real = Next<decltype(&grpc_completion_queue_pluck)>(
      "grpc_completion_queue_pluck");
  const grpc_event event = real(queue, tag, deadline, reserved);
  if (event.type == GRPC_OP_COMPLETE) __tsan_acquire(event.tag);
  return event;
}

}  // extern "C"
