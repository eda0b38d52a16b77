// The bytes of a file that a test wrote or expects.
#ifndef ENCODERD_TESTS_SUPPORT_READ_ALL_H_
#define ENCODERD_TESTS_SUPPORT_READ_ALL_H_

#include <fstream>
#include <sstream>
#include <string>

namespace encoderd {

// Empty for a file that cannot be read.
inline std::string ReadAll(const std::string& path) {
  std::ostringstream bytes;
  bytes << std::ifstream(path, std::ios::binary).rdbuf();
  return bytes.str();
}

}  // namespace encoderd

#endif  // ENCODERD_TESTS_SUPPORT_READ_ALL_H_
