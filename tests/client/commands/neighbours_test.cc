#include "client/commands/neighbours.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "client/terminal/table.h"

namespace linserve {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

TEST(Nearest, GivesTheLargestCosinesFirst) {
  const auto nearest = Nearest(Unit({3, 4}), {Unit({-3, -4}), Unit({0, 7}), Unit({6, 8.1F})}, 2);
  ASSERT_EQ(nearest.size(), 2U);
  EXPECT_EQ(nearest[0].index, 2U);
  EXPECT_EQ(nearest[1].index, 1U);
  EXPECT_NEAR(nearest[1].cosine, 0.8, 1e-6);
  EXPECT_EQ(Nearest({1, 0}, {{0, 0}}, 5).size(), 1U);
}

TEST(Unit, LeavesZerosAsTheyAre) {
  EXPECT_THAT(Unit({0, 0}), ::testing::ElementsAre(0, 0));
  EXPECT_THAT(Unit({0, -5}), ::testing::ElementsAre(0, -1));
}

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
  lines[0] = {"1", "red", {}, 3, std::chrono::microseconds(1500), {1, 0, 0, 0, 0}};
  lines[1] = {"2", "crimson", {}, 7, std::chrono::milliseconds(2), {1, 0.1F, 0, 0, 0}};
  lines[2] = {"3", "broken", absl::InternalError("no"), 0, {}, {}};
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

TEST(Neighbours, AreNotThoseOfScores) {
  ModelDescription model;
  model.name = "m";
  EXPECT_TRUE(CheckGivesVectors(model, "search").ok());
  model.labels = {"fits"};
  EXPECT_THAT(std::string(CheckGivesVectors(model, "search").message()),
              ::testing::HasSubstr("model m gives scores and no vectors, which search compares"));
}

}  // namespace
}  // namespace linserve
