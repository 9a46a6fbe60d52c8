#include <cmath>
#include <limits>

#include "core/sequence/signature.h"
#include "support/test_files.h"
#include "support/test_tensors.h"

namespace linserve {
namespace {

// Makes a sequence that is right, for each test to make one fault in.
class ValidateTest : public testing::Test {
 protected:
  ValidateTest() {
    signature_.inputs = {
        {"x", InputKind::kFloat, {Axis::Ragged('n'), Axis::Fixed(2)}},
        {"ids", InputKind::kToken, {Axis::Ragged('n')}, true, 256},
        {"mask", InputKind::kMask, {Axis::Ragged('n')}, true},
        {"context", InputKind::kFloat, {Axis::Ragged('m'), Axis::Fixed(2)}, true},
    };
    signature_.outputs = {{"y", {Axis::Ragged('n'), Axis::Fixed(2)}},
                          {"image", {Axis::Fixed(3), Axis::Ragged('n')}},
                          {"score", {}}};
    item_.inputs["x"] = Zeros(DType::kF32, {3, 2});
  }

  static Tensor Zeros(DType dtype, Shape shape) {
    return Tensor::Allocate(dtype, std::move(shape)).first;
  }

  // Makes a tensor of a shape that no memory could hold.
  static Tensor Claim(DType dtype, Shape shape) {
    return Tensor(dtype, std::move(shape), nullptr, nullptr);
  }

  absl::Status Check() const { return Validate(signature_, item_); }
  absl::Status CheckWith(const std::string& name, const Tensor& tensor) const {
    Item item = item_;
    item.inputs[name] = tensor;
    return Validate(signature_, item);
  }

  Signature signature_;
  Item item_;
};

TEST_F(ValidateTest, AcceptsWhatTheSignatureAsksFor) {
  EXPECT_TRUE(Check().ok()) << Check();
  item_.inputs["ids"] = Tensor::FromInts({3}, {0, 255, 7});
  item_.inputs["mask"] = Zeros(DType::kBool, {3});
  item_.inputs["context"] = Zeros(DType::kF16, {5, 2});
  item_.options.outputs = {"y", "score"};
  EXPECT_TRUE(Check().ok()) << Check();
}

TEST_F(ValidateTest, RefusesAnUnknownInputAndListsTheKnown) {
  EXPECT_THAT(
      CheckWith("z", Zeros(DType::kF32, {1})),
      IsInvalid("input 'z': the model has no such input, expected one of 'x', 'ids', 'mask'"));
}

TEST_F(ValidateTest, RefusesAMissingInput) {
  item_.inputs.clear();
  EXPECT_THAT(Check(), IsInvalid("input 'x': it is missing, expected a tensor [n, 2]"));
}

TEST_F(ValidateTest, RefusesDTypesOfAnotherKind) {
  EXPECT_THAT(CheckWith("x", Zeros(DType::kI64, {3, 2})),
              IsInvalid("input 'x': dtype is I64, expected F16, BF16, F32 or F64"));
  EXPECT_THAT(CheckWith("ids", Zeros(DType::kF32, {3})),
              IsInvalid("input 'ids': dtype is F32, expected U8, I8, I16, I32 or I64"));
  EXPECT_THAT(CheckWith("ids", Zeros(DType::kBool, {3})), IsInvalid("dtype is BOOL"));
  EXPECT_THAT(CheckWith("mask", Zeros(DType::kF32, {3})),
              IsInvalid("input 'mask': dtype is F32, expected BOOL, or integers that are 0 or 1"));
}

TEST_F(ValidateTest, RefusesAnotherRank) {
  EXPECT_THAT(CheckWith("x", Zeros(DType::kF32, {1, 3, 2})),
              IsInvalid("input 'x': shape [1, 3, 2] has 3 axes, expected 2 as in [n, 2]"));
  EXPECT_THAT(CheckWith("x", Zeros(DType::kF32, {})), IsInvalid("shape [] has 0 axes"));
}

TEST_F(ValidateTest, RefusesAnotherWidth) {
  EXPECT_THAT(CheckWith("x", Zeros(DType::kF32, {3, 4})),
              IsInvalid("input 'x': shape [3, 4] has 4 along axis 1, expected 2 of [n, 2]"));
}

TEST_F(ValidateTest, RefusesLengthsThatDifferUnderOneLetter) {
  EXPECT_THAT(
      CheckWith("mask", Zeros(DType::kBool, {4})),
      IsInvalid(
          "input 'mask': shape [4] has 4 along axis 0, expected n of [n] to be 3 as in input 'x'"));
}

TEST_F(ValidateTest, RefusesAnEmptySequence) {
  EXPECT_THAT(CheckWith("x", Zeros(DType::kF32, {0, 2})),
              IsInvalid("input 'x': the sequence is empty: shape [0, 2] has 0 along axis 0, "
                        "expected n of [n, 2] to be at least 1"));
}

TEST_F(ValidateTest, RefusesShapesThatAreNegativeOrOverflow) {
  EXPECT_THAT(CheckWith("x", Claim(DType::kF32, {-1, 2})), IsInvalid("has -1 along axis 0"));
  EXPECT_THAT(CheckWith("x", Claim(DType::kF32, {int64_t{1} << 62, 2})),
              IsInvalid("is too large, expected fewer than 2^63 bytes"));
}

TEST_F(ValidateTest, RefusesSequencesLongerThanTheModelTakes) {
  signature_.limits = {{'n', 3, ""}, {'m', 4, ""}};
  EXPECT_TRUE(Check().ok());
  EXPECT_THAT(CheckWith("x", Zeros(DType::kF32, {4, 2})),
              IsInvalid("input 'x': the sequence is too long: n is 4, expected at most 3"));
  EXPECT_THAT(CheckWith("context", Zeros(DType::kF32, {5, 2})),
              IsInvalid("input 'context': the sequence is too long: m is 5, expected at most 4"));
}

TEST_F(ValidateTest, LiftsALimitForSequencesWithTheInputThatItNames) {
  signature_.limits = {{'n', 2, "context"}};
  EXPECT_THAT(Check(), IsInvalid("n is 3, expected at most 2 without input 'context'"));
  EXPECT_TRUE(CheckWith("context", Zeros(DType::kF32, {5, 2})).ok());
}

TEST_F(ValidateTest, RefusesTokensOutsideTheVocabulary) {
  EXPECT_THAT(CheckWith("ids", Tensor::FromInts({3}, {0, 256, 0})),
              IsInvalid("input 'ids': it holds 256 at position [1], expected 0 <= id < 256"));
  EXPECT_THAT(CheckWith("ids", Tensor::FromInts({3}, {0, 0, -1})),
              IsInvalid("it holds -1 at position [2]"));
  EXPECT_THAT(CheckWith("ids", Tensor::FromInts({3}, {int64_t{1} << 32, 0, 0})),
              IsInvalid("it holds 4294967296 at position [0]"));
  const auto narrow = Convert(Tensor::FromInts({3}, {0, -5, 0}), DType::kI8);
  EXPECT_THAT(CheckWith("ids", *narrow), IsInvalid("it holds -5 at position [1]"));
}

TEST_F(ValidateTest, HoldsAStandInToWhatTheMissingInputDemands) {
  signature_.inputs.push_back({"target", InputKind::kToken, {Axis::Ragged('n')}, true, 10});
  signature_.inputs.back().stand_in = "ids";
  item_.inputs["ids"] = Tensor::FromInts({3}, {0, 9, 10});
  EXPECT_THAT(Check(), IsInvalid("input 'ids': it holds 10 at position [2], expected 0 <= id < 10 "
                                 "without input 'target'"));
  item_.inputs["target"] = Tensor::FromInts({3}, {0, 9, 9});
  EXPECT_TRUE(Check().ok()) << Check();
  item_.inputs.erase("ids");
  EXPECT_TRUE(Check().ok()) << Check();
}

TEST_F(ValidateTest, FindsTokensBeyondTheFirstBlock) {
  std::vector<int64_t> ids(5000, 1);
  ids[4999] = 300;
  signature_.inputs.erase(signature_.inputs.begin());
  item_.inputs = {{"ids", Tensor::FromInts({5000}, ids)}};
  EXPECT_THAT(Check(), IsInvalid("it holds 300 at position [4999]"));
}

TEST_F(ValidateTest, RefusesMaskBytesThatAreNoTruth) {
  auto [mask, bytes] = Tensor::Allocate(DType::kBool, {3});
  bytes[0] = std::byte{1};
  EXPECT_TRUE(CheckWith("mask", mask).ok());
  bytes[2] = std::byte{255};
  EXPECT_THAT(CheckWith("mask", mask),
              IsInvalid("input 'mask': it holds 255 at position [2], expected 0 or 1"));
}

TEST_F(ValidateTest, TakesMasksOfIntegersThatAreTruths) {
  for (const DType dtype : {DType::kU8, DType::kI32, DType::kI64}) {
    EXPECT_TRUE(CheckWith("mask", Zeros(dtype, {3})).ok()) << Name(dtype);
  }
  EXPECT_THAT(CheckWith("mask", Tensor::FromInts({3}, {1, 0, -1})),
              IsInvalid("input 'mask': it holds -1 at position [2], expected 0 or 1"));
}

TEST_F(ValidateTest, RefusesNanAndInfOfEveryFloatType) {
  const Tensor nan = Tensor::FromFloats({3, 2}, {0, 0, 0, std::nanf(""), 0, 0});
  const Tensor inf = Tensor::FromFloats({3, 2}, {0, 0, 0, 0, 0, -kInfinity});
  const Tensor largest = Tensor::FromFloats({3, 2}, {65504, -65504, 1, -1, 0, 0x1p-24f});
  for (DType dtype : {DType::kF16, DType::kBF16, DType::kF32, DType::kF64}) {
    EXPECT_THAT(CheckWith("x", *Convert(nan, dtype)),
                IsInvalid("input 'x': it holds NaN at position [1, 1], expected numbers"));
    EXPECT_THAT(CheckWith("x", *Convert(inf, dtype)),
                IsInvalid("it holds -Inf at position [2, 1]"));
    EXPECT_TRUE(CheckWith("x", *Convert(largest, dtype)).ok()) << Name(dtype);
  }
}

TEST_F(ValidateTest, RefusesF64ThatWouldBecomeInfInF32) {
  auto [tensor, bytes] = Tensor::Allocate(DType::kF64, {3, 2});
  double value = std::numeric_limits<float>::max();
  std::memcpy(bytes, &value, sizeof(value));
  EXPECT_TRUE(CheckWith("x", tensor).ok());
  value = 0x1.ffffffp127;
  std::memcpy(bytes, &value, sizeof(value));
  EXPECT_THAT(CheckWith("x", tensor), IsInvalid("it holds Inf at position [0, 0]"));
  value = std::nextafter(value, 0.0);
  std::memcpy(bytes, &value, sizeof(value));
  EXPECT_TRUE(CheckWith("x", tensor).ok());
}

TEST_F(ValidateTest, FindsNanBeyondTheFirstBlockInUnalignedBytes) {
  const auto bytes = std::make_shared<std::vector<std::byte>>(2 * 3000 * 4 + 1);
  const float nan = std::nanf("");
  std::memcpy(bytes->data() + 1 + 4 * 5999, &nan, sizeof(nan));
  EXPECT_THAT(CheckWith("x", Tensor(DType::kF32, {3000, 2}, bytes->data() + 1, bytes)),
              IsInvalid("it holds NaN at position [2999, 1]"));
}

TEST_F(ValidateTest, AcceptsNanWhereTheModelDoes) {
  signature_.allow_nonfinite = true;
  EXPECT_TRUE(CheckWith("x", Tensor::FromFloats({1, 2}, {std::nanf(""), kInfinity})).ok());
}

TEST_F(ValidateTest, RefusesAnUnknownOutputAndListsTheKnown) {
  item_.options.outputs = {"y", "z"};
  EXPECT_THAT(Check(), IsInvalid("output 'z': the model has no such output, expected one of 'y', "
                                 "'image', 'score'"));
}

TEST_F(ValidateTest, RefusesOutputsThatAreAskedForMoreThanOnce) {
  item_.options.outputs = {"y", "score", "y"};
  EXPECT_THAT(Check(), IsInvalid("output 'y': it is asked for more than once"));
  item_.options.outputs.assign(1000000, "y");
  EXPECT_THAT(Check(), IsInvalid("1000000 outputs are asked for, expected each once of 'y', "));
}

TEST(OutputCounts, AreBoundedByTheSignature) {
  Signature signature;
  signature.outputs = {{"y", {}}, {"z", {}}};
  EXPECT_TRUE(CheckOutputCount(signature, 0).ok());
  EXPECT_TRUE(CheckOutputCount(signature, 5).ok());  // both with their scales, and the tokens
  EXPECT_THAT(CheckOutputCount(signature, 6),
              IsInvalid("6 outputs are asked for, expected each once of 'y', 'z'"));
}

TEST_F(ValidateTest, RefusesToPoolWhatHasNoRows) {
  item_.options.pooling = Pooling::kMean;
  EXPECT_TRUE(Check().ok());
  item_.options.outputs = {"y", "image"};
  EXPECT_THAT(Check(), IsInvalid("output 'image': it is [3, n], expected rows to pool"));
  item_.options.outputs = {"score"};
  EXPECT_THAT(Check(), IsInvalid("output 'score': it is [], expected rows to pool"));
  signature_.outputs.erase(signature_.outputs.begin());
  item_.options.outputs.clear();
  EXPECT_THAT(Check(), IsInvalid("output 'image'"));
}

TEST_F(ValidateTest, AVectorIsWhatItsPoolingGivesAndNeedsARowThatIsThere) {
  signature_.outputs = {{.name = "vector", .axes = {Axis::Fixed(4)}, .mask = "mask"}};
  item_.inputs["mask"] = Zeros(DType::kBool, {3});
  for (const Pooling pooling : {Pooling::kNone, Pooling::kMean}) {
    item_.options.pooling = pooling;
    EXPECT_THAT(Check(), IsInvalid("it leaves no row of output 'vector' to pool"));
  }
  item_.inputs.erase("mask");
  EXPECT_TRUE(Check().ok()) << Check();
}

TEST_F(ValidateTest, RefusesOutputTypesThatAreNoFloats) {
  item_.options.dtype = DType::kI64;
  EXPECT_THAT(Check(), IsInvalid("output dtype: I64 is asked for, expected I8, F16"));
}

TEST_F(ValidateTest, ReadsNoElementBeforeAllShapesAreRight) {
  item_.inputs["context"] = Zeros(DType::kF32, {1, 3});
  EXPECT_THAT(CheckWith("x", Claim(DType::kF32, {1000, 2})), IsInvalid("input 'context'"));
}

}  // namespace
}  // namespace linserve
