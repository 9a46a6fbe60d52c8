#include "batching/gather.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>

namespace linserve {
namespace {

constexpr int64_t kWidth = 64;

const InputSpec kFloats{.name = "x", .axes = {Axis::Ragged('n'), Axis::Fixed(kWidth)}};

Item ItemOf(int64_t length) {
  std::vector<float> values(static_cast<size_t>(length * kWidth));
  for (size_t i = 0; i < values.size(); ++i) {
    values[i] = std::sin(static_cast<float>(i * i % 9973)) * static_cast<float>(length);
  }
  Item item;
  item.inputs["x"] = Tensor::FromFloats({length, kWidth}, values);
  return item;
}

// Makes room in this type where floats are asked for.
TensorAllocator Giving(DType given) {
  return [given](DType dtype, const Shape& shape) {
    return Tensor::AllocateUnfilled(dtype == DType::kF32 ? given : dtype, shape);
  };
}

// Some lengths are so large that several threads copy.
TEST(Gather, GivesEachSequencesRowsInTheTypeThatThereIsRoomFor) {
  for (const DType dtype : {DType::kF32, DType::kBF16, DType::kF16}) {
    std::vector<Item> items;
    AxisLayout layout;
    for (const int64_t length : {3, 20000, 1, 30011, 128}) {
      items.push_back(ItemOf(length));
      layout.starts.push_back(layout.rows);
      layout.lengths.push_back(length);
      layout.rows += length;
    }
    std::vector<const Item*> pointers;
    for (const Item& item : items) pointers.push_back(&item);
    const Tensor batch = Gather(kFloats, layout, pointers, Giving(dtype));
    ASSERT_EQ(batch.dtype(), dtype);
    ASSERT_EQ(batch.shape(), (Shape{layout.rows, kWidth}));
    for (size_t i = 0; i < items.size(); ++i) {
      const Tensor expected = *Convert(items[i].inputs.at("x"), dtype);
      const Tensor rows = batch.Rows(layout.starts[i], layout.starts[i] + layout.lengths[i]);
      EXPECT_EQ(std::memcmp(rows.bytes(), expected.bytes(), expected.byte_size()), 0) << i;
    }
  }
}

TEST(Gather, GivesTokenIdsInTheTypeThatThereIsRoomFor) {
  const InputSpec tokens{
      .name = "x", .kind = InputKind::kToken, .axes = {Axis::Ragged('n')}, .vocabulary = 1 << 30};
  std::vector<int64_t> ids(3000);
  for (size_t i = 0; i < ids.size(); ++i) ids[i] = static_cast<int64_t>(i * i * 7919 % (1 << 30));
  auto [narrow, bytes] = Tensor::Allocate(DType::kI32, {std::ssize(ids)});
  std::copy(ids.begin(), ids.end(), reinterpret_cast<int32_t*>(bytes));
  for (const Tensor& given : {Tensor::FromInts({std::ssize(ids)}, ids), narrow}) {
    Item item;
    item.inputs["x"] = given;
    AxisLayout layout;
    layout.starts = {0};
    layout.lengths = {std::ssize(ids)};
    layout.rows = std::ssize(ids);
    const Tensor batch = Gather(tokens, layout, {&item}, [](DType, const Shape& shape) {
      return Tensor::AllocateUnfilled(DType::kI32, shape);
    });
    std::vector<int64_t> gathered(ids.size());
    ConvertToInt64(DType::kI32, batch.bytes(), batch.elements(), gathered.data());
    EXPECT_EQ(gathered, ids);
  }
}

TEST(Gather, HidesWhatAMaskHidesInSixteenBitsToo) {
  const InputSpec mask{.name = "mask",
                       .kind = InputKind::kAttentionMask,
                       .axes = {Axis::Ragged('n'), Axis::Fixed(2)}};
  auto [hidden, bytes] = Tensor::Allocate(DType::kBool, {2, 2});
  bytes[1] = std::byte{1};
  Item item;
  item.inputs["mask"] = hidden;
  const AxisLayout layout{.starts = {0}, .lengths = {2}, .rows = 2};
  const Tensor scores = *Convert(Gather(mask, layout, {&item}, Giving(DType::kBF16)), DType::kF32);
  for (int64_t i = 0; i < 4; ++i) {
    EXPECT_EQ(scores.data<float>()[i], i == 1 ? -INFINITY : 0.0F) << i;
  }
}

TEST(Gather, MakesTruthsOfMasksOfIntegers) {
  const InputSpec mask{.name = "mask", .kind = InputKind::kMask, .axes = {Axis::Ragged('n')}};
  Item integers;
  Item truths;
  integers.inputs["mask"] = Tensor::FromInts({3}, {1, 0, 1});
  truths.inputs["mask"] = *Convert(integers.inputs["mask"], DType::kBool);
  const AxisLayout layout{.starts = {0, 3}, .lengths = {3, 3}, .rows = 6};
  const Tensor gathered = Gather(mask, layout, {&integers, &truths}, Giving(DType::kF32));
  ASSERT_EQ(gathered.dtype(), DType::kBool);
  for (int64_t i = 0; i < 6; ++i) EXPECT_EQ(gathered.bytes()[i] != std::byte{0}, i % 3 != 1) << i;
}

}  // namespace
}  // namespace linserve
