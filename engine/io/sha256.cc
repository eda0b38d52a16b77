#include "engine/io/sha256.h"

#include <openssl/evp.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/strings/escaping.h"

namespace encoderd {
namespace {

class Hasher {
 public:
  Hasher() : context_(EVP_MD_CTX_new(), &EVP_MD_CTX_free) {
    ok_ = context_ != nullptr &&
          EVP_DigestInit_ex(context_.get(), EVP_sha256(), nullptr) == 1;
  }

  void Add(const void* data, size_t count) {
    ok_ = ok_ && EVP_DigestUpdate(context_.get(), data, count) == 1;
  }

  absl::StatusOr<std::string> Hex() {
    unsigned char digest[EVP_MAX_MD_SIZE];
    unsigned int size = 0;
    if (!ok_ || EVP_DigestFinal_ex(context_.get(), digest, &size) != 1) {
      return absl::InternalError("libcrypto cannot compute SHA-256");
    }
    return absl::BytesToHexString(
        absl::string_view(reinterpret_cast<const char*>(digest), size));
  }

 private:
  std::unique_ptr<EVP_MD_CTX, decltype(&EVP_MD_CTX_free)> context_;
  bool ok_ = false;
};

}  // namespace

absl::StatusOr<std::string> Sha256OfFile(const File& file,
                                         const std::atomic<bool>* stop) {
  constexpr int64_t kChunk = 1 << 20;
  std::vector<char> chunk(std::min(kChunk, file.size()));
  Hasher hasher;
  for (int64_t offset = 0; offset < file.size(); offset += kChunk) {
    if (stop != nullptr && *stop) return absl::CancelledError("stopped");
    const int64_t count = std::min(kChunk, file.size() - offset);
    const absl::Status read = file.ReadAt(offset, chunk.data(), count);
    if (!read.ok()) return read;
    hasher.Add(chunk.data(), static_cast<size_t>(count));
  }
  return hasher.Hex();
}

absl::StatusOr<std::string> Sha256OfString(absl::string_view text) {
  Hasher hasher;
  hasher.Add(text.data(), text.size());
  return hasher.Hex();
}

}  // namespace encoderd
