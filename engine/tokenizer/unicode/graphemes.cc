#include "engine/tokenizer/unicode/graphemes.h"

#include <unicode/uchar.h>

#include <cstdint>

#include "engine/base/utf8.h"
#include "engine/tokenizer/unicode/code_point_table.h"
#include "engine/tokenizer/unicode/conjuncts.h"

namespace encoderd::unicode {
namespace {

enum Class : uint8_t {
  kOther,
  kCr,
  kLf,
  kControl,
  kExtend,
  kLinker,     // an Extend that joins two consonants
  kNonJoiner,  // an Extend that keeps consonants apart
  kZwj,
  kSpacingMark,
  kPrepend,
  kConsonant,
  kPictograph,
  kRegional,
  kL,
  kV,
  kT,
  kLv,
  kLvt,
};

constexpr char32_t kZwnj = 0x200C;
// Of Unicode 16.0; an older ICU does not know it.
constexpr char32_t kNewPrepend = 0x113D1;

uint8_t ClassOf(char32_t code_point) {
  const auto c = static_cast<UChar32>(code_point);
  if (IsConjunctLinker(code_point)) return kLinker;
  if (code_point == kNewPrepend) return kPrepend;
  if (code_point == kZwnj) return kNonJoiner;
  switch (u_getIntPropertyValue(c, UCHAR_GRAPHEME_CLUSTER_BREAK)) {
    case U_GCB_CR:
      return kCr;
    case U_GCB_LF:
      return kLf;
    case U_GCB_CONTROL:
      return kControl;
    case U_GCB_EXTEND:
      return kExtend;
    case U_GCB_ZWJ:
      return kZwj;
    case U_GCB_SPACING_MARK:
      return kSpacingMark;
    case U_GCB_PREPEND:
      return kPrepend;
    case U_GCB_REGIONAL_INDICATOR:
      return kRegional;
    case U_GCB_L:
      return kL;
    case U_GCB_V:
      return kV;
    case U_GCB_T:
      return kT;
    case U_GCB_LV:
      return kLv;
    case U_GCB_LVT:
      return kLvt;
    default:
      break;
  }
  if (IsNewMark(code_point)) return kExtend;
  if (u_hasBinaryProperty(c, UCHAR_EXTENDED_PICTOGRAPHIC)) return kPictograph;
  if (IsConjunctConsonant(code_point)) return kConsonant;
  return kOther;
}

const CodePointTable& Classes() {
  static const CodePointTable* const table = new CodePointTable(&ClassOf);
  return *table;
}

// What of the cluster so far the rules look at.
class Cluster {
 public:
  explicit Cluster(uint8_t first) { Add(first); }

  bool TakesIn(uint8_t next) const {
    if (last_ == kCr) return next == kLf;
    if (last_ == kControl || last_ == kLf) return false;
    switch (next) {
      case kCr:
      case kLf:
      case kControl:
        return false;
      case kExtend:
      case kLinker:
      case kNonJoiner:
      case kZwj:
      case kSpacingMark:
        return true;
      default:
        break;
    }
    if (last_ == kPrepend) return true;
    switch (next) {
      case kL:
      case kLv:
      case kLvt:
        return last_ == kL;
      case kV:
        return last_ == kL || last_ == kLv || last_ == kV;
      case kT:
        return last_ == kLv || last_ == kV || last_ == kLvt || last_ == kT;
      case kConsonant:
        return linked_;
      case kPictograph:
        return pictograph_ && last_ == kZwj;
      case kRegional:
        return last_ == kRegional && odd_regionals_;
      default:
        return false;
    }
  }

  void Add(uint8_t next) {
    const bool extends = next == kExtend || next == kLinker ||
                         next == kNonJoiner || next == kZwj;
    // A consonant, then extenders, a linker among them.
    if (next == kLinker) linked_ = consonant_;
    if (!extends || next == kNonJoiner) {
      consonant_ = next == kConsonant;
      linked_ = false;
    }
    // A pictograph, then extenders, then a joiner.
    if (next == kPictograph) {
      pictograph_ = true;
    } else if (!extends || last_ == kZwj) {
      pictograph_ = false;
    }
    odd_regionals_ =
        next == kRegional && !(last_ == kRegional && odd_regionals_);
    last_ = next;
  }

 private:
  uint8_t last_ = kOther;
  bool consonant_ = false;
  bool linked_ = false;
  bool pictograph_ = false;
  bool odd_regionals_ = false;
};

}  // namespace

size_t ClusterEnd(absl::string_view text, size_t begin) {
  const CodePointTable& classes = Classes();
  const auto* const bytes = reinterpret_cast<const uint8_t*>(text.data());
  int length = 0;
  Cluster cluster(classes[utf8::Decode(bytes + begin, &length)]);
  size_t at = begin + length;
  for (; at < text.size(); at += length) {
    const uint8_t next = classes[utf8::Decode(bytes + at, &length)];
    if (!cluster.TakesIn(next)) break;
    cluster.Add(next);
  }
  return at;
}

}  // namespace encoderd::unicode
