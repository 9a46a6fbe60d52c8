#include "client/neighbours.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "client/table.h"

namespace linserve {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

TEST(NearestByCosine, FindsTheOtherVectorOfTheSmallestAngle) {
  const auto nearest = NearestByCosine({{1, 0}, {10, 1}, {0, 2}});
  ASSERT_TRUE(nearest[0] && nearest[1] && nearest[2]);
  EXPECT_EQ(nearest[0]->index, 1U);
  EXPECT_NEAR(nearest[0]->cosine, 10 / std::sqrt(101.0), 1e-12);
  EXPECT_EQ(nearest[1]->index, 0U);
  EXPECT_EQ(nearest[2]->index, 1U);
}

TEST(NearestByCosine, KnowsOppositeVectors) {
  const auto nearest = NearestByCosine({{1, 1}, {-2, -2}});
  EXPECT_NEAR(nearest[0]->cosine, -1, 1e-12);
}

TEST(NearestByCosine, LeavesOutWhatHasNoDirection) {
  const auto nearest = NearestByCosine({{1, 0}, {0, 0}, {}, {1, 2, 3}});
  for (const auto& neighbour : nearest) EXPECT_FALSE(neighbour.has_value());
}

TEST(NeighbourTable, HasOneRowALine) {
  std::vector<EmbeddedLine> lines(3);
  lines[0] = {"red", {}, 3, std::chrono::microseconds(1500), {1, 0, 0, 0, 0}};
  lines[1] = {"crimson", {}, 7, std::chrono::milliseconds(2), {1, 0.1F, 0, 0, 0}};
  lines[2] = {"broken", absl::InternalError("no"), 0, {}, {}};
  const std::string table = NeighbourTable(lines);
  EXPECT_THAT(table, HasSubstr("line  text     tokens   ms"));
  EXPECT_THAT(table, HasSubstr("   1  red           3  1.5    1.0000   0.0000   0.0000   0.0000"
                               "  0.9950  2: crimson\n"));
  EXPECT_THAT(table, HasSubstr("   3  broken                failed\n"));
}

TEST(Excerpt, CountsCharactersNotBytes) {
  EXPECT_EQ(Excerpt("übermäßig", 9), "übermäßig");
  EXPECT_EQ(Excerpt("übermäßig", 4), "übe…");
}

TEST(Excerpt, HidesWhatATerminalWouldObey) {
  EXPECT_EQ(Excerpt("a\tb\x1b[2J", 20), "a b [2J");
  EXPECT_EQ(Excerpt("a\xff\xc3z", 20), "a??z");
}

TEST(Table, AlignsColumnsToTheirWidestCell) {
  Table table({{"name", Align::kLeft}, {"n", Align::kRight}});
  table.Add({"ü", "100"});
  EXPECT_EQ(table.ToText(), "name    n\nü     100\n");
}

}  // namespace
}  // namespace linserve
