// Buffers that a thread keeps between texts, and how much of them it keeps.
#ifndef ENCODERD_ENGINE_TOKENIZER_BUFFER_H_
#define ENCODERD_ENGINE_TOKENIZER_BUFFER_H_

#include <cstdint>
#include <memory>

namespace encoderd {

// Buffers larger than this are given back after a text, so that between texts
// memory does not depend on what went before.
inline constexpr int64_t kKeptBytes = 4 << 20;

// Memory without an initial value, which vector cannot give.
template <typename T>
class Buffer {
 public:
  T* Reserve(int64_t count) {
    if (count > capacity_) {
      data_.reset(new T[static_cast<size_t>(count)]);
      capacity_ = count;
    }
    return data_.get();
  }
  void Shrink() {
    if (capacity_ * static_cast<int64_t>(sizeof(T)) <= kKeptBytes) return;
    data_.reset();
    capacity_ = 0;
  }
  T* data() const { return data_.get(); }

 private:
  std::unique_ptr<T[]> data_;
  int64_t capacity_ = 0;
};

// The same for a vector or a string.
template <typename Container>
void ShrinkBuffer(Container* values) {
  if (values->capacity() * sizeof(typename Container::value_type) >
      static_cast<size_t>(kKeptBytes)) {
    Container().swap(*values);
  }
}

}  // namespace encoderd

#endif  // ENCODERD_ENGINE_TOKENIZER_BUFFER_H_
