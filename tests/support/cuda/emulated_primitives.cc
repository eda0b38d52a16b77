// What a warp does together, lane by lane as PTX documents it.
#include "engine/device/cuda/kernels/primitives.h"

namespace encoderd {
namespace cuda {
namespace {

using emulation::Together;

struct ShuffleSlot {
  float value;
  int32_t which;  // lane, or mask
  float result;
};

struct LoadSlot {
  const void* row;
  uint32_t* r;
};

uint16_t Element16(const void* row, int32_t column) {
  uint16_t element = 0;
  std::memcpy(&element, static_cast<const char*>(row) + 2 * column, 2);
  return element;
}

// Register i of lane l: two elements of matrix i, whose rows the lanes
// 8i .. 8i+7 name.
void FillLoads(void* const* slots, bool transposed) {
  for (int32_t lane = 0; lane < 32; ++lane) {
    const void* row = static_cast<LoadSlot*>(slots[lane])->row;
    emulation::CheckAligned(row, 16, "a row of LoadMatrix4");
    emulation::CheckVisible(row, "LoadMatrix4", /*of_warp=*/true);
  }
  for (int32_t lane = 0; lane < 32; ++lane) {
    for (int32_t i = 0; i < 4; ++i) {
      uint32_t word = 0;
      for (int32_t e = 0; e < 2; ++e) {
        int32_t row = lane / 4, column = lane % 4 * 2 + e;
        if (transposed) std::swap(row, column);
        const auto* named = static_cast<LoadSlot*>(slots[8 * i + row]);
        word |= static_cast<uint32_t>(Element16(named->row, column)) << 16 * e;
      }
      static_cast<LoadSlot*>(slots[lane])->r[i] = word;
    }
  }
}

struct MultiplySlot {
  float* d;
  const uint32_t* a;
  uint32_t b[2];
};

template <float (*kWiden)(uint16_t)>
float HalfOfWord(uint32_t word, int32_t which) {
  return kWiden(static_cast<uint16_t>(word >> 16 * which));
}

// Gathers the fragments of mma.m16n8k16, multiplies in double, rounds once.
template <float (*kWiden)(uint16_t)>
void Multiply(void* const* slots) {
  double a[16][16], b[16][8];
  for (int32_t lane = 0; lane < 32; ++lane) {
    const auto& slot = *static_cast<MultiplySlot*>(slots[lane]);
    const int32_t group = lane / 4, member = lane % 4;
    for (int32_t e = 0; e < 2; ++e) {
      for (int32_t i = 0; i < 4; ++i) {
        a[group + i % 2 * 8][member * 2 + e + i / 2 * 8] =
            HalfOfWord<kWiden>(slot.a[i], e);
      }
      for (int32_t i = 0; i < 2; ++i) {
        b[member * 2 + e + i * 8][group] = HalfOfWord<kWiden>(slot.b[i], e);
      }
    }
  }
  for (int32_t lane = 0; lane < 32; ++lane) {
    auto& slot = *static_cast<MultiplySlot*>(slots[lane]);
    for (int32_t i = 0; i < 4; ++i) {
      const int32_t row = lane / 4 + i / 2 * 8;
      const int32_t column = lane % 4 * 2 + i % 2;
      double sum = slot.d[i];
      for (int32_t k = 0; k < 16; ++k) sum += a[row][k] * b[k][column];
      slot.d[i] = static_cast<float>(sum);
    }
  }
}

}  // namespace

float ShuffleXor(float value, int32_t mask) {
  ShuffleSlot slot = {value, mask, 0.0f};
  Together("ShuffleXor", &slot, [](void* const* slots) {
    for (int32_t lane = 0; lane < 32; ++lane) {
      auto* mine = static_cast<ShuffleSlot*>(slots[lane]);
      mine->result =
          static_cast<ShuffleSlot*>(slots[lane ^ mine->which])->value;
    }
  });
  return slot.result;
}

float ShuffleFrom(float value, int32_t lane) {
  ShuffleSlot slot = {value, lane, 0.0f};
  Together("ShuffleFrom", &slot, [](void* const* slots) {
    for (int32_t l = 0; l < 32; ++l) {
      auto* mine = static_cast<ShuffleSlot*>(slots[l]);
      mine->result = static_cast<ShuffleSlot*>(slots[mine->which % 32])->value;
    }
  });
  return slot.result;
}

void LoadMatrix4(const void* row, uint32_t (&r)[4]) {
  LoadSlot slot = {row, r};
  Together("LoadMatrix4", &slot,
           [](void* const* slots) { FillLoads(slots, false); });
}

void LoadMatrix4Transposed(const void* row, uint32_t (&r)[4]) {
  LoadSlot slot = {row, r};
  Together("LoadMatrix4Transposed", &slot,
           [](void* const* slots) { FillLoads(slots, true); });
}

void MultiplyAdd(float (&d)[4], const uint32_t (&a)[4], uint32_t b0,
                 uint32_t b1, Half) {
  MultiplySlot slot = {d, a, {b0, b1}};
  Together("MultiplyAdd<Half>", &slot, &Multiply<&emulation::FromHalf>);
}

void MultiplyAdd(float (&d)[4], const uint32_t (&a)[4], uint32_t b0,
                 uint32_t b1, Bf16) {
  MultiplySlot slot = {d, a, {b0, b1}};
  Together("MultiplyAdd<Bf16>", &slot, &Multiply<&emulation::FromBf16>);
}

}  // namespace cuda
}  // namespace encoderd
