#include "attention/rows/slices.h"

#include <gmock/gmock.h>

#include <stdexcept>
#include <utility>
#include <vector>

#include "core/threads/side_by_side.h"

namespace linserve {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::Pair;
using Slices = std::vector<std::pair<int64_t, int64_t>>;

Slices SlicesOf(int64_t rows) {
  Slices slices;
  ForSlices(rows, [&](int64_t begin, int64_t count) { slices.emplace_back(begin, count); });
  return slices;
}

TEST(Slices, AreOneWithoutAScope) { EXPECT_THAT(SlicesOf(1000), ElementsAre(Pair(0, 1000))); }

TEST(Slices, HoldSoManyRowsAndTellThemBetween) {
  std::vector<int64_t> told;
  const SliceScope scope(400, [&](int64_t rows) { told.push_back(rows); });
  EXPECT_THAT(SlicesOf(1000), ElementsAre(Pair(0, 400), Pair(400, 400), Pair(800, 200)));
  EXPECT_THAT(told, ElementsAre(400, 400));
  // What was read fills a slice, too, and is not done.
  RowsRead(150);
  EXPECT_THAT(told, ElementsAre(400, 400));
  RowsRead(50);
  EXPECT_THAT(told, ElementsAre(400, 400, 200));
}

TEST(Slices, OfWhatIsComputedMeanwhileAreNotTheirs) {
  std::vector<int64_t> outer;
  std::vector<int64_t> inner;
  const SliceScope scope(100, [&](int64_t rows) {
    outer.push_back(rows);
    EXPECT_THAT(SlicesOf(1000), ElementsAre(Pair(0, 1000)));
    const SliceScope another(1, [&](int64_t more) { inner.push_back(more); });
    RowsDone(7);
  });
  EXPECT_THAT(SlicesOf(200), ElementsAre(Pair(0, 100), Pair(100, 100)));
  EXPECT_THAT(outer, ElementsAre(100, 100));
  EXPECT_THAT(inner, ElementsAre(7, 7));
}

TEST(Slices, GoOnAfterTheirScopeWasLeftByAnException) {
  const SliceScope outer(10, [](int64_t) {});
  {
    const SliceScope scope(100, [](int64_t) { throw std::runtime_error("given up"); });
    EXPECT_THROW(SlicesOf(300), std::runtime_error);
    EXPECT_THROW(SlicesOf(300), std::runtime_error);
  }
  EXPECT_THAT(SlicesOf(20), ElementsAre(Pair(0, 10), Pair(10, 10)));
}

TEST(Slices, AreNotCutWhereThreadsComputeSideBySide) {
  std::vector<int64_t> told;
  const SliceScope scope(10, [&](int64_t rows) { told.push_back(rows); });
  SideBySide(/*count=*/2, /*threads=*/2,
             [](LoopTurns&) { EXPECT_THAT(SlicesOf(100), ElementsAre(Pair(0, 100))); });
  EXPECT_THAT(told, IsEmpty());
}

}  // namespace
}  // namespace linserve
