#include "models/tokens/token_embedding.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <vector>

namespace linserve {
namespace {

constexpr int64_t kTokens = 9;
constexpr int64_t kWidth = 21;

// The parameter is the type that the table is loaded in.
class TokenEmbeddingTest : public ::testing::TestWithParam<at::ScalarType> {
 protected:
  TokenEmbeddingTest() { table_.Declare(Scope(parameters_), kTokens, kWidth); }

  ParameterList parameters_;
  TokenEmbedding table_;
};

TEST_P(TokenEmbeddingTest, LooksRowsUpInF32) {
  at::Tensor& weight = parameters_.Slot("weight");
  weight = at::randn({kTokens, kWidth}).to(GetParam());
  const at::Tensor ids = at::tensor(std::vector<int64_t>{3, 0, 8, 3}).view({2, 2});
  EXPECT_TRUE(at::equal(table_(ids), weight.to(at::kFloat).index({ids})));
  EXPECT_EQ(table_.options().dtype(), at::kFloat);
  std::vector<float> row(kWidth);
  table_.Copy(8, row.data());
  EXPECT_TRUE(at::equal(at::tensor(row), weight[8].to(at::kFloat)));
}

INSTANTIATE_TEST_SUITE_P(Types, TokenEmbeddingTest, ::testing::Values(at::kFloat, at::kBFloat16));

TEST(TokenEmbedding, IsRoundedUnlessItSaysOtherwise) {
  for (const bool stays : {false, true}) {
    ParameterList parameters;
    TokenEmbedding table;
    if (stays) table.KeepAsLoaded();
    table.Declare(Scope(parameters), kTokens, kWidth);
    EXPECT_EQ(parameters.begin()->kept, stays ? Kept::kF32 : Kept::kRounded);
  }
}

}  // namespace
}  // namespace linserve
