// These tests are of what all attention methods have in common.
#include <gtest/gtest.h>

#include <string>

#include "attention/linear/efficient_attention.h"
#include "attention/linear/kernel_attention.h"
#include "attention/linear/taylor_attention.h"
#include "attention/linformer/softmax_attention.h"
#include "attention/naive_attention.h"
#include "attention/rows/aten.h"

namespace linserve {
namespace {

struct Method {
  const char* name;
  AttentionFunction function;
  AttentionFunction naive;
  bool averages = true;  // the weights sum to one
};

at::Tensor Plain(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value,
                 const Visible& visible) {
  return KernelAttention(query, key, value, visible, /*normalize=*/false);
}

at::Tensor Normalized(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value,
                      const Visible& visible) {
  return KernelAttention(query, key, value, visible, /*normalize=*/true);
}

void PrintTo(const Method& method, std::ostream* out) { *out << method.name; }

class AttentionMethods : public testing::TestWithParam<Method> {
 protected:
  // Random rows of two sequences with three heads.
  static at::Tensor Random(int64_t rows, int64_t width) { return at::randn({2, 3, rows, width}); }

  void ExpectNaive(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value,
                   const Visible& visible) const {
    const at::Tensor expected = GetParam().naive(query, key, value, visible);
    const double scale = std::max(1.0, expected.abs().max().item<double>());
    const at::Tensor result = GetParam().function(query, key, value, visible);
    EXPECT_EQ(result.sizes(), expected.sizes());
    EXPECT_EQ(result.scalar_type(), query.scalar_type());
    EXPECT_LT(LargestDifference(result, expected) / scale, 1e-5);
  }
};

INSTANTIATE_TEST_SUITE_P(Each, AttentionMethods,
                         testing::Values(Method{"softmax", SoftmaxAttention, NaiveSoftmax},
                                         Method{"efficient", EfficientAttention, NaiveEfficient},
                                         Method{"kernel", Plain, NaiveKernel, false},
                                         Method{"kernel_normalized", Normalized,
                                                NaiveKernelNormalized},
                                         Method{"taylor", TaylorAttention, NaiveTaylor}),
                         [](const auto& method) { return std::string(method.param.name); });

constexpr int64_t kSizes[] = {1, 2, 3, 31, 32, 33, 64, 65, 100};

TEST_P(AttentionMethods, EqualTheirFormulaForAnyNumberOfQueriesAndKeys) {
  for (int64_t queries : {1, 33, 64}) {
    for (int64_t keys : kSizes) {
      SCOPED_TRACE(testing::Message() << queries << " queries, " << keys << " keys");
      ExpectNaive(Random(queries, 5), Random(keys, 5), Random(keys, 7), {});
    }
  }
}

TEST_P(AttentionMethods, EqualTheirFormulaWhenCausal) {
  for (int64_t length : kSizes) {
    SCOPED_TRACE(length);
    ExpectNaive(Random(length, 5), Random(length, 5), Random(length, 7), {.causal = true});
  }
}

TEST_P(AttentionMethods, EqualTheirFormulaUnderRandomMasks) {
  for (bool causal : {false, true}) {
    for (int64_t length : kSizes) {
      SCOPED_TRACE(testing::Message() << length << (causal ? ", causal" : ""));
      // Masks of their own for the two sequences, the same for their heads.
      const at::Tensor mask = at::rand({2, 1, length}).gt(0.4);
      ExpectNaive(Random(length, 6), Random(length, 6), Random(length, 4), {mask, causal});
    }
  }
}

TEST_P(AttentionMethods, EqualTheirFormulaInFloat64) {
  const at::Tensor query = at::randn({40, 5}, at::kDouble);
  const at::Tensor key = at::randn({40, 5}, at::kDouble);
  const at::Tensor value = at::randn({40, 3}, at::kDouble);
  for (bool causal : {false, true}) {
    EXPECT_LT(LargestDifference(GetParam().function(query, key, value, {.causal = causal}),
                                GetParam().naive(query, key, value, {.causal = causal})),
              1e-10);
  }
}

TEST_P(AttentionMethods, GiveLongSequencesTheRowsOfTheirFormula) {
  // These are more rows than are computed at once: some of the last ones are compared with the
  // formula.
  const int64_t length = 4500;
  const at::Tensor query = at::randn({length, 4});
  const at::Tensor key = at::randn({length, 4});
  const at::Tensor value = at::randn({length, 3});
  const at::Tensor all = GetParam().function(query, key, value, {});
  const at::Tensor causal = GetParam().function(query, key, value, {.causal = true});
  for (int64_t row : {int64_t{0}, int64_t{127}, int64_t{128}, int64_t{4096}, length - 1}) {
    const at::Tensor one = query.narrow(0, row, 1);
    const at::Tensor expected = GetParam().naive(one, key, value, {});
    const at::Tensor before =
        GetParam().naive(one, key.narrow(0, 0, row + 1), value.narrow(0, 0, row + 1), {});
    const double scale = std::max(1.0, expected.abs().max().item<double>());
    EXPECT_LT(LargestDifference(all.narrow(0, row, 1), expected) / scale, 1e-5) << row;
    EXPECT_LT(LargestDifference(causal.narrow(0, row, 1), before) / scale, 1e-5) << row;
  }
}

TEST_P(AttentionMethods, OfOneTokenAreItsValue) {
  if (!GetParam().averages) return;  // its one weight is anything
  for (bool causal : {false, true}) {
    const at::Tensor value = Random(1, 6);
    const at::Tensor result =
        GetParam().function(Random(1, 5), Random(1, 5), value, {.causal = causal});
    EXPECT_LT(LargestDifference(result, value), 2e-5);
  }
}

TEST_P(AttentionMethods, GiveZerosWhereNoKeyIsVisible) {
  const int64_t length = 5;
  const at::Tensor query = Random(length, 4);
  const at::Tensor key = Random(length, 4);
  const at::Tensor value = Random(length, 6);
  const at::Tensor nothing = at::zeros({2, 1, length}, at::kBool);
  for (bool causal : {false, true}) {
    EXPECT_EQ(LargestDifference(GetParam().function(query, key, value, {nothing, causal}),
                                at::zeros_like(value)),
              0);
  }
  // Causal, and the first two keys hidden: so only of the first two queries.
  const at::Tensor late = Mask({false, false, true, true, true});
  const at::Tensor result = GetParam().function(query, key, value, {late, true});
  EXPECT_EQ(result.narrow(-2, 0, 2).abs().max().item<float>(), 0);
  EXPECT_LT(LargestDifference(result, GetParam().naive(query, key, value, {late, true})), 1e-5);
}

TEST_P(AttentionMethods, HiddenKeysAreAsIfTheyWereNotThere) {
  const at::Tensor query = Random(9, 4);
  at::Tensor key = Random(9, 4);
  at::Tensor value = Random(9, 6);
  const at::Tensor mask = at::arange(9).lt(6);
  const at::Tensor expected =
      GetParam().function(query, key.narrow(-2, 0, 6), value.narrow(-2, 0, 6), {});
  key.narrow(-2, 6, 3).fill_(1e4);
  value.narrow(-2, 6, 3).fill_(-1e4);
  EXPECT_LT(LargestDifference(GetParam().function(query, key, value, {.mask = mask}), expected),
            1e-5);
}

TEST_P(AttentionMethods, AreFiniteForLargeValuesInEveryType) {
  for (at::ScalarType type : {at::kHalf, at::kBFloat16, at::kFloat}) {
    for (bool causal : {false, true}) {
      for (int64_t length : {1, 2, 150}) {
        const auto large = [&](int64_t width) { return (Random(length, width) * 1e4).to(type); };
        const at::Tensor value = large(6);
        const at::Tensor result =
            GetParam().function(large(8), large(8), value, {.causal = causal});
        EXPECT_TRUE(result.isfinite().all().item<bool>()) << toString(type) << " " << length;
        EXPECT_EQ(result.scalar_type(), type);
        if (!GetParam().averages || std::string(GetParam().name) == "taylor") continue;
        // The result is an average of values, and no larger than the largest.
        EXPECT_LE(result.abs().max().item<float>(), value.abs().max().item<float>() * 1.01F);
      }
    }
  }
}

TEST_P(AttentionMethods, AreCloseToTheirFormulaInBfloat16) {
  for (bool causal : {false, true}) {
    const at::Tensor query = Random(200, 16).to(at::kBFloat16);
    const at::Tensor key = Random(200, 16).to(at::kBFloat16);
    const at::Tensor value = Random(200, 16).to(at::kBFloat16);
    const at::Tensor expected = GetParam().naive(query, key, value, {.causal = causal});
    const at::Tensor result = GetParam().function(query, key, value, {.causal = causal});
    EXPECT_GT(at::cosine_similarity(result.to(at::kDouble), expected, -1).min().item<double>(),
              0.999);
  }
}

TEST_P(AttentionMethods, LeaveTheirArgumentsAsTheyWere) {
  const at::Tensor query = Random(70, 4);
  const at::Tensor key = Random(70, 4);
  const at::Tensor value = Random(70, 4);
  const at::Tensor mask = at::rand({2, 1, 70}).gt(0.5);
  const auto copies = {query.clone(), key.clone(), value.clone(), mask.clone()};
  for (bool causal : {false, true}) GetParam().function(query, key, value, {mask, causal});
  const at::Tensor* copy = copies.begin();
  for (const at::Tensor& argument : {query, key, value, mask}) {
    EXPECT_TRUE(at::equal(argument, *copy++));
  }
}

}  // namespace
}  // namespace linserve
