#include "engine/tokenizer/unicode/unicode_rules.h"

#include <unicode/uchar.h>
#include <unicode/unorm2.h>

#include <iterator>

#include "engine/tokenizer/unicode/code_point_ranges.h"

namespace encoderd::unicode {
namespace {

// True when Unicode major.0 (as an integer) had `c`.
bool AssignedBy(char32_t c, int major) {
  UVersionInfo age;
  u_charAge(static_cast<UChar32>(c), age);
  return age[0] != 0 && (age[0] < major || (age[0] == major && age[1] == 0));
}

bool HasCategory(char32_t c, uint32_t mask) {
  return (U_GET_GC_MASK(static_cast<UChar32>(c)) & mask) != 0;
}

constexpr int kCategoryVersion = 8;
constexpr int kDecompositionVersion = 9;
constexpr int kWordVersion = 16;
constexpr int kLowerVersion = 17;

// Word characters of Unicode 15.1 and 16.0, for an ICU that is older.
constexpr Range kNewWordChars[] = {
    {0x897, 0x897},     {0x1C89, 0x1C8A},   {0xA7CB, 0xA7CD},
    {0xA7DA, 0xA7DC},   {0x105C0, 0x105F3}, {0x10D40, 0x10D65},
    {0x10D69, 0x10D6D}, {0x10D6F, 0x10D85}, {0x10EC2, 0x10EC4},
    {0x10EFC, 0x10EFC}, {0x11380, 0x11389}, {0x1138B, 0x1138B},
    {0x1138E, 0x1138E}, {0x11390, 0x113B5}, {0x113B7, 0x113C0},
    {0x113C2, 0x113C2}, {0x113C5, 0x113C5}, {0x113C7, 0x113CA},
    {0x113CC, 0x113D3}, {0x113E1, 0x113E2}, {0x116D0, 0x116E3},
    {0x11BC0, 0x11BE0}, {0x11BF0, 0x11BF9}, {0x11F5A, 0x11F5A},
    {0x13460, 0x143FA}, {0x16100, 0x16139}, {0x16D40, 0x16D6C},
    {0x16D70, 0x16D79}, {0x18CFF, 0x18CFF}, {0x1CCF0, 0x1CCF9},
    {0x1E5D0, 0x1E5FA}, {0x2EBF0, 0x2EE5D},
};

// Letters and numbers of the same versions, likewise.
constexpr Range kNewLetters[] = {
    {0x1C89, 0x1C8A},   {0xA7CB, 0xA7CD},   {0xA7DA, 0xA7DC},
    {0x105C0, 0x105F3}, {0x10D4A, 0x10D65}, {0x10D6F, 0x10D85},
    {0x10EC2, 0x10EC4}, {0x11380, 0x11389}, {0x1138B, 0x1138B},
    {0x1138E, 0x1138E}, {0x11390, 0x113B5}, {0x113B7, 0x113B7},
    {0x113D1, 0x113D1}, {0x113D3, 0x113D3}, {0x11BC0, 0x11BE0},
    {0x13460, 0x143FA}, {0x16100, 0x1611D}, {0x16D40, 0x16D6C},
    {0x18CFF, 0x18CFF}, {0x1E5D0, 0x1E5ED}, {0x1E5F0, 0x1E5F0},
    {0x2EBF0, 0x2EE5D},
};
constexpr Range kNewNumbers[] = {
    {0x10D40, 0x10D49}, {0x116D0, 0x116E3}, {0x11BF0, 0x11BF9},
    {0x16130, 0x16139}, {0x16D70, 0x16D79}, {0x1CCF0, 0x1CCF9},
    {0x1E5F1, 0x1E5FA},
};

constexpr Range kNewMarks[] = {
    {0x897, 0x897},     {0x1ACF, 0x1ADD},   {0x1AE0, 0x1AEB},
    {0x10D69, 0x10D6D}, {0x10EFA, 0x10EFC}, {0x113B8, 0x113C0},
    {0x113C2, 0x113C2}, {0x113C5, 0x113C5}, {0x113C7, 0x113CA},
    {0x113CC, 0x113D0}, {0x113D2, 0x113D2}, {0x113E1, 0x113E2},
    {0x11B60, 0x11B67}, {0x11F5A, 0x11F5A}, {0x1611E, 0x1612F},
    {0x1E5EE, 0x1E5EF}, {0x1E6E3, 0x1E6E3}, {0x1E6E6, 0x1E6E6},
    {0x1E6EE, 0x1E6EF}, {0x1E6F5, 0x1E6F5},
};

// Capitals of Unicode 16.0 and 17.0, for an ICU that is older.
struct LowerRange {
  char32_t first;
  char32_t last;
  int32_t distance;
};
constexpr LowerRange kNewCapitals[] = {
    {0x1C89, 0x1C89, 1},    {0xA7CB, 0xA7CB, -0xA567}, {0xA7CC, 0xA7CC, 1},
    {0xA7CE, 0xA7CE, 1},    {0xA7D2, 0xA7D2, 1},       {0xA7D4, 0xA7D4, 1},
    {0xA7DA, 0xA7DA, 1},    {0xA7DC, 0xA7DC, -0xA641}, {0x10D50, 0x10D65, 0x20},
    {0x16EA0, 0x16EB8, 27},
};

constexpr Range kCjk[] = {
    {0x3400, 0x4DBF},   {0x4E00, 0x9FFF},   {0xF900, 0xFAFF},
    {0x20000, 0x2A6DF}, {0x2A700, 0x2B81F}, {0x2B920, 0x2CEAF},
    {0x2F800, 0x2FA1F},
};

// Appends what `form` decomposes `c` to, if the version had it.
void AppendDecomposition(const UNormalizer2* form, char32_t c,
                         std::u32string* out) {
  UErrorCode error = U_ZERO_ERROR;
  UChar units[32];  // the longest has 18
  const int32_t length = form == nullptr ? -1
                                         : unorm2_getDecomposition(
                                               form, static_cast<UChar32>(c),
                                               units, std::size(units), &error);
  if (U_FAILURE(error) || length <= 0 ||
      !AssignedBy(c, kDecompositionVersion)) {
    out->push_back(c);
    return;
  }
  for (int32_t i = 0; i < length;) {
    UChar32 part;
    U16_NEXT(units, i, length, part);
    out->push_back(static_cast<char32_t>(part));
  }
}

}  // namespace

bool IsRemoved(char32_t c) {
  if (c == '\t' || c == '\n' || c == '\r') return false;
  if (c == 0 || c == 0xFFFD) return true;
  return HasCategory(c, U_GC_CC_MASK | U_GC_CF_MASK | U_GC_CO_MASK) &&
         AssignedBy(c, kCategoryVersion);
}

bool IsSpace(char32_t c) { return u_isUWhiteSpace(static_cast<UChar32>(c)); }

bool IsPunctuation(char32_t c) {
  if (c < 0x80) return u_ispunct(c) || HasCategory(c, U_GC_S_MASK);
  // Punctuation in Unicode 8.0: U+166D is a symbol and U+111C9 a mark since.
  if (c == 0x166D || c == 0x111C9) return true;
  return HasCategory(c, U_GC_P_MASK) && AssignedBy(c, kCategoryVersion);
}

bool IsCjk(char32_t c) { return Contains(kCjk, c); }

bool IsNonspacingMark(char32_t c) {
  // Categories that changed after Unicode 8.0.
  if (c == 0x1734) return true;
  if (c == 0x1885 || c == 0x1886 || c == 0xA9BD || c == 0x111C9) return false;
  return HasCategory(c, U_GC_MN_MASK) && AssignedBy(c, kCategoryVersion);
}

bool IsWordChar(char32_t c) {
  if (Contains(kNewWordChars, c)) return true;
  if (c == 0x200C || c == 0x200D) return true;  // join controls
  return (u_isUAlphabetic(static_cast<UChar32>(c)) ||
          HasCategory(c, U_GC_M_MASK | U_GC_ND_MASK | U_GC_PC_MASK)) &&
         AssignedBy(c, kWordVersion);
}

bool IsLetter(char32_t c) {
  return (HasCategory(c, U_GC_L_MASK) && AssignedBy(c, kWordVersion)) ||
         Contains(kNewLetters, c);
}

bool IsNumber(char32_t c) {
  return (HasCategory(c, U_GC_N_MASK) && AssignedBy(c, kWordVersion)) ||
         Contains(kNewNumbers, c);
}

bool IsNewMark(char32_t c) { return Contains(kNewMarks, c); }

uint8_t CombiningClass(char32_t c) {
  const uint8_t combining_class = u_getCombiningClass(static_cast<UChar32>(c));
  if (combining_class == 0) return 0;
  return AssignedBy(c, kDecompositionVersion) ? combining_class : 0;
}

void AppendDecomposed(char32_t c, std::u32string* out) {
  UErrorCode error = U_ZERO_ERROR;
  const UNormalizer2* nfd = unorm2_getNFDInstance(&error);
  AppendDecomposition(U_FAILURE(error) ? nullptr : nfd, c, out);
}

void AppendCompatible(char32_t c, std::u32string* out) {
  UErrorCode error = U_ZERO_ERROR;
  const UNormalizer2* nfkd = unorm2_getNFKDInstance(&error);
  AppendDecomposition(U_FAILURE(error) ? nullptr : nfkd, c, out);
}

bool IsInert(char32_t c, bool compatible) {
  if (c < 0x80) return true;
  UErrorCode error = U_ZERO_ERROR;
  const UNormalizer2* form = compatible ? unorm2_getNFKDInstance(&error)
                                        : unorm2_getNFDInstance(&error);
  return U_SUCCESS(error) && unorm2_isInert(form, static_cast<UChar32>(c));
}

char32_t Compose(char32_t first, char32_t second) {
  UErrorCode error = U_ZERO_ERROR;
  const UNormalizer2* nfc = unorm2_getNFCInstance(&error);
  if (U_FAILURE(error)) return 0;
  const UChar32 composed = unorm2_composePair(nfc, static_cast<UChar32>(first),
                                              static_cast<UChar32>(second));
  if (composed < 0) return 0;
  const auto c = static_cast<char32_t>(composed);
  return AssignedBy(c, kDecompositionVersion) ? c : 0;
}

bool IsMark(char32_t c) {
  // Categories that changed after Unicode 9.0.
  if (c == 0x1CF2 || c == 0x1CF3) return true;
  if (c == 0x111C9) return false;
  return HasCategory(c, U_GC_M_MASK) && AssignedBy(c, kDecompositionVersion);
}

void AppendLower(char32_t c, std::u32string* out) {
  if (c == 0x130) {
    out->append(U"i\u0307");
    return;
  }
  if (c >= kNewCapitals[0].first) {
    for (const LowerRange& range : kNewCapitals) {
      if (c >= range.first && c <= range.last) {
        out->push_back(
            static_cast<char32_t>(static_cast<int32_t>(c) + range.distance));
        return;
      }
    }
  }
  const auto lower = static_cast<char32_t>(u_tolower(static_cast<UChar32>(c)));
  out->push_back(lower == c || AssignedBy(c, kLowerVersion) ? lower : c);
}

}  // namespace encoderd::unicode
