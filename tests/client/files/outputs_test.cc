#include "client/files/outputs.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "core/files/npy.h"
#include "core/files/safetensors.h"
#include "support/test_files.h"

namespace linserve {
namespace {

using nlohmann::json;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

SequenceResult ResultOf(size_t index, std::string id, TensorMap outputs) {
  SequenceResult result;
  result.index = index;
  result.id = std::move(id);
  result.outputs = std::move(outputs);
  result.tokens = 7;
  result.timing.queue = std::chrono::microseconds(1500);
  result.timing.compute = std::chrono::microseconds(250);
  result.timing.batch_sequences = 1;
  return result;
}

SequenceResult Failure(size_t index, std::string id, absl::Status status) {
  SequenceResult result;
  result.index = index;
  result.id = std::move(id);
  result.status = std::move(status);
  return result;
}

std::string JsonLine(const SequenceResult& result) {
  std::ostringstream stream;
  const auto writer = MakeJsonLinesWriter(stream);
  EXPECT_TRUE(writer->Write(result).ok());
  EXPECT_TRUE(writer->Finish().ok());
  return stream.str();
}

TEST(JsonLines, HoldAPooledVector) {
  EXPECT_EQ(JsonLine(ResultOf(3, "a", {{"y", Tensor::FromFloats({3}, {0.1F, -2, 1e-20F})}})),
            "{\"index\":3,\"id\":\"a\",\"tokens\":7,\"queue_ms\":1.5,\"compute_ms\":0.25,"
            "\"embedding\":[0.1,-2,1e-20]}\n");
}

TEST(JsonLines, HoldNoTimesThatTheServerDidNotTell) {
  SequenceResult result = ResultOf(3, "a", {{"y", Tensor::FromFloats({1}, {1})}});
  result.timing = {};
  EXPECT_EQ(JsonLine(result), "{\"index\":3,\"id\":\"a\",\"tokens\":7,\"embedding\":[1]}\n");
}

TEST(JsonLines, HoldRowsAsNestedArrays) {
  const json line =
      json::parse(JsonLine(ResultOf(0, "a", {{"y", Tensor::FromFloats({2, 2}, {1, 2, 3, 4})}})));
  EXPECT_EQ(line["embedding"], json::parse("[[1, 2], [3, 4]]"));
}

TEST(JsonLines, HoldSeveralOutputsByName) {
  const json line = json::parse(JsonLine(ResultOf(
      0, "a", {{"y", Tensor::FromFloats({1}, {1})}, {"labels", Tensor::FromInts({2}, {5, 6})}})));
  EXPECT_EQ(line["outputs"], json::parse("{\"y\": [1], \"labels\": [5, 6]}"));
}

TEST(JsonLines, SayWhyASequenceFailed) {
  const json line =
      json::parse(JsonLine(Failure(2, "b", absl::InvalidArgumentError("too \"big\""))));
  EXPECT_EQ(line, json::parse("{\"index\": 2, \"id\": \"b\", \"error\": {\"code\": "
                              "\"INVALID_ARGUMENT\", \"message\": \"too \\\"big\\\"\"}}"));
}

TEST(JsonLines, StayJsonWhateverTheyHold) {
  const float infinity = std::numeric_limits<float>::infinity();
  const json line = json::parse(
      JsonLine(ResultOf(0, "\xff\n", {{"y", Tensor::FromFloats({2}, {NAN, infinity})}})));
  EXPECT_EQ(line["embedding"], json::parse("[null, null]"));
  EXPECT_EQ(line["id"], "\xef\xbf\xbd\n");
}

TEST(JsonLines, NumbersReadBackAsTheSame) {
  const float third = 1.0F / 3;
  const json line =
      json::parse(JsonLine(ResultOf(0, "", {{"y", Tensor::FromFloats({1}, {third})}})));
  EXPECT_EQ(line["embedding"][0].get<float>(), third);
}

TEST(JsonLines, ReportAStreamThatCannotBeWritten) {
  std::ostringstream stream;
  stream.setstate(std::ios::badbit);
  const auto writer = MakeJsonLinesWriter(stream);
  EXPECT_EQ(writer->Write(Failure(0, "", absl::InternalError(""))).code(),
            absl::StatusCode::kDataLoss);
}

TEST(NpyOutput, IsOneArrayInWhichAFailureIsARowOfNan) {
  const TempDir directory;
  const std::string path = directory.File("out.npy");
  const auto writer = MakeNpyWriter(path);
  EXPECT_TRUE(writer->Write(Failure(0, "", absl::InternalError(""))).ok());
  EXPECT_TRUE(writer->Write(ResultOf(1, "", {{"y", Tensor::FromFloats({2}, {1, 2})}})).ok());
  ASSERT_TRUE(writer->Finish().ok());
  const auto array = ReadNpy(path);
  ASSERT_TRUE(array.ok()) << array.status();
  EXPECT_EQ(array->shape(), (Shape{2, 2}));
  std::vector<float> values(4);
  ConvertToFloat(array->dtype(), array->bytes(), 4, values.data());
  EXPECT_TRUE(std::isnan(values[0]) && std::isnan(values[1]));
  EXPECT_EQ(values[2], 1);
  EXPECT_EQ(values[3], 2);
}

TEST(NpyOutput, NeedsEqualShapes) {
  const TempDir directory;
  const auto writer = MakeNpyWriter(directory.File("out.npy"));
  EXPECT_TRUE(writer->Write(ResultOf(0, "", {{"y", Tensor::FromFloats({1, 2}, {1, 2})}})).ok());
  const auto status = writer->Write(ResultOf(1, "", {{"y", Tensor::FromFloats({2, 1}, {1, 2})}}));
  EXPECT_EQ(status, absl::InvalidArgumentError(
                        "an .npy file needs equal shapes, but sequence 1 has [2, 1] after [1, 2]; "
                        "use --pooling, or write safetensors"));
}

TEST(NpyOutput, HoldsOneOutput) {
  const TempDir directory;
  const auto writer = MakeNpyWriter(directory.File("out.npy"));
  const auto status = writer->Write(
      ResultOf(0, "", {{"a", Tensor::FromFloats({1}, {1})}, {"b", Tensor::FromFloats({1}, {1})}}));
  EXPECT_THAT(status.ToString(), HasSubstr("holds one output"));
}

TEST(NpyOutput, OfNothingButFailuresIsAnError) {
  const auto writer = MakeNpyWriter("none.npy");
  EXPECT_TRUE(writer->Write(Failure(0, "", absl::InternalError(""))).ok());
  EXPECT_EQ(writer->Finish(), absl::InvalidArgumentError("nothing to write to none.npy"));
}

TEST(SafetensorsOutput, NamesTensorsByTheirIds) {
  const TempDir directory;
  const std::string path = directory.File("out.safetensors");
  const auto writer = MakeSafetensorsWriter(path);
  const Tensor one = Tensor::FromFloats({1}, {1});
  EXPECT_TRUE(writer->Write(ResultOf(0, "a", {{"y", one}})).ok());
  EXPECT_TRUE(writer->Write(Failure(1, "b", absl::InternalError(""))).ok());
  EXPECT_TRUE(writer->Write(ResultOf(2, "a", {{"y", one}})).ok());
  EXPECT_TRUE(writer->Write(ResultOf(3, "c", {{"y", one}, {"z", one}})).ok());
  ASSERT_TRUE(writer->Finish().ok());
  const auto file = ReadSafetensors(path);
  ASSERT_TRUE(file.ok()) << file.status();
  std::vector<std::string> names;
  for (const auto& [name, tensor] : file->tensors) names.push_back(name);
  EXPECT_THAT(names, ElementsAre("a", "a#2", "c.y", "c.z"));
}

}  // namespace
}  // namespace linserve
