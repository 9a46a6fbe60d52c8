#include <cmath>
#include <fstream>
#include <functional>
#include <nlohmann/json.hpp>
#include <sstream>

#include "client/commands/neighbours.h"
#include "core/files/npy.h"
#include "core/files/safetensors.h"
#include "support/paths.h"
#include "support/programs.h"
#include "system/programs/shared_server.h"

namespace linserve {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;

const std::string kFixture = DataFile("sentence_encoder/");

std::vector<std::string> LinesOf(const std::string& path) {
  std::ifstream file(path);
  std::vector<std::string> lines;
  for (std::string line; std::getline(file, line);) lines.push_back(line);
  return lines;
}

// Serves the model that comes with the source.
class SentenceEncoderTest : public SharedServerTest {
 protected:
  std::vector<SequenceResult> Embed(const std::vector<std::string>& texts) {
    EmbedCall call{.model = "", .options = {}};
    call.options.pooling = Pooling::kMean;
    call.options.normalize = true;
    for (const std::string& text : texts) call.sequences.push_back({"", {}, text});
    auto results = EmbeddingClient(shared().client_options()).Embed(call);
    EXPECT_TRUE(results.ok()) << results.status();
    return results.ok() ? *std::move(results) : std::vector<SequenceResult>(texts.size());
  }

  std::vector<float> VectorOf(const SequenceResult& result) {
    EXPECT_TRUE(result.status.ok()) << result.status;
    return result.status.ok() ? ToFloats(result.outputs.at("y")) : std::vector<float>(1);
  }

  static void SetUpTestSuite() { Serve(BundledModels()); }
};

// deploy/models/train/fixture.py wrote the numbers, with PyTorch and the Python package of the
// tokenizer.
TEST_F(SentenceEncoderTest, GivesTheVectorsAndTokenCountsOfPython) {
  const auto results = Embed(LinesOf(kFixture + "texts.txt"));
  const auto ids = LinesOf(kFixture + "ids.jsonl");
  const auto file = ReadSafetensors(kFixture + "embeddings.safetensors");
  ASSERT_TRUE(file.ok()) << file.status();
  const Tensor& expected = file->tensors.at("embeddings");
  ASSERT_EQ(results.size(), ids.size());
  for (size_t i = 0; i < results.size(); ++i) {
    EXPECT_EQ(results[i].tokens, std::ssize(json::parse(ids[i]))) << i;
    const auto row = static_cast<int64_t>(i);
    EXPECT_THAT(VectorOf(results[i]), testing::Pointwise(testing::FloatNear(1e-5F),
                                                         ToFloats(expected.Rows(row, row + 1))))
        << i;
  }
}

TEST_F(SentenceEncoderTest, PlacesLikeWithLike) {
  for (const std::string& line : LinesOf(kFixture + "triples.jsonl")) {
    const json triple = json::parse(line);
    const auto results = Embed({triple["sentence"], triple["near"], triple["far"]});
    const auto sentence = VectorOf(results[0]);
    const auto nearest = Nearest(sentence, {VectorOf(results[1]), VectorOf(results[2])}, 2);
    EXPECT_EQ(nearest[0].index, 0U) << line;
    EXPECT_GT(nearest[0].cosine, nearest[1].cosine + 0.2) << line;
  }
}

TEST_F(SentenceEncoderTest, TheClientFindsThePassageThatIsMeant) {
  const Outcome found = RunClient(
      {"search", "--target", shared().target(), "--index", "-", "how do I get more free space?",
       "--top", "1"},
      "The shepherd keeps his sheep in the mountains, where they graze all summer long.\n\n"
      "Delete files that you no longer need when the disk\nis full.\n\n"
      "The train leaves at nine in the morning and arrives in Paris shortly before noon.\n");
  EXPECT_EQ(found.code, 0) << found.err;
  EXPECT_THAT(found.out, HasSubstr("how do I get more free space?\n"));
  EXPECT_THAT(found.out,
              HasSubstr("3  Delete files that you no longer need when the disk is full."));
}

TEST(SearchTest, TellsWhatIsWrongWithTheTextBeforeItAsksAServer) {
  const TempDir directory;
  const auto search = [](const std::string& index) {
    // No server is at this address.
    return RunClient(
        {"search", "--timeout", "1", "--target", "unix:/nowhere", "--index", index, "a query"},
        " \n");
  };
  const std::string missing = directory.File("missing.txt");
  EXPECT_THAT(search(missing).err, HasSubstr(missing));
  EXPECT_THAT(search("-").err, HasSubstr("nothing to search in"));
  WriteAll(missing, "caf\xe9");
  EXPECT_THAT(search(missing).err, HasSubstr("not a text in UTF-8"));
  WriteAll(missing, "some text");
  EXPECT_THAT(search(missing).err, HasSubstr("UNAVAILABLE"));
}

TEST_F(SentenceEncoderTest, TheClientEmbedsLinesOfTextAndTellsTheFaultyOnes) {
  const Outcome embedded = RunClient({"embed", "--target", shared().target(), "--normalize"},
                                     "How do I change my password?\ncaf\xe9\nA second line.\n");
  EXPECT_EQ(embedded.code, 1);
  EXPECT_THAT(embedded.err, HasSubstr("line 2: not UTF-8"));
  std::istringstream lines(embedded.out);
  size_t good = 0;
  for (std::string line; std::getline(lines, line);) {
    const json result = json::parse(line);
    if (result.contains("embedding")) ++good;
  }
  EXPECT_EQ(good, 2U) << embedded.out;
}

TEST_F(SentenceEncoderTest, TheClientCutsLongLinesOnTheSideThatIsChosen) {
  std::string line;
  for (const char* word : {"sheep ", "computer "}) {
    for (int i = 0; i < 600; ++i) line += word;
  }
  const auto embed = [&](const std::string& truncate) {
    return RunClient({"embed", "--target", shared().target(), truncate}, line + "\n");
  };
  const auto vector = [&](const std::string& truncate) {
    const Outcome embedded = embed(truncate);
    EXPECT_EQ(embedded.code, 0) << embedded.err;
    return json::parse(embedded.out, nullptr, /*allow_exceptions=*/false)
        .value("embedding", json());
  };
  const json right = vector("--truncate");
  EXPECT_EQ(vector("--truncate=right"), right);
  EXPECT_NE(vector("--truncate=left"), right);
  EXPECT_EQ(embed("--truncate=none").code, 1);
  EXPECT_THAT(embed("--truncate=middle").err, HasSubstr("left"));
}

// Returns what `serve` says of a model of 256 token ids with this tokenizer, and weights that
// cannot be read.
std::string RefusalOf(const std::function<void(const std::string& path)>& write_tokenizer) {
  const TempDir directory;
  InitModel(directory.File("models/bytes"));
  WriteAll(directory.File("models/bytes/model.safetensors"), "");
  write_tokenizer(directory.File("models/bytes/tokenizer.model"));
  const Outcome refused =
      RunLinserve({"serve", "--model-repository", directory.File("models"), "--grpc-address",
                   "127.0.0.1:0", "--http-address", "127.0.0.1:0"});
  EXPECT_EQ(refused.code, 1);
  return refused.err;
}

TEST(BrokenTokenizerTest, IsToldBeforeTheWeightsAreRead) {
  EXPECT_THAT(RefusalOf([](const auto& path) {
                std::filesystem::copy(BundledModels() + "/sentence-encoder/1/tokenizer.model",
                                      path);
              }),
              HasSubstr("has 8000 tokens, but the model's vocabulary is 256"));
  EXPECT_THAT(RefusalOf([](const auto& path) { WriteAll(path, "none"); }),
              HasSubstr("bytes/tokenizer.model is no SentencePiece model"));
}

TEST(BrokenTokenizerTest, IsToldByInspectToo) {
  const TempDir directory;
  const std::string model = directory.File("bytes");
  InitModel(model);
  std::filesystem::copy(BundledModels() + "/sentence-encoder/1/tokenizer.model",
                        model + "/tokenizer.model");
  const Outcome large = RunLinserve({"inspect", "--model", model});
  EXPECT_EQ(large.code, 1);
  EXPECT_THAT(large.err, HasSubstr("has 8000 tokens, but the model's vocabulary is 256"));
  WriteAll(model + "/tokenizer.model", "none");
  EXPECT_THAT(RunLinserve({"inspect", "--model", model}).err, HasSubstr("no SentencePiece model"));
}

TEST(MarksTest, AreAddedToTheTextsOfAModelThatAsksForThem) {
  const TempDir directory;
  const std::string model = directory.File("models/bytes");
  InitModel(model);
  std::filesystem::copy(DataFile("text/tokenizer.model"), model + "/tokenizer.model");
  json config = json::parse(std::ifstream(model + "/config.json"));
  config["serving"] = {{"add_bos", true}, {"add_eos", true}};
  WriteAll(model + "/config.json", config.dump());
  RunningServer server(directory.File("models"));
  const auto results =
      EmbeddingClient(server.client_options())
          .Embed({.model = "", .options = {}, .sequences = {{"text", {}, "the server answers"}}});
  ASSERT_TRUE(results.ok()) << results.status();
  EXPECT_EQ(results->at(0).tokens, 12);
}

}  // namespace
}  // namespace linserve
