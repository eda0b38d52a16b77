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
  for (const int64_t rows : {1, 5, 16, 31, 77, 128, 300, 1024}) {
    for (const int64_t panels : {1, 2, 6, 18, 24}) {
      for (const int32_t threads : {1, 2, 3, 4, 7, 16, 64}) {
        for (const int64_t preparing : {0, 1, 5}) {
          const ProductSize size = {rows, panels, preparing};
          const ProductGrid grid = GridOf(size, threads);
          EXPECT_LE(grid.parts(), threads);
          std::vector<int> times(rows * panels, 0);
          for (int32_t part = 0; part < grid.parts(); ++part) {
            for (int32_t slice = 0; slice < grid.slices(); ++slice) {
              const ProductBlock some = SliceOf(grid, size, part, slice);
              EXPECT_GT(some.rows.count * some.panels.count, 0);
              for (int64_t r = some.rows.first; r < some.rows.end(); ++r) {
                for (int64_t p = some.panels.first; p < some.panels.end(); ++p)
                  ++times[r * panels + p];
              }
            }
          }
          EXPECT_EQ(std::count(times.begin(), times.end(), 1), rows * panels)
              << rows << " rows, " << panels << " panels, " << threads;
        }
      }
    }
  }
}

TEST(ProductPartsTest, OneValueHasOnePart) {
  EXPECT_EQ(GridOf({1, 1}, 64), ProductGrid());
}

// Reading the weights costs more than multiplying few rows by them.
TEST(ProductPartsTest, FewRowsAreDividedByPanels) {
  EXPECT_EQ(PartOf(GridOf({32, 24}, 2), {32, 24}, 1),
            (ProductBlock{{0, 32}, {12, 12}}));
}

// Inputs stay with the thread that made them.
TEST(ProductPartsTest, ManyRowsAreDividedByRows) {
  EXPECT_EQ(PartOf(GridOf({128, 24}, 2), {128, 24}, 1),
            (ProductBlock{{64, 64}, {0, 24}}));
}

TEST(ProductPartsTest, ManyCoresDivideBoth) {
  EXPECT_EQ(PartOf(GridOf({128, 24}, 16), {128, 24}, 5),
            (ProductBlock{{32, 32}, {6, 6}}));
}

// Each part prepares its rows again.
TEST(ProductPartsTest, RowsThatCostMuchToPrepareAreDividedFirst) {
  EXPECT_EQ(GridOf({24, 6}, 2).panel_parts, 2);
  EXPECT_EQ(GridOf({24, 6, 100}, 2).panel_parts, 1);
}

TEST(ProductPartsTest, NoPartHasMuchMoreThanOthers) {
  for (const int32_t threads : {2, 4, 8, 16, 32, 64}) {
    // Of AVX-512, and of AVX2.
    for (const int64_t panels : {6, 18, 24, 12, 36, 48, 16, 64}) {
      const ProductGrid grid = GridOf({128, panels}, threads);
      int64_t largest = 0;
      for (int32_t part = 0; part < grid.parts(); ++part) {
        const ProductBlock some = PartOf(grid, {128, panels}, part);
        largest = std::max(largest, some.rows.count * some.panels.count);
      }
      EXPECT_LE(static_cast<double>(largest * threads),
                1.4 * static_cast<double>(128 * panels))
          << threads << " threads, " << panels << " panels";
    }
  }
}

TEST(ProductSlicesTest, SmallPartsAreOne) {
  EXPECT_EQ(GridOf({16, 6}, 2).slices(), 1);
}

TEST(ProductSlicesTest, OnePartIsOne) {
  EXPECT_EQ(GridOf({1024, 24}, 1), ProductGrid());
}

TEST(ProductSlicesTest, HaveSomePanels) {
  const ProductGrid grid = GridOf({128, 24}, 2);
  EXPECT_EQ(grid.row_slices, 1);
  EXPECT_EQ(grid.panel_slices, 12);
}

TEST(ProductSlicesTest, HaveRowsThatStayInCache) {
  const ProductGrid grid = GridOf({1024, 24}, 2);
  EXPECT_EQ(grid.row_slices, 4);
  EXPECT_EQ(grid.panel_slices, 4);
}

TEST(ProductSlicesTest, HaveAllPanelsOfRowsThatArePrepared) {
  const ProductGrid grid = GridOf({512, 24, 1}, 2);
  EXPECT_EQ(grid.row_slices, 4);
  EXPECT_EQ(grid.panel_slices, 1);
}

Range PartOfLine(const QueryLine& line, int64_t part, int64_t parts) {
  return QueriesBetween(line, CostOf(line) * part / parts,
                        CostOf(line) * (part + 1) / parts);
}

TEST(QueryLineTest, PartsMakeUpTheLine) {
  for (const int64_t length : {1, 2, 17, 128, 191, 192, 250, 512, 8192}) {
    for (const int64_t parts : {1, 2, 3, 5, 12, 16, 64}) {
      int64_t end = 0;
      for (int64_t part = 0; part < parts; ++part) {
        const Range range = PartOfLine({12, length}, part, parts);
        EXPECT_EQ(range.first, end);
        EXPECT_GE(range.count, 0);
        end = range.end();
      }
      EXPECT_EQ(end, 12 * length) << length << " tokens, " << parts;
    }
  }
}

TEST(QueryLineTest, IsDividedOnlyWhereItMayBe) {
  for (int64_t length = 1; length <= 600; ++length) {
    const QueryLine line = {3, length};
    const int64_t step = length < 2 * kQueryStep ? length : kQueryStep;
    int64_t before = 0;
    for (int64_t at = 0; at <= 200; ++at) {
      const int64_t cut =
          QueriesBetween(line, 0, CostOf(line) * at / 200).count;
      EXPECT_GE(cut, before) << length << " tokens";
      EXPECT_EQ(cut % length % step, 0) << length << " tokens, " << cut;
      // Nor is the rest of a head much shorter than a step.
      EXPECT_GE(length - cut % length, step / 2) << length << ", " << cut;
      before = cut;
    }
    EXPECT_EQ(before, 3 * length);
  }
}

TEST(QueryLineTest, PlacesBeyondItCountAsItsEnds) {
  const QueryLine line = {12, 512};
  EXPECT_EQ(QueriesBetween(line, -1000, 2 * CostOf(line)),
            (Range{0, 12 * 512}));
  EXPECT_EQ(QueriesBetween(line, -1000, 0), (Range{0, 0}));
  EXPECT_EQ(QueriesBetween({12, 0}, 0, 1000), (Range{0, 0}));
}

TEST(QueryLineTest, LongHeadsAreDividedAboutEqually) {
  for (int64_t part = 0; part < 16; ++part) {
    const Range range = PartOfLine({12, 512}, part, 16);
    EXPECT_GE(range.count, 320) << part;  // of 384
    EXPECT_LE(range.count, 448) << part;
  }
}

TEST(QueryLineTest, HasSlicesOfAHeadAtLeast) {
  EXPECT_EQ(QuerySlices(0, 0), 1);
  EXPECT_EQ(QuerySlices(CostOf({12, 16}), CostOf({1, 16})), 1);
  EXPECT_EQ(QuerySlices(CostOf({6, 128}), CostOf({1, 128})), 3);
  EXPECT_EQ(QuerySlices(CostOf({6, 512}), CostOf({1, 512})), 6);
  EXPECT_EQ(QuerySlices(CostOf({1, 8192}) / 4, CostOf({1, 8192})), 1);
  EXPECT_EQ(QuerySlices(CostOf({60, 512}), CostOf({1, 512})), 16);
}

// Each piece packs the keys and values of its head.
TEST(QueryLineTest, SlicesOfWholeHeadsPackEachOnce) {
  AttentionOp op;
  op.qkv.rows = 512;
  int64_t pieces = 0;
  for (int64_t slice = 0; slice < 12; ++slice) {
    Range rows = PartOfLine({12, 512}, slice, 12);
    for (; rows.count > 0; ++pieces) TakePiece(&rows, &op);
  }
  EXPECT_EQ(pieces, 12);
}

TEST(QueryLineTest, HasNoMorePartsThanPieces) {
  EXPECT_EQ(MostQueryParts(1, 1, 512), 6);
  EXPECT_EQ(MostQueryParts(12, 1, 512), 64);
  EXPECT_EQ(MostQueryParts(12, 1, 10), 1);
  EXPECT_EQ(MostQueryParts(2, 3, 128), 8);
}

// Takes a piece of a sequence of 512 tokens.
void ExpectPiece(Range* rows, const Range& heads, const Range& queries) {
  AttentionOp op;
  op.qkv.rows = 512;
  TakePiece(rows, &op);
  EXPECT_EQ((Range{op.first_head, op.head_count}), heads);
  EXPECT_EQ((Range{op.first_query, op.query_count}), queries);
}

TEST(QueryPieceTest, TakesTheRestOfAHeadThenWholeOnesThenSome) {
  Range rows = {300, 512 - 300 + 2 * 512 + 96};
  ExpectPiece(&rows, {0, 1}, {300, 212});
  ExpectPiece(&rows, {1, 2}, {0, 512});
  ExpectPiece(&rows, {3, 1}, {0, 96});
  EXPECT_EQ(rows.count, 0);
}

TEST(QueryPieceTest, TakesTheMiddleOfAHead) {
  Range rows = {512 + 96, 192};
  ExpectPiece(&rows, {1, 1}, {96, 192});
  EXPECT_EQ(rows.count, 0);
}

}  // namespace
}  // namespace cpu
}  // namespace encoderd
