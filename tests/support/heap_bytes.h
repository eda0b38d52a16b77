// How much memory a program holds from malloc. Sanitizers replace malloc: under
// them it is 0.
#ifndef ENCODERD_TESTS_SUPPORT_HEAP_BYTES_H_
#define ENCODERD_TESTS_SUPPORT_HEAP_BYTES_H_

#include <malloc.h>

#include <cstdint>

namespace encoderd {

inline int64_t HeapBytes() {
  const struct mallinfo2 info = mallinfo2();
  return static_cast<int64_t>(info.uordblks + info.hblkhd);
}

}  // namespace encoderd

#endif  // ENCODERD_TESTS_SUPPORT_HEAP_BYTES_H_
