#include "core/files/safetensors.h"

#include <malloc.h>
#include <unistd.h>

#include <fstream>
#include <utility>

#include "core/files/file.h"
#include "support/paths.h"
#include "support/test_files.h"

namespace linserve {
namespace {

using testing::ElementsAre;
using testing::Pair;
using testing::UnorderedElementsAre;

std::string BytesOf(const Tensor& tensor) {
  return {reinterpret_cast<const char*>(tensor.bytes()), tensor.byte_size()};
}

// Makes a tensor of each dtype, with bytes that tell their place.
TensorMap OneOfEachType() {
  TensorMap tensors;
  for (int i = 0; i <= static_cast<int>(DType::kF64); ++i) {
    const auto dtype = static_cast<DType>(i);
    auto [tensor, bytes] = Tensor::Allocate(dtype, {3});
    for (size_t at = 0; at < tensor.byte_size(); ++at) bytes[at] = static_cast<std::byte>(at + 1);
    tensors.emplace(std::string(Name(dtype)), tensor);
  }
  return tensors;
}

std::string HeaderOf(const std::string& file) {
  uint64_t length = 0;
  std::memcpy(&length, file.data(), sizeof(length));
  return file.substr(sizeof(length), length);
}

TEST(Safetensors, GivesBackWhatWasWritten) {
  const TempDir dir;
  const TensorMap tensors = OneOfEachType();
  ASSERT_TRUE(WriteSafetensors(dir.File("a"), tensors, {{"format", "pt"}, {"k\"", "ä\n"}}).ok());
  const auto file = ReadSafetensors(dir.File("a"));
  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_THAT(file->metadata, UnorderedElementsAre(Pair("format", "pt"), Pair("k\"", "ä\n")));
  ASSERT_EQ(file->tensors.size(), tensors.size());
  for (const auto& [name, tensor] : tensors) {
    EXPECT_EQ(file->tensors.at(name).dtype(), tensor.dtype()) << name;
    EXPECT_EQ(file->tensors.at(name).shape(), tensor.shape()) << name;
    EXPECT_EQ(BytesOf(file->tensors.at(name)), BytesOf(tensor)) << name;
  }
}

TEST(Safetensors, GivesBackScalarsAndTensorsWithoutElements) {
  const TempDir dir;
  const TensorMap tensors = {{"scalar", Tensor::FromFloats({}, {2.5f})},
                             {"none", Tensor::FromFloats({0, 4}, {})},
                             {"empty", Tensor::FromInts({2, 0}, {})}};
  ASSERT_TRUE(WriteSafetensors(dir.File("a"), tensors).ok());
  const auto file = ReadSafetensors(dir.File("a"));
  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_THAT(file->tensors.at("scalar").shape(), ElementsAre());
  EXPECT_EQ(file->tensors.at("scalar").data<float>()[0], 2.5f);
  EXPECT_THAT(file->tensors.at("none").shape(), ElementsAre(0, 4));
  EXPECT_THAT(file->tensors.at("empty").shape(), ElementsAre(2, 0));
}

TEST(Safetensors, GivesBackAFileWithoutTensors) {
  const TempDir dir;
  ASSERT_TRUE(WriteSafetensors(dir.File("a"), {}).ok());
  const auto file = ReadSafetensors(dir.File("a"));
  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_TRUE(file->tensors.empty());
}

TEST(Safetensors, WritesTheBytesThatTheFormatAsksFor) {
  const TempDir dir;
  const TensorMap tensors = {{"b", Tensor::FromInts({1}, {7})},
                             {"a", Tensor::FromFloats({1, 2}, {1, 2})},
                             {"z", Tensor::FromInts({1}, {8})}};
  ASSERT_TRUE(WriteSafetensors(dir.File("a"), tensors, {{"by", "me"}}).ok());
  const std::string file = ReadAll(dir.File("a"));
  const std::string header = HeaderOf(file);
  EXPECT_EQ(header.size() % 8, 0u);
  EXPECT_EQ(header.substr(0, header.find_last_not_of(' ') + 1),
            R"({"__metadata__":{"by":"me"},)"
            R"("b":{"dtype":"I64","shape":[1],"data_offsets":[0,8]},)"
            R"("z":{"dtype":"I64","shape":[1],"data_offsets":[8,16]},)"
            R"("a":{"dtype":"F32","shape":[1,2],"data_offsets":[16,24]}})");
  EXPECT_EQ(file.size(), 8 + header.size() + 24);
  EXPECT_EQ(file.substr(8 + header.size(), 1), "\x07");
}

TEST(Safetensors, BeginsTheDataAtAMultipleOfEightWhateverTheNames) {
  const TempDir dir;
  for (size_t length = 1; length <= 8; ++length) {
    const TensorMap tensors = {{std::string(length, 'a'), Tensor::FromInts({1}, {7})}};
    ASSERT_TRUE(WriteSafetensors(dir.File("a"), tensors).ok());
    EXPECT_EQ(HeaderOf(ReadAll(dir.File("a"))).size() % 8, 0u) << length;
    EXPECT_EQ(ReadSafetensors(dir.File("a"))->tensors.begin()->second.data<int64_t>()[0], 7);
  }
}

TEST(Safetensors, IsInMemoryWhateverBecomesOfTheFile) {
  const TempDir dir;
  const std::vector<float> values(10'000, 1.5F);
  ASSERT_TRUE(WriteSafetensors(dir.File("a"), {{"x", Tensor::FromFloats({10'000}, values)}}).ok());
  const auto file = ReadSafetensors(dir.File("a"));
  ASSERT_TRUE(file.ok()) << file.status();
  ASSERT_EQ(::truncate(dir.File("a").c_str(), 0), 0);
  EXPECT_EQ(file->tensors.at("x").data<float>()[9'999], 1.5F);
}

int64_t ResidentBytes() {
  std::ifstream pages("/proc/self/statm");
  int64_t all = 0;
  int64_t resident = 0;
  pages >> all >> resident;
  return resident * ::sysconf(_SC_PAGESIZE);
}

TEST(Safetensors, LetsLargeTensorsGoOneByOne) {
  constexpr int64_t kTensors = 32;
  constexpr int64_t kBytes = 2 << 20;
  mallopt(M_MMAP_THRESHOLD, 32 << 20);  // as the program has it
  const TempDir dir;
  TensorMap tensors;
  for (int64_t i = 0; i < kTensors; ++i) {
    tensors.emplace(std::to_string(i), Tensor::Allocate(DType::kU8, {kBytes}).first);
  }
  ASSERT_TRUE(WriteSafetensors(dir.File("a"), std::exchange(tensors, {})).ok());
  auto file = ReadSafetensors(dir.File("a"));
  ASSERT_TRUE(file.ok()) << file.status();
  const int64_t before = ResidentBytes();
  for (int64_t i = 0; i < kTensors; i += 2) file->tensors.erase(std::to_string(i));
  EXPECT_LT(ResidentBytes(), before - kTensors / 2 * kBytes * 9 / 10);
}

TEST(Safetensors, ReplacesTheFileWhoseTensorsAreInUse) {
  const TempDir dir;
  ASSERT_TRUE(WriteSafetensors(dir.File("a"), {{"x", Tensor::FromFloats({1}, {1})}}).ok());
  Tensor old = ReadSafetensors(dir.File("a"))->tensors.at("x");
  ASSERT_TRUE(WriteSafetensors(dir.File("a"), {{"x", Tensor::FromFloats({1}, {2})}}).ok());
  EXPECT_EQ(old.data<float>()[0], 1);
  EXPECT_EQ(ReadSafetensors(dir.File("a"))->tensors.at("x").data<float>()[0], 2);
  EXPECT_EQ(dir.FileCount(), 1u);
}

TEST(Safetensors, RefusesToWriteNamesThatNoReaderWouldAccept) {
  const TempDir dir;
  const Tensor tensor = Tensor::FromFloats({1}, {1});
  EXPECT_THAT(WriteSafetensors(dir.File("a"), {{"__metadata__", tensor}}), IsInvalid("reserved"));
  EXPECT_THAT(WriteSafetensors(dir.File("a"), {{"\xff", tensor}}), IsInvalid("UTF-8"));
  EXPECT_THAT(WriteSafetensors(dir.File("a"), {}, {{"k", "\xff"}}), IsInvalid("metadata 'k'"));
  EXPECT_EQ(dir.FileCount(), 0u);
}

TEST(Safetensors, ReadsAFileOfThePythonLibrary) {
  const auto file = ReadSafetensors(DataFile("goldens/linformer-attn-onekv/model.safetensors"));
  ASSERT_TRUE(file.ok()) << file.status();
  ASSERT_EQ(file->tensors.size(), 7u);
  const Tensor& projection = file->tensors.at("proj_k");
  EXPECT_EQ(projection.dtype(), DType::kF32);
  EXPECT_THAT(projection.shape(), ElementsAre(48, 16));
  EXPECT_FLOAT_EQ(projection.data<float>()[0], -0.16952936f);
  EXPECT_FLOAT_EQ(projection.data<float>()[2], 0.049230758f);
  EXPECT_THAT(file->tensors.at("to_out.bias").shape(), ElementsAre(32));
  EXPECT_FLOAT_EQ(file->tensors.at("to_out.bias").data<float>()[1], -0.40021664f);
  EXPECT_FLOAT_EQ(file->tensors.at("to_v.weight").data<float>()[0], -0.3036631f);
}

TEST(Safetensors, AcceptsTensorsThatAreNotAlignedAndFieldsInAnyOrder) {
  const std::string header = R"({"b":{"data_offsets":[1,5],"dtype":"F32","shape":[1]},)"
                             R"("a":{"shape":[1],"dtype":"U8","data_offsets":[0,1]}})";
  std::string bytes(8, '\0');
  const uint64_t length = header.size();
  std::memcpy(bytes.data(), &length, sizeof(length));
  bytes += header + std::string("\x05\x00\x00\x80\x3f", 5);
  const auto copy = ExactCopy(bytes);
  const auto file = ParseSafetensors(copy.get(), bytes.size(), copy, "memory");
  ASSERT_TRUE(file.ok()) << file.status();
  float value = 0;
  ConvertToFloat(DType::kF32, file->tensors.at("b").bytes(), 1, &value);
  EXPECT_EQ(value, 1.0f);
}

TEST(Safetensors, KeepsTheOwnerOfTheBytesAlive) {
  const std::string bytes = ReadAll(DataFile("goldens/linformer-attn-onekv/model.safetensors"));
  Tensor tensor;
  {
    auto copy = ExactCopy(bytes);
    tensor = ParseSafetensors(copy.get(), bytes.size(), copy, "memory")->tensors.at("proj_k");
  }
  float value = 0;
  ConvertToFloat(DType::kF32, tensor.bytes(), 1, &value);
  EXPECT_FLOAT_EQ(value, -0.16952936f);
}

}  // namespace
}  // namespace linserve
