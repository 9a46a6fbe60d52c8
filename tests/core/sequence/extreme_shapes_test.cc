#include <limits>
#include <random>

#include "core/sequence/package_layout.h"
#include "core/sequence/signature.h"
#include "support/test_files.h"

namespace linserve {
namespace {

constexpr int64_t kMost = std::numeric_limits<int64_t>::max();
constexpr int kShapes = 20000;

// Draws shapes of the numbers that overflow: zeros, ones, powers of two and the ends of int64.
class ExtremeShapes : public testing::Test {
 protected:
  ExtremeShapes() : seed_(std::random_device()()), random_(seed_) {
    RecordProperty("seed", std::to_string(seed_));
  }
  ~ExtremeShapes() override {
    if (HasFailure()) std::printf("seed %u\n", seed_);
  }

  Shape Draw(size_t most_axes) {
    Shape shape(random_() % (most_axes + 1));
    for (int64_t& size : shape) size = DrawSize();
    return shape;
  }

  int64_t DrawSize() {
    switch (random_() % 6) {
      case 0:
        return 0;
      case 1:
        return static_cast<int64_t>(random_() % 4);
      case 2:
        return int64_t{1} << (random_() % 63);
      case 3:
        return kMost - static_cast<int64_t>(random_() % 3);
      case 4:
        return -static_cast<int64_t>(random_() % 3) - (random_() % 2 == 0 ? 0 : kMost - 3);
      default:
        return static_cast<int64_t>(random_());
    }
  }

  // Returns a tensor as a message claims it: its elements are there only if they take no memory.
  static Tensor Claim(DType dtype, const Shape& shape) {
    return Tensor(dtype, shape, nullptr, nullptr);
  }

  const unsigned seed_;
  std::mt19937_64 random_;
};

// Counts the elements without a bound; nullopt past 2^63, with zeros left out.
std::optional<int64_t> Counted(const Shape& shape) {
  __extension__ using Wide = unsigned __int128;
  Wide product = 1;
  bool empty = false;
  for (const int64_t size : shape) {
    if (size < 0) return std::nullopt;
    empty = empty || size == 0;
    if (size > 0 && product <= static_cast<Wide>(kMost)) product *= static_cast<Wide>(size);
  }
  if (product > static_cast<Wide>(kMost)) return std::nullopt;
  return empty ? 0 : static_cast<int64_t>(product);
}

TEST_F(ExtremeShapes, AreCountedOrRefused) {
  for (int i = 0; i < kShapes; ++i) {
    const Shape shape = Draw(6);
    const auto expected = Counted(shape);
    ASSERT_EQ(CheckedElementCount(shape), expected) << ToString(shape);
    if (expected) {
      ASSERT_EQ(ElementCount(shape), *expected) << ToString(shape);
    }
    const auto bytes = CheckedByteSize(DType::kF64, shape);
    ASSERT_EQ(bytes.has_value(), expected && *expected <= kMost / 8) << ToString(shape);
    if (bytes) {
      ASSERT_EQ(*bytes, 8 * *expected) << ToString(shape);
    }
  }
}

TEST_F(ExtremeShapes, AreAllocatedOnlyWhereTheirBytesCanBeCounted) {
  for (int i = 0; i < kShapes / 10; ++i) {
    const Shape shape = Draw(4);
    const auto bytes = CheckedByteSize(DType::kF32, shape);
    if (bytes && *bytes > 0) continue;  // how much memory there is, is another question
    if (bytes) {
      EXPECT_EQ(Tensor::Allocate(DType::kF32, shape).first.byte_size(), 0u) << ToString(shape);
    } else {
      EXPECT_THROW(Tensor::Allocate(DType::kF32, shape), std::bad_alloc) << ToString(shape);
    }
  }
}

// Takes a picture, a text and a mask of both.
Signature Pictures() {
  Signature signature;
  signature.inputs = {
      {"x", InputKind::kFloat, {Axis::Fixed(3), Axis::Ragged('h'), Axis::Ragged('w')}},
      {"ids", InputKind::kToken, {Axis::Ragged('n')}, true, 100},
      {"rows", InputKind::kFloat, {Axis::Ragged('m'), Axis::Fixed(2)}, true},
  };
  signature.inputs[2].batch_axis = BatchAxis::kSecond;
  signature.inputs[0].folds = true;
  signature.outputs = {{"y", {Axis::Fixed(2)}}};
  return signature;
}

// Whatever the shapes of tensors without bytes, they are refused; and nothing is as long as what
// they claim, which is what this test's own time shows.
TEST_F(ExtremeShapes, OfTensorsWithoutBytesAreRefused) {
  const Signature signature = Pictures();
  for (int i = 0; i < kShapes; ++i) {
    Item item;
    for (const InputSpec& spec : signature.inputs) {
      if (random_() % 2 == 0) continue;
      const DType dtype = spec.kind == InputKind::kToken ? DType::kI64 : DType::kF32;
      const Shape shape = Draw(5);
      // The door of each protocol lets in no others: the bytes are as many as the shape says.
      if (CheckedByteSize(dtype, shape) == 0) item.inputs[spec.name] = Claim(dtype, shape);
    }
    FoldAxes(signature, item);
    ASSERT_FALSE(Validate(signature, item).ok());
    for (const auto& [name, tensor] : item.inputs) ASSERT_EQ(tensor.elements(), 0);
    const auto count = CountSequences(signature, item.inputs);
    if (count.ok()) {
      ASSERT_EQ(*count, 0);
    }
    PackageBatch batch;
    batch.inputs = item.inputs;
    const auto items = SplitBatch(signature, batch);
    if (items.ok()) {
      ASSERT_EQ(items->size(), 0u);
    }
    batch.PaddedLengths(signature);
  }
}

TEST_F(ExtremeShapes, WithEmptyRowsAreCutAtOnce) {
  Signature signature;
  signature.inputs = {{"x", InputKind::kFloat, {Axis::Ragged('n'), Axis::Fixed(2)}},
                      {"rows", InputKind::kFloat, {Axis::Ragged('m'), Axis::Fixed(2)}}};
  signature.inputs[1].batch_axis = BatchAxis::kSecond;
  PackageBatch batch;
  batch.inputs["x"] = Tensor::FromFloats({1, 1, 2}, {1, 2});
  batch.inputs["rows"] = Claim(DType::kF32, {int64_t{1} << 62, 1, 0});
  const auto items = SplitBatch(signature, batch);
  ASSERT_TRUE(items.ok()) << items.status();
  EXPECT_THAT(Validate(signature, items->at(0)), IsInvalid("expected 2 of [m, 2]"));
}

TEST(Rows, OfLengthsWhoseProductOverflowsAreBounded) {
  Signature signature;
  Item item;
  for (const char letter : {'a', 'b', 'c', 'd'}) {
    const std::string name(1, letter);
    signature.inputs.push_back({name, InputKind::kFloat, {Axis::Fixed(1), Axis::Ragged(letter)}});
    item.inputs[name] = Tensor(DType::kF32, {1, int64_t{1} << 20}, nullptr, nullptr);
  }
  EXPECT_EQ(PackedRows(signature, item), kMostRows);
  item.inputs.erase("c");
  item.inputs.erase("d");
  EXPECT_EQ(PackedRows(signature, item), int64_t{1} << 40);
}

}  // namespace
}  // namespace linserve
