#include "models/network/layers.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "attention/products/bf16_product.h"

namespace linserve {
namespace {

TEST(Linear, OfLogitsIsPackedInBf16WhereProductsAreRounded) {
  for (const DType products : {DType::kF32, DType::kBF16, DType::kI8}) {
    SCOPED_TRACE(Name(products));
    const bool rounds = products != DType::kF32 && HasBf16Kernels();
    Linear logits(33, 70);
    ParameterList parameters;
    logits.DeclareLogits(Scope(parameters));
    const at::Tensor weight = at::randn({70, 33});
    const at::Tensor bias = at::randn({70});
    parameters.Slot("weight") = rounds ? weight.to(at::kBFloat16) : weight;
    parameters.Slot("bias") = bias;
    parameters.Load(products, [](const Parameter&) {});
    EXPECT_EQ(static_cast<bool>(logits.packed), rounds);
    const at::Tensor rows = at::randn({5, 33});
    const at::Tensor bound = at::linear(rows.abs(), weight.abs()) / (rounds ? 128 : 1e6) + 1e-6;
    const at::Tensor difference = (logits(rows) - at::linear(rows, weight, bias)).abs();
    EXPECT_TRUE((difference <= bound).all().item<bool>());
  }
}

}  // namespace
}  // namespace linserve
