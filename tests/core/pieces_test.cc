#include "core/pieces.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <numeric>
#include <thread>

#include "core/content.h"
#include "core/in_pieces.h"

namespace linserve {
namespace {

constexpr unsigned kSeeds = 50;

Tensor CountingFrom(DType dtype, const Shape& shape) {
  std::vector<int64_t> values(static_cast<size_t>(ElementCount(shape)));
  std::iota(values.begin(), values.end(), 1);
  const Tensor tensor = Tensor::FromInts(shape, values);
  if (!IsFloat(dtype)) return *Convert(tensor, dtype);
  return *Convert(Tensor::FromFloats(shape, {values.begin(), values.end()}), dtype);
}

std::string AllBytes(const Tensor& tensor) {
  return {reinterpret_cast<const char*>(tensor.bytes()), tensor.byte_size()};
}

std::string Copied(const Tensor& tensor) {
  std::string bytes(tensor.byte_size(), '\0');
  tensor.CopyTo(reinterpret_cast<std::byte*>(bytes.data()));
  return bytes;
}

class TensorOfEveryTypeInPieces : public testing::TestWithParam<DType> {};

TEST_P(TensorOfEveryTypeInPieces, HasTheBytesOfTheWholeHoweverItIsCut) {
  const Tensor whole = CountingFrom(GetParam(), {7, 5});
  for (unsigned seed = 0; seed < kSeeds; ++seed) {
    const Tensor cut = InPieces(whole, 1 + seed % 40, seed);
    ASSERT_TRUE(cut.in_pieces());
    EXPECT_EQ(Copied(cut), AllBytes(whole));
    EXPECT_EQ(AllBytes(cut), AllBytes(whole));
  }
}

TEST_P(TensorOfEveryTypeInPieces, HasRowsAndOtherShapesThatAreInPiecesToo) {
  const Tensor whole = CountingFrom(GetParam(), {7, 5});
  for (unsigned seed = 0; seed < kSeeds; ++seed) {
    const Tensor cut = InPieces(whole, 1 + seed % 40, seed);
    for (int64_t begin = 0; begin < 7; ++begin) {
      const int64_t count = (7 - begin) / 2;
      const Tensor rows = cut.Rows(begin, 7).Rows(0, count).Reshaped({5, count});
      EXPECT_TRUE(rows.in_pieces());
      EXPECT_EQ(Copied(rows), AllBytes(whole.Rows(begin, begin + count)));
    }
  }
}

TEST_P(TensorOfEveryTypeInPieces, ConvertsAsTheWholeDoes) {
  const Tensor whole = CountingFrom(GetParam(), {7, 5});
  std::vector<float> expected(35);
  ConvertToFloat(whole, expected.data());
  for (unsigned seed = 0; seed < kSeeds; ++seed) {
    std::vector<float> values(35);
    ConvertToFloat(InPieces(whole, 1 + seed % 40, seed), values.data());
    EXPECT_EQ(values, expected);
  }
}

INSTANTIATE_TEST_SUITE_P(Types, TensorOfEveryTypeInPieces,
                         testing::Values(DType::kU8, DType::kI16, DType::kBF16, DType::kF32,
                                         DType::kI64, DType::kF64),
                         [](const auto& tested) { return std::string(Name(tested.param)); });

TEST(TensorInOnePiece, ViewsIt) {
  const auto owner = std::make_shared<const std::string>("abcdefgh");
  const auto* bytes = reinterpret_cast<const std::byte*>(owner->data());
  const Tensor tensor(DType::kF32, {2},
                      std::make_shared<const Pieces>(std::vector<Piece>{{bytes, 8}}, owner));
  EXPECT_FALSE(tensor.in_pieces());
  EXPECT_EQ(tensor.bytes(), bytes);
}

TEST(TensorInPieces, IsJoinedOnceHoweverManyWantIt) {
  const Tensor whole = CountingFrom(DType::kF32, {1000});
  const Tensor cut = InPieces(whole, 100, 1);
  std::vector<const std::byte*> seen(4);
  std::vector<std::thread> threads;
  for (size_t i = 0; i < seen.size(); ++i) {
    threads.emplace_back([&, i] { seen[i] = Tensor(cut).bytes(); });
  }
  for (std::thread& thread : threads) thread.join();
  for (const std::byte* bytes : seen) EXPECT_EQ(bytes, seen[0]);
  EXPECT_EQ(AllBytes(cut), AllBytes(whole));
}

TEST(TensorInPieces, IsCheckedAsTheWholeIs) {
  std::vector<float> floats(3000, 1);
  floats[2222] = -std::numeric_limits<float>::infinity();
  floats[2345] = NAN;
  std::vector<int64_t> ids(3000, 9);
  ids[2111] = 10;
  for (unsigned seed = 0; seed < kSeeds; ++seed) {
    const Tensor x = InPieces(Tensor::FromFloats({30, 100}, floats), 1 + seed * 200, seed);
    EXPECT_EQ(FindNonfinite(x)->position, (Shape{22, 22}));
    EXPECT_EQ(FindNonfinite(x)->value, "-Inf");
    EXPECT_EQ(FindNoScore(x)->position, (Shape{23, 45}));
    EXPECT_FALSE(FindNonfinite(x.Rows(0, 22)));
    const Tensor tokens = InPieces(Tensor::FromInts({3000}, ids), 1 + seed * 200, seed);
    EXPECT_EQ(FindOutside(tokens, 10)->position, (Shape{2111}));
    EXPECT_FALSE(FindOutside(tokens, 11));
  }
}

}  // namespace
}  // namespace linserve
