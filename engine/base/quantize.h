// A vector in fewer bytes: half floats, a byte or a bit per value.
//
// The formulas are those of sentence-transformers' quantize_embeddings, in
// float as there: kBinary and kUbinary are bit-equal to it, kInt8 and kUint8
// are with the same ranges. Values out of range saturate: bytes at their ends,
// half floats at +-65504, so that there are no infinities. Input values are
// finite. Thread-safe: plain functions.
#ifndef ENCODERD_ENGINE_BASE_QUANTIZE_H_
#define ENCODERD_ENGINE_BASE_QUANTIZE_H_

#include <cstdint>
#include <vector>

#include "absl/types/span.h"

namespace encoderd {

enum class VectorFormat {
  kFloat32,  // 4 bytes per value, little-endian
  kFloat16,  // IEEE half, 2 bytes per value, little-endian; nearest, ties to
             // even
  kInt8,     // floor((x - minimum) / step) from 0 to 255, less 128
  kUint8,    // the same without the 128
  kBinary,   // kUbinary's bytes less 128, as signed bytes
  kUbinary,  // one bit per value, 1 where x > 0, the first value in the highest
             // bit; the last byte is filled with zeros
};

// Bytes of `count` values.
int64_t FormatBytes(VectorFormat format, int64_t count);

// For kInt8 and kUint8, fixed ahead: the meaning of the bytes of each value.
struct ByteRanges {
  std::vector<float> minimum;
  std::vector<float> step;  // (maximum - minimum) / 255, the least normal float
                            // where that is 0: other values go to the ends

  bool empty() const { return minimum.empty(); }
  // minimum[i] < maximum[i], both of one length, their differences finite.
  static ByteRanges Make(absl::Span<const float> minimum,
                         absl::Span<const float> maximum);
};

// Writes FormatBytes(format, values.size()) bytes. ranges: one per value; or
// empty, then kInt8 and kUint8 take the vector's own range, -m to m with m its
// largest absolute value. Returns the step of that range (2 m / 255; 0 for a
// zero vector), and 0 in all other cases.
float WriteVector(VectorFormat format, const ByteRanges& ranges,
                  absl::Span<const float> values, uint8_t* bytes);

// Nearest half float, ties to even; beyond the largest one, the largest one. A
// NaN gives a NaN, 0x7fff.
uint16_t ToFloat16(float value);

}  // namespace encoderd

#endif  // ENCODERD_ENGINE_BASE_QUANTIZE_H_
