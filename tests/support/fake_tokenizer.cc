#include "tests/support/fake_tokenizer.h"

#include <algorithm>
#include <stdexcept>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "engine/base/error.h"
#include "tests/support/patience.h"

namespace encoderd {
namespace {

void AppendSpecial(int32_t id, int32_t segment, bool offsets, Encoding* out) {
  out->token_ids.push_back(id);
  out->segment_ids.push_back(segment);
  if (!offsets) return;
  out->offsets.push_back({0, 0});
  out->special.push_back(1);
}

absl::Status AppendText(absl::string_view text, int32_t segment, bool offsets,
                        Encoding* out) {
  const size_t bad = text.find('\xFF');
  if (bad != absl::string_view::npos) {
    return MakeError(
        absl::StatusCode::kInvalidArgument,
        absl::StrCat("the input is not UTF-8 at byte ", bad),
        {"INVALID_UTF8", {{"byte_offset", absl::StrCat(bad)}}, ""});
  }
  for (size_t i = 0; i < text.size(); ++i) {
    out->token_ids.push_back(FakeTokenizer::Id(text[i]));
    if (!offsets) continue;
    out->offsets.push_back(
        {static_cast<int32_t>(i), static_cast<int32_t>(i + 1)});
    out->special.push_back(0);
  }
  out->segment_ids.resize(out->token_ids.size(), segment);
  return absl::OkStatus();
}

template <typename T>
void EraseRange(size_t begin, size_t count, std::vector<T>* values) {
  if (values->empty()) return;
  values->erase(values->begin() + begin, values->begin() + begin + count);
}

}  // namespace

void FakeTokenizer::CloseGate(int64_t min_bytes) {
  std::lock_guard<std::mutex> lock(mutex_);
  gate_closed_ = true;
  gate_min_bytes_ = min_bytes;
}

int FakeTokenizer::most_at_gate() const {
  std::lock_guard<std::mutex> lock(mutex_);
  return most_at_gate_;
}

void FakeTokenizer::OpenGate() {
  std::lock_guard<std::mutex> lock(mutex_);
  gate_closed_ = false;
  changed_.notify_all();
}

bool FakeTokenizer::WaitForTextsAtGate(int texts) {
  std::unique_lock<std::mutex> lock(mutex_);
  return changed_.wait_for(lock, absl::ToChronoNanoseconds(kPatience),
                           [&] { return at_gate_ >= texts; });
}

void FakeTokenizer::PassGate(int64_t bytes) const {
  if (!gate_closed_) return;
  std::unique_lock<std::mutex> lock(mutex_);
  if (!gate_closed_ || bytes < gate_min_bytes_) return;
  ++at_gate_;
  most_at_gate_ = std::max(most_at_gate_, at_gate_);
  changed_.notify_all();
  changed_.wait(lock, [&] { return !gate_closed_; });
  --at_gate_;
}

TokenizerScratchPtr FakeTokenizer::NewScratch() const {
  if (no_scratch_) throw std::runtime_error("no scratch");
  return std::make_unique<TokenizerScratch>();
}

absl::Status FakeTokenizer::Encode(absl::string_view text,
                                   const EncodeOptions& options,
                                   TokenizerScratch* scratch,
                                   Encoding* out) const {
  PassGate(static_cast<int64_t>(text.size()));
  if (text == "throw") throw std::runtime_error("told to throw");
  out->Clear();
  AppendSpecial(kCls, 0, options.offsets, out);
  out->text_begins[0] = 1;
  out->text_tokens[0] = static_cast<int64_t>(text.size());
  absl::Status status = AppendText(text, 0, options.offsets, out);
  AppendSpecial(kSep, 0, options.offsets, out);
  return status;
}

absl::Status FakeTokenizer::EncodePair(absl::string_view first,
                                       absl::string_view second,
                                       const EncodeOptions& options,
                                       TokenizerScratch* scratch,
                                       Encoding* out) const {
  absl::Status status = Encode(first, options, scratch, out);
  if (!status.ok()) return status;
  out->pair = true;
  out->text_begins[1] = static_cast<int64_t>(out->token_ids.size());
  out->text_tokens[1] = static_cast<int64_t>(second.size());
  status = AppendText(second, 1, options.offsets, out);
  AppendSpecial(kSep, 1, options.offsets, out);
  return status;
}

void FakeTokenizer::Truncate(int64_t max_len, TruncateSide side,
                             Encoding* encoding) const {
  const std::vector<int32_t>& all = encoding->token_ids;
  constexpr absl::string_view kThrow = "throw";
  if (all.size() > kThrow.size() &&
      std::equal(kThrow.begin(), kThrow.end(), all.begin() + 1,
                 [](char c, int32_t id) { return Id(c) == id; })) {
    throw std::runtime_error("told to throw");
  }
  while (static_cast<int64_t>(encoding->token_ids.size()) > max_len) {
    const std::vector<int32_t>& ids = encoding->token_ids;
    const int64_t first =
        std::find(ids.begin(), ids.end(), kSep) - ids.begin() - 1;
    const int64_t second =
        std::max<int64_t>(static_cast<int64_t>(ids.size()) - first - 3, 0);
    const bool cut_second = second > first;
    const int64_t begin = cut_second ? first + 2 : 1;
    const int64_t length = cut_second ? second : first;
    const int64_t over = static_cast<int64_t>(ids.size()) - max_len;
    // One by one while the texts are about equal, so that both are cut.
    const int64_t count =
        second == 0 ? over
                    : std::clamp<int64_t>(std::abs(first - second), 1, over);
    const int64_t at =
        side == TruncateSide::kStart ? begin : begin + length - count;
    EraseRange(at, count, &encoding->offsets);
    EraseRange(at, count, &encoding->special);
    EraseRange(at, count, &encoding->segment_ids);
    EraseRange(at, count, &encoding->token_ids);
    encoding->text_tokens[cut_second ? 1 : 0] -= count;
    if (!cut_second) encoding->text_begins[1] -= count;
  }
}

int32_t FakeTokenizer::num_special_tokens(bool pair) const {
  if (no_special_[pair]) throw std::runtime_error("no special tokens");
  return pair ? 3 : 2;
}

absl::string_view FakeTokenizer::Token(int32_t id) const {
  static constexpr absl::string_view kSpecial[] = {"[PAD]", "[CLS]", "[SEP]"};
  if (id < 0 || id >= kVocab) return "";
  return id < kFirstByte ? kSpecial[id] : "<byte>";
}

}  // namespace encoderd
