#include "rest/json/tensor_json.h"

#include <gmock/gmock.h>

#include <cstring>
#include <limits>
#include <nlohmann/json.hpp>
#include <random>
#include <string>
#include <vector>

namespace linserve {
namespace {

using nlohmann::json;
using ::testing::ElementsAre;

std::string Written(const Tensor& tensor) {
  std::string text;
  const absl::Status status = AppendElements(tensor, text);
  EXPECT_TRUE(status.ok()) << status;
  return text;
}

TEST(TensorJson, WritesFloatsThatAreReadAsTheyWere) {
  const unsigned seed = std::random_device{}();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937 random(seed);
  std::vector<float> values = {0,        -0.0F, 1, 1e-45F, -1.17549435e-38F, 3.4028235e38F,
                               16777216, 0.1F};
  while (values.size() < 10'000) {
    const uint32_t bits = random();
    float value = 0;
    std::memcpy(&value, &bits, sizeof(value));
    if (value == value && value - value == 0) values.push_back(value);
  }
  const std::string text = Written(Tensor::FromFloats({std::ssize(values)}, values));
  EXPECT_EQ(json::parse(text).get<std::vector<float>>(), values);
  EXPECT_LE(std::ssize(text), kLongestElement * std::ssize(values) + 2);
}

TEST(TensorJson, HasNoNumberThatIsNotFinite) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  for (const float none : {kInfinity, -kInfinity, kInfinity - kInfinity}) {
    const Tensor tensor = Tensor::FromFloats({2, 2}, {7, 0.5F, none, 1});
    for (const DType dtype : {DType::kF32, DType::kF16, DType::kBF16}) {
      std::string text;
      const absl::Status status = AppendElements(*Convert(tensor, dtype), text);
      EXPECT_EQ(status.code(), absl::StatusCode::kOutOfRange);
      EXPECT_NE(status.message().find("at position [1, 0]"), absl::string_view::npos) << status;
    }
  }
}

TEST(TensorJson, AFloatLooksLikeOne) {
  EXPECT_EQ(Written(Tensor::FromFloats({2}, {7, 0.5F})), "[7.0,0.5]");
  EXPECT_EQ(Written(Tensor::FromInts({2}, {7, INT64_MIN})), "[7,-9223372036854775808]");
  EXPECT_EQ(Written(Tensor::FromInts({0}, {})), "[]");
}

TEST(TensorJson, ReadsNestedArraysAndWhatStandsAlone) {
  const auto read = [](const std::string& data) {
    std::string raw;
    const absl::Status status = ReadElements(
        "INT64", data, [] { return absl::OkStatus(); }, "here", raw);
    EXPECT_TRUE(status.ok()) << status;
    std::vector<int64_t> ids(raw.size() / sizeof(int64_t));
    std::memcpy(ids.data(), raw.data(), raw.size());
    return ids;
  };
  EXPECT_THAT(read("[[1,2],[],[[3]]]"), ElementsAre(1, 2, 3));
  EXPECT_THAT(read("4"), ElementsAre(4));
}

}  // namespace
}  // namespace linserve
