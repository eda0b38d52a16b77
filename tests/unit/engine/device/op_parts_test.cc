// That parts make up the whole, and what each has on machines of many cores.
#include "engine/device/cpu/op_parts.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <vector>

namespace encoderd {
namespace cpu {
namespace {

TEST(RowPartsTest, EachPartHasRowsAndAllHaveTheWhole) {
  for (const int64_t rows : {1, 7, 8, 15, 16, 17, 100, 128, 1024}) {
    for (int32_t parts = 1; parts <= MostRowParts(rows); ++parts) {
      int64_t end = 0;
      for (int32_t part = 0; part < parts; ++part) {
        const Range range = RowsOfPart(rows, part, parts);
        EXPECT_EQ(range.first, end);
        EXPECT_GE(range.count, std::min<int64_t>(rows, 8));
        end = range.end();
      }
      EXPECT_EQ(end, rows);
    }
  }
}

TEST(ProductPartsTest, EveryValueIsComputedOnce) {
  for (const int64_t rows : {1, 5, 16, 31, 77, 128, 300}) {
    for (const int64_t panels : {1, 2, 6, 18, 24}) {
      for (const int32_t parts : {1, 2, 3, 4, 7, 16, 64}) {
        if (parts > MostProductParts(rows, panels)) continue;
        std::vector<int> times(rows * panels, 0);
        for (int32_t part = 0; part < parts; ++part) {
          const ProductPart some = PartOfProduct(rows, panels, part, parts);
          for (int64_t r = some.rows.first; r < some.rows.end(); ++r) {
            for (int64_t p = some.panels.first; p < some.panels.end(); ++p)
              ++times[r * panels + p];
          }
        }
        EXPECT_EQ(std::count(times.begin(), times.end(), 1), rows * panels)
            << rows << " rows, " << panels << " panels, " << parts << " parts";
      }
    }
  }
}

TEST(ProductPartsTest, OneValueHasOnePart) {
  EXPECT_EQ(MostProductParts(1, 1), 1);
  EXPECT_EQ(PartOfProduct(1, 1, 0, 1), (ProductPart{{0, 1}, {0, 1}}));
}

// Reading the weights costs more than multiplying few rows by them.
TEST(ProductPartsTest, FewRowsShareThePanels) {
  EXPECT_EQ(PartOfProduct(32, 24, 1, 2), (ProductPart{{0, 32}, {12, 12}}));
}

// Inputs stay with the thread that made them.
TEST(ProductPartsTest, ManyRowsAreDivided) {
  EXPECT_EQ(PartOfProduct(128, 24, 1, 2), (ProductPart{{64, 64}, {0, 24}}));
}

TEST(ProductPartsTest, ManyCoresShareBoth) {
  EXPECT_EQ(PartOfProduct(128, 24, 0, 16), (ProductPart{{0, 32}, {0, 6}}));
}

// Blocks of the largest part, of what equal parts would have.
double Excess(int64_t rows, int64_t panels, int32_t parts) {
  int64_t largest = 0;
  for (int32_t part = 0; part < parts; ++part) {
    const ProductPart some = PartOfProduct(rows, panels, part, parts);
    largest = std::max(largest, some.rows.count * some.panels.count);
  }
  return static_cast<double>(largest * parts) /
         static_cast<double>(rows * panels);
}

TEST(ProductPartsTest, NoPartHasMuchMoreThanOthers) {
  for (const int32_t parts : {2, 4, 8, 16, 32, 64}) {
    for (const int64_t panels : {6, 18, 24, 12, 36, 48})
      EXPECT_LE(Excess(128, panels, parts), 1.4) << parts << ", " << panels;
  }
}

TEST(QueryLineTest, PlacesOfTheCostMeet) {
  for (const int64_t length : {1, 2, 17, 128, 191, 192, 250, 512, 8192}) {
    const QueryLine line = {12, length, length};
    for (const int64_t parts : {1, 2, 3, 5, 12, 16, 64}) {
      int64_t end = 0;
      for (int64_t part = 0; part < parts; ++part) {
        const Range range = QueriesBetween(line, CostOf(line) * part / parts,
                                           CostOf(line) * (part + 1) / parts);
        EXPECT_EQ(range.first, end);
        EXPECT_GE(range.count, 0);
        end = range.end();
      }
      EXPECT_EQ(end, 12 * length) << length << " tokens, " << parts;
    }
  }
}

TEST(QueryLineTest, PlacesBeyondTheLineCountAsItsEnds) {
  const QueryLine line = {12, 512, 512};
  EXPECT_EQ(QueriesBetween(line, -1000, 2 * CostOf(line)),
            (Range{0, 12 * 512}));
  EXPECT_EQ(QueriesBetween(line, -1000, 0), (Range{0, 0}));
  EXPECT_EQ(QueriesBetween({12, 0, 0}, 0, 1000), (Range{0, 0}));
}

TEST(QueryLineTest, HeadsOfShortSequencesStayWhole) {
  const QueryLine line = {12, 128, 128};
  for (int64_t part = 0; part < 16; ++part) {
    const Range range = QueriesBetween(line, CostOf(line) * part / 16,
                                       CostOf(line) * (part + 1) / 16);
    EXPECT_EQ(range.first % 128, 0);
    EXPECT_EQ(range.count % 128, 0);
  }
}

TEST(QueryLineTest, HeadsOfLongOnesAreDivided) {
  const QueryLine line = {12, 512, 512};
  for (int64_t part = 0; part < 16; ++part) {
    const Range range = QueriesBetween(line, CostOf(line) * part / 16,
                                       CostOf(line) * (part + 1) / 16);
    EXPECT_GE(range.count, 320) << part;  // of 384
    EXPECT_LE(range.count, 448) << part;
    EXPECT_EQ(range.first % 512 % kQueryStep, 0) << part;
  }
}

TEST(QueryPieceTest, TakesTheRestOfAHeadThenWholeOnesThenSome) {
  Range rows = {300, 512 - 300 + 2 * 512 + 96};
  EXPECT_EQ(TakePiece(512, &rows), (QueryPiece{{0, 1}, {300, 212}}));
  EXPECT_EQ(TakePiece(512, &rows), (QueryPiece{{1, 2}, {0, 512}}));
  EXPECT_EQ(TakePiece(512, &rows), (QueryPiece{{3, 1}, {0, 96}}));
  EXPECT_EQ(rows.count, 0);
}

TEST(QueryPieceTest, TakesTheMiddleOfAHead) {
  Range rows = {512 + 96, 192};
  EXPECT_EQ(TakePiece(512, &rows), (QueryPiece{{1, 1}, {96, 192}}));
  EXPECT_EQ(rows.count, 0);
}

}  // namespace
}  // namespace cpu
}  // namespace encoderd
