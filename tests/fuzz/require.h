// What a fuzzer expects of a result.
#ifndef ENCODERD_TESTS_FUZZ_REQUIRE_H_
#define ENCODERD_TESTS_FUZZ_REQUIRE_H_

#include <stdlib.h>

namespace encoderd {

inline void Require(bool condition) {
  if (!condition) abort();
}

}  // namespace encoderd

#endif  // ENCODERD_TESTS_FUZZ_REQUIRE_H_
