#include "models/tokens/token_embedding.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <vector>

namespace linserve {
namespace {

constexpr int64_t kTokens = 9;
constexpr int64_t kWidth = 21;

class TokenEmbeddingTest : public ::testing::TestWithParam<DType> {
 protected:
  // Loads random rows into the table, for products of the parameter's type.
  at::Tensor Load(TokenEmbedding& table) {
    ParameterList parameters;
    table.Declare(Scope(parameters), kTokens, kWidth);
    at::Tensor rows = at::randn({kTokens, kWidth});
    parameters.Slot("weight") = rows;
    parameters.Prepare(GetParam());
    return rows;
  }
};

TEST_P(TokenEmbeddingTest, LooksRowsUpInF32) {
  TokenEmbedding table;
  const at::Tensor loaded = Load(table);
  const at::Tensor all =
      GetParam() == DType::kF32 ? loaded : loaded.to(at::kBFloat16).to(at::kFloat);
  const at::Tensor ids = at::tensor(std::vector<int64_t>{3, 0, 8, 3}).view({2, 2});
  const at::Tensor rows = table(ids);
  EXPECT_TRUE(at::equal(rows, all.index({ids})));
  EXPECT_EQ(table.options().dtype(), at::kFloat);
  std::vector<float> row(kWidth);
  table.Copy(8, row.data());
  EXPECT_TRUE(at::equal(at::tensor(row), all[8]));
}

TEST_P(TokenEmbeddingTest, StaysAsItWasLoadedWhereThatIsSaid) {
  TokenEmbedding table;
  table.KeepAsLoaded();
  const at::Tensor loaded = Load(table);
  EXPECT_TRUE(at::equal(table.weight(), loaded));
}

INSTANTIATE_TEST_SUITE_P(Types, TokenEmbeddingTest,
                         ::testing::Values(DType::kF32, DType::kBF16, DType::kI8));

}  // namespace
}  // namespace linserve
