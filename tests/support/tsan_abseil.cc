// What Abseil's mutexes order, told to ThreadSanitizer.
//
// Distributions ship Abseil and gRPC without the sanitizer's hooks, so that it
// sees a race in everything that absl::Mutex guards. The functions below come
// before the library's for the whole program, gRPC among it: each tells the
// sanitizer and calls the library's own. Linked into tests of the preset
// tsan-server; nowhere else.
#include <dlfcn.h>

#include <cstdio>
#include <cstdlib>

#include "absl/base/options.h"
#include "absl/synchronization/mutex.h"
#include "absl/synchronization/notification.h"
#include "absl/time/time.h"

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

// Abseil's function; `rest`: what follows the namespaces in its mangled name.
template <typename Function>
Function Real(const char* rest, bool is_const = false) {
  char name[256];
  std::snprintf(name, sizeof name, "_ZN%s4absl%zu%s%s", is_const ? "K" : "",
                sizeof kNamespace - 1, kNamespace, rest);
  void* const found = dlsym(RTLD_NEXT, name);
  if (found == nullptr) {
    std::fprintf(stderr, "tsan_abseil: no function %s\n", name);
    std::abort();
  }
  return reinterpret_cast<Function>(found);
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
  real(this);
}

void Notification::WaitForNotification() const {
  static const auto real = Real<void (*)(const Notification*)>(
      "12Notification19WaitForNotificationEv", true);
  real(this);
  __tsan_acquire(const_cast<Notification*>(this));
}

ABSL_NAMESPACE_END
}  // namespace absl
