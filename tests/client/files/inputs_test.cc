#include "client/files/inputs.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <fstream>
#include <string>
#include <vector>

#include "core/files/npy.h"
#include "core/files/safetensors.h"
#include "support/test_files.h"

namespace linserve {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::vector<int64_t> Ids(const InputSequence& sequence) {
  const Tensor& x = sequence.inputs.at("x");
  std::vector<int64_t> ids(static_cast<size_t>(x.elements()));
  ConvertToInt64(x.dtype(), x.bytes(), x.elements(), ids.data());
  return ids;
}

InputOptions Limited(int64_t longest, int64_t vocabulary) {
  InputOptions options;
  options.limits.longest = longest;
  options.limits.vocabulary = vocabulary;
  return options;
}

TEST(InputFormat, FollowsFromTheExtension) {
  EXPECT_EQ(InputFormatOfPath("a.npy"), InputFormat::kNpy);
  EXPECT_EQ(InputFormatOfPath("a.safetensors"), InputFormat::kSafetensors);
  EXPECT_EQ(InputFormatOfPath("a.jsonl"), InputFormat::kIds);
  EXPECT_EQ(InputFormatOfPath("a.txt"), InputFormat::kText);
  EXPECT_EQ(InputFormatOfPath("-"), InputFormat::kText);
}

TEST(TextLines, AreTheirBytes) {
  const auto sequences = ParseTextLines("ab\r\n\n  \nü\nlast", {});
  ASSERT_EQ(sequences.size(), 3U);
  EXPECT_THAT(Ids(sequences[0]), ElementsAre('a', 'b'));
  EXPECT_EQ(sequences[0].id, "1");
  EXPECT_EQ(sequences[0].text, "ab");
  EXPECT_THAT(Ids(sequences[1]), ElementsAre(0xc3, 0xbc));
  EXPECT_EQ(sequences[1].id, "4");
  EXPECT_EQ(sequences[2].text, "last");
}

TEST(TextLines, AddTheOffsetToEveryByte) {
  InputOptions options;
  options.token_offset = 3;
  EXPECT_THAT(Ids(ParseTextLines("ab", options)[0]), ElementsAre('a' + 3, 'b' + 3));
}

TEST(TextLines, ThatAreTooLongNameTheLineAndLeaveTheRestAlone) {
  const auto sequences = ParseTextLines("ok\ntoo long\nfine", Limited(4, 256));
  ASSERT_EQ(sequences.size(), 3U);
  EXPECT_TRUE(sequences[0].status.ok());
  EXPECT_EQ(sequences[1].status,
            absl::InvalidArgumentError("line 2: 8 tokens, but the model takes at most 4; shorten "
                                       "it, or have it cut (embed --truncate)"));
  EXPECT_TRUE(sequences[2].status.ok());
}

TEST(TextLines, ThatAreTooLongCanBeCutOnEitherSide) {
  InputOptions options = Limited(4, 256);
  options.truncation = Truncation::kRight;
  EXPECT_THAT(Ids(ParseTextLines("too long", options)[0]), ElementsAre('t', 'o', 'o', ' '));
  options.truncation = Truncation::kLeft;
  EXPECT_THAT(Ids(ParseTextLines("too long", options)[0]), ElementsAre('l', 'o', 'n', 'g'));
}

TEST(TextLines, OutsideTheVocabularyNameTheToken) {
  const auto sequences = ParseTextLines("aé", Limited(0, 128));
  EXPECT_EQ(
      sequences[0].status,
      absl::InvalidArgumentError("line 1: token 1 is 195, but the model's vocabulary is [0, 128)"));
}

TEST(IdLines, AreArraysOrObjectsWithAnId) {
  const auto sequences =
      ParseIdLines("[1, 2]\n\n{\"id\": \"b\", \"x\": [3]}\n{\"x\": [4], \"id\": 7}", {});
  ASSERT_EQ(sequences.size(), 3U);
  EXPECT_EQ(sequences[0].id, "1");
  EXPECT_THAT(Ids(sequences[0]), ElementsAre(1, 2));
  EXPECT_EQ(sequences[1].id, "b");
  EXPECT_THAT(Ids(sequences[1]), ElementsAre(3));
  EXPECT_EQ(sequences[2].id, "7");
}

struct BadLine {
  const char* line;
  const char* message;
};

class BadIdLines : public ::testing::TestWithParam<BadLine> {};

TEST_P(BadIdLines, SayWhatIsWrongAndLeaveTheRestAlone) {
  const auto sequences = ParseIdLines(std::string(GetParam().line) + "\n[1]", Limited(4, 100));
  ASSERT_EQ(sequences.size(), 2U);
  EXPECT_EQ(sequences[0].status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(sequences[0].status.ToString(), HasSubstr("line 1: "));
  EXPECT_THAT(sequences[0].status.ToString(), HasSubstr(GetParam().message));
  EXPECT_TRUE(sequences[0].inputs.empty());
  EXPECT_TRUE(sequences[1].status.ok());
}

INSTANTIATE_TEST_SUITE_P(
    , BadIdLines,
    ::testing::Values(
        BadLine{"[1, 2", "not JSON"}, BadLine{"\"text\"", "the model takes token ids"},
        BadLine{"[]", "at least one token"}, BadLine{"[1, 2.5]", "token 1 is '2.5', expected an"},
        BadLine{"[1, \"a\"]", "token 1 is '\"a\"', expected an integer"},
        BadLine{"[18446744073709551615]", "expected an integer"},
        BadLine{"[-1]", "token 0 is -1, but the model's vocabulary is [0, 100)"},
        BadLine{"[5, 100]", "token 1 is 100, but the model's vocabulary is [0, 100)"},
        BadLine{"[1, 2, 3, 4, 5]", "5 tokens, but the model takes at most 4"},
        BadLine{"{\"id\": \"a\"}", "expected one of the keys"},
        BadLine{"{\"x\": [1], \"y\": 2}", "unknown key 'y'"},
        BadLine{"{\"x\": [1], \"id\": null}", "\"id\" must be a string or an integer"}));

TEST(IdLines, MayBeTextsForAModelWithATokenizer) {
  InputOptions options;
  const std::string lines = "{\"id\": \"b\", \"text\": \"two\\nlines\"}\n\"one\"\n{\"id\": 1}";
  EXPECT_THAT(std::string(ParseIdLines(lines, options)[0].status.message()),
              HasSubstr("the model takes token ids"));
  options.texts = true;
  const auto sequences = ParseIdLines(lines, options);
  EXPECT_EQ(sequences[0].id, "b");
  EXPECT_EQ(sequences[0].text, "two\nlines");
  EXPECT_TRUE(sequences[0].status.ok()) << sequences[0].status;
  EXPECT_EQ(sequences[1].text, "one");
  EXPECT_THAT(std::string(sequences[2].status.message()), HasSubstr("expected one of the keys"));
}

TEST(Arrays, OfTheModelsRankAreOneSequence) {
  InputLimits limits;
  limits.rank = 2;
  const auto sequences = SplitArray(Tensor::FromFloats({2, 3}, {1, 2, 3, 4, 5, 6}), limits, "f");
  ASSERT_TRUE(sequences.ok());
  ASSERT_EQ(sequences->size(), 1U);
  EXPECT_EQ(sequences->at(0).inputs.at("x").shape(), (Shape{2, 3}));
}

TEST(Arrays, OfOneAxisMoreAreManySequences) {
  const auto sequences = SplitArray(Tensor::FromInts({2, 3}, {1, 2, 3, 4, 5, 6}), {}, "f");
  ASSERT_TRUE(sequences.ok());
  ASSERT_EQ(sequences->size(), 2U);
  EXPECT_EQ(sequences->at(1).id, "1");
  EXPECT_THAT(Ids(sequences->at(1)), ElementsAre(4, 5, 6));
}

TEST(Arrays, OfEmptySequencesAreRefusedHoweverManyTheyAre) {
  InputLimits limits;
  limits.rank = 2;
  for (const Shape& shape :
       std::vector<Shape>{{int64_t{1} << 62, 0, 3}, {INT64_MAX, 3, 0}, {1, 0, 3}}) {
    const Tensor array(DType::kF32, shape, nullptr, nullptr);
    EXPECT_THAT(SplitArray(array, limits, "f").status().ToString(),
                HasSubstr("has empty sequences"));
  }
  EXPECT_TRUE(SplitArray(Tensor(DType::kF32, {0, 5, 3}, nullptr, nullptr), limits, "f")->empty());
}

TEST(Arrays, OfAnyOtherRankAreRefused) {
  const auto sequences = SplitArray(Tensor::FromInts({1, 1, 1}, {1}), {}, "f.npy");
  EXPECT_EQ(sequences.status(),
            absl::InvalidArgumentError("f.npy: an array of shape [1, 1, 1], expected 1 axes for "
                                       "one sequence or 2 for many"));
}

TEST(Tensors, AreOneSequenceEach) {
  const auto sequences =
      SplitTensors({{"a", Tensor::FromInts({1}, {7})}, {"b", Tensor::FromInts({2}, {8, 9})}}, {},
                   "f.safetensors");
  ASSERT_TRUE(sequences.ok());
  ASSERT_EQ(sequences->size(), 2U);
  EXPECT_EQ(sequences->at(0).id, "a");
  EXPECT_THAT(Ids(sequences->at(1)), ElementsAre(8, 9));
}

// Returns the options for a model that takes x [n] ids and a context [m] of floats.
InputOptions Batched() {
  InputOptions options;
  options.batched = true;
  options.signature.inputs = {
      {.name = "x", .kind = InputKind::kToken, .axes = {Axis::Ragged('n')}, .vocabulary = 10},
      {.name = "context", .axes = {Axis::Ragged('m')}, .optional = true}};
  return options;
}

TEST(BatchedTensors, AreCutAlongTheBatchAxisAndToTheirLengths) {
  const auto sequences = SplitTensors({{"input.x", Tensor::FromInts({2, 3}, {1, 2, 3, 4, 5, 0})},
                                       {"input.context", Tensor::FromFloats({2, 1}, {0.5, 1.5})},
                                       {"input.lengths", Tensor::FromInts({2}, {3, 2})},
                                       {"output.y", Tensor::FromInts({1}, {1})}},
                                      Batched(), "f.safetensors");
  ASSERT_TRUE(sequences.ok()) << sequences.status();
  ASSERT_EQ(sequences->size(), 2U);
  EXPECT_THAT(Ids(sequences->at(0)), ElementsAre(1, 2, 3));
  EXPECT_THAT(Ids(sequences->at(1)), ElementsAre(4, 5));
  EXPECT_EQ(sequences->at(1).inputs.at("context").shape(), (Shape{1}));
  EXPECT_EQ(sequences->at(1).inputs.size(), 2U);
}

TEST(BatchedTensors, AreCutWhereThePackageHasItsBatch) {
  InputOptions options = Batched();
  options.signature.inputs[0].batch_axis = BatchAxis::kSecond;
  const auto sequences =
      SplitTensors({{"input.x", Tensor::FromInts({3, 2}, {1, 2, 3, 4, 5, 6})}}, options, "f");
  ASSERT_TRUE(sequences.ok()) << sequences.status();
  ASSERT_EQ(sequences->size(), 2U);
  EXPECT_THAT(Ids(sequences->at(0)), ElementsAre(1, 3, 5));
  EXPECT_THAT(Ids(sequences->at(1)), ElementsAre(2, 4, 6));
}

TEST(BatchedTensors, ThatDoNotFitTogetherAreRefused) {
  struct Case {
    TensorMap tensors;
    std::string message;
  };
  const Tensor x = Tensor::FromInts({2, 2}, {1, 2, 3, 4});
  const std::vector<Case> cases = {
      {{{"x", x}}, "f: no tensor is named input.<argument>"},
      {{{"input.x", x}, {"input.context", Tensor::FromInts({3, 1}, {1, 2, 3})}},
       "f: input.context: it is [3, 1], expected 2 sequences along the first axis"},
      {{{"input.x", x}, {"input.lengths", Tensor::FromFloats({2}, {1, 1})}},
       "f: input.lengths must hold 2 integers"},
      {{{"input.x", x}, {"input.lengths", Tensor::FromInts({2}, {2, 3})}},
       "f: input.lengths: sequence 1 has 3, expected 1 to 2"}};
  for (const Case& wrong : cases) {
    const auto sequences = SplitTensors(wrong.tensors, Batched(), "f");
    EXPECT_THAT(std::string(sequences.status().message()), HasSubstr(wrong.message));
  }
}

TEST(Files, OfEveryFormatAreRead) {
  const TempDir directory;
  const std::string npy = directory.File("inputs.npy");
  ASSERT_TRUE(WriteNpy(npy, Tensor::FromInts({2, 2}, {1, 2, 3, 4})).ok());
  const auto arrays = ReadInputs(npy, InputFormat::kNpy, {});
  ASSERT_TRUE(arrays.ok()) << arrays.status();
  EXPECT_THAT(Ids(arrays->at(1)), ElementsAre(3, 4));

  const std::string safetensors = directory.File("inputs.safetensors");
  ASSERT_TRUE(WriteSafetensors(safetensors, {{"a", Tensor::FromInts({1}, {5})}}).ok());
  const auto tensors = ReadInputs(safetensors, InputFormat::kSafetensors, {});
  ASSERT_TRUE(tensors.ok()) << tensors.status();
  EXPECT_THAT(Ids(tensors->at(0)), ElementsAre(5));

  const std::string text = directory.File("inputs.txt");
  std::ofstream(text) << "hi\n";
  const auto lines = ReadInputs(text, InputFormat::kText, {});
  ASSERT_TRUE(lines.ok()) << lines.status();
  EXPECT_THAT(Ids(lines->at(0)), ElementsAre('h', 'i'));
}

TEST(Files, ThatCannotBeReadAreNamed) {
  const TempDir directory;
  const auto missing = ReadInputs("/no/such/file", InputFormat::kText, {});
  EXPECT_EQ(missing.status(), absl::NotFoundError("cannot open /no/such/file"));
  const std::string broken = directory.File("broken.npy");
  std::ofstream(broken) << "no array";
  const auto array = ReadInputs(broken, InputFormat::kNpy, {});
  EXPECT_EQ(array.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(array.status().ToString(), HasSubstr(broken));
}

TEST(InputLimits, ComeFromTheModelsSignature) {
  Signature signature;
  signature.inputs.push_back({"x", InputKind::kToken, {Axis::Ragged('n')}, false, 256});
  signature.limits.push_back({'n', 512, ""});
  const InputLimits tokens = InputLimits::Of(signature);
  EXPECT_EQ(tokens.longest, 512);
  EXPECT_EQ(tokens.vocabulary, 256);
  EXPECT_EQ(tokens.rank, 1U);
}

}  // namespace
}  // namespace linserve
