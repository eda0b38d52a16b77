#include "engine/tokenizer/normal_text.h"

#include <algorithm>

#include "engine/base/utf8.h"
#include "engine/tokenizer/buffer.h"

namespace encoderd {

void NormalText::Assign(absl::string_view text, int32_t origin, bool tracked,
                        int64_t limit) {
  Reset(tracked, limit);
  text_.assign(text.data(), text.size());
  if (origin == 0 && !text.empty()) {
    utf8::Decode(reinterpret_cast<const uint8_t*>(text.data()), &start_bytes_);
  }
  if (!tracked) return;
  places_.reserve(text.size());
  utf8::ForEach(text, [&](char32_t, int32_t begin, int32_t end) {
    places_.insert(places_.end(), end - begin, {origin + begin, origin + end});
  });
}

void NormalText::Append(absl::string_view text, ByteOffset place) {
  if (!HasRoom(text.size())) return;
  if (place.begin == 0 && start_bytes_ == all().end) {
    start_bytes_ += static_cast<int32_t>(text.size());
  }
  text_.append(text.data(), text.size());
  if (tracked_) places_.insert(places_.end(), text.size(), place);
}

void NormalText::Append(const NormalText& from, TextRange range) {
  const absl::string_view part = from.text(range);
  if (!HasRoom(part.size())) return;
  if (range.begin < from.start_bytes_ && start_bytes_ == all().end) {
    start_bytes_ += std::min(from.start_bytes_, range.end) - range.begin;
  }
  text_.append(part.data(), part.size());
  if (!tracked_) return;
  places_.insert(places_.end(), from.places_.begin() + range.begin,
                 from.places_.begin() + range.end);
}

void NormalText::Shrink() {
  ShrinkBuffer(&text_);
  ShrinkBuffer(&places_);
}

}  // namespace encoderd
