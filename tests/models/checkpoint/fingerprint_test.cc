#include "models/checkpoint/fingerprint.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace linserve {
namespace {

// Returns the fingerprint of a model whose only tensor has so many numbers, of which one part is
// not zero.
std::string FingerprintWith(int64_t elements, int64_t begin, int64_t count) {
  std::vector<float> values(static_cast<size_t>(elements));
  for (int64_t i = begin; i < begin + count; ++i) values[static_cast<size_t>(i)] = 1;
  return FingerprintOf({}, DType::kF32, {{"table", Tensor::FromFloats({elements}, values)}});
}

TEST(Fingerprint, TellsWhetherAPartOfALargeTensorIsAnother) {
  constexpr int64_t kElements = 1 << 21;
  const std::string before = FingerprintWith(kElements, 0, 0);
  EXPECT_EQ(FingerprintWith(kElements, 0, 0), before);
  EXPECT_NE(FingerprintWith(kElements, 0, 1), before);
  EXPECT_NE(FingerprintWith(kElements, kElements - 1, 1), before);
  constexpr int64_t kPart = kElements / 63;
  for (int64_t begin = 0; begin + kPart <= kElements; begin += 5 * kPart) {
    EXPECT_NE(FingerprintWith(kElements, begin, kPart), before) << begin;
  }
}

TEST(Fingerprint, TellsWhetherANumberOfASmallTensorIsAnother) {
  constexpr int64_t kElements = 1 << 16;
  EXPECT_NE(FingerprintWith(kElements, kElements / 2 + 7, 1), FingerprintWith(kElements, 0, 0));
}

TEST(Fingerprint, TellsTensorsOfAnotherTypeApart) {
  const Tensor tensor = Tensor::FromInts({2}, {1, 2});
  EXPECT_NE(FingerprintOf({}, DType::kF32, {{"table", tensor}}),
            FingerprintOf({}, DType::kF32, {{"table", tensor.As(DType::kF64, {2})}}));
}

}  // namespace
}  // namespace linserve
