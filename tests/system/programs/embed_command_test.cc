#include <nlohmann/json.hpp>
#include <sstream>

#include "core/files/npy.h"
#include "core/files/safetensors.h"
#include "system/programs/shared_server.h"

namespace linserve {
namespace {

using ::testing::HasSubstr;

class EmbedCommandTest : public ServedModelTest {};

TEST_F(EmbedCommandTest, Int8ResultsAreCloseToTheOthersByBothProtocols) {
  const std::string text = directory_.File("in.txt");
  WriteAll(text, "abc\nhello\n");
  const auto embed = [&](const std::string& dtype, const std::string& protocol) {
    const std::string output = directory_.File(dtype + protocol + ".npy");
    const Outcome outcome = RunClient({"--protocol", protocol, "--target", shared().target(),
                                       "embed", text, "--dtype", dtype, "--output", output});
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    return *ReadNpy(output);
  };
  const Tensor exact = embed("f32", "linserve");
  for (const std::string protocol : {"linserve", "oip"}) {
    const Tensor close = embed("i8", protocol);
    ASSERT_EQ(close.dtype(), DType::kF32);
    ASSERT_EQ(close.shape(), exact.shape());
    for (int64_t i = 0; i < exact.elements(); ++i) {
      EXPECT_NEAR(close.data<float>()[i], exact.data<float>()[i], 0.02);
    }
  }
}

TEST_F(EmbedCommandTest, EveryInputFormatGivesTheSameEmbeddings) {
  const std::string text = directory_.File("in.txt");
  WriteAll(text, "abc\nhello\n");
  const std::string ids = directory_.File("in.jsonl");
  WriteAll(ids, "[97, 98, 99]\n{\"id\": \"two\", \"x\": [104, 101, 108, 108, 111]}\n");
  const std::string npy = directory_.File("in.npy");
  ASSERT_TRUE(WriteNpy(npy, Tensor::FromInts({3}, {97, 98, 99})).ok());
  const std::string tensors = directory_.File("in.safetensors");
  ASSERT_TRUE(WriteSafetensors(tensors, {{"a", Tensor::FromInts({3}, {97, 98, 99})},
                                         {"b", Tensor::FromInts({5}, {104, 101, 108, 108, 111})}})
                  .ok());
  const std::string computed = R"(linserve_sequences_total{model="bytes",version="1"})";
  const double before = shared().Scrape()[computed];
  std::vector<std::string> first_lines;
  for (const std::string& file : {text, ids, npy, tensors}) {
    const std::string output = file + ".out.npy";
    const Outcome outcome =
        RunClient({"embed", file, "--target", shared().target(), "--output", output});
    ASSERT_EQ(outcome.code, 0) << file << ": " << outcome.err;
    const auto vectors = ReadNpy(output);
    ASSERT_TRUE(vectors.ok()) << vectors.status();
    const Tensor first = vectors->shape().size() == 2 ? vectors->Rows(0, 1) : *vectors;
    first_lines.emplace_back(reinterpret_cast<const char*>(first.bytes()), first.byte_size());
    EXPECT_EQ(first_lines.back(), first_lines.front()) << file;
  }
  EXPECT_EQ(shared().Scrape()[computed] - before, 7);
}

TEST_F(EmbedCommandTest, StandardInputBecomesOneJsonLineASequence) {
  const Outcome outcome = RunClient({"embed", "--target", shared().target(), "--normalize"},
                                    "one\ntwo\n" + std::string(65, 'x') + "\n");
  EXPECT_EQ(outcome.code, 1);
  EXPECT_THAT(outcome.err, HasSubstr("at most 64"));
  std::istringstream lines(outcome.out);
  std::vector<nlohmann::json> results;
  for (std::string line; std::getline(lines, line);) {
    results.push_back(nlohmann::json::parse(line));
  }
  EXPECT_GE(results.size(), 2U);
  EXPECT_EQ(results[0].at("id"), "1");
}

}  // namespace
}  // namespace linserve
