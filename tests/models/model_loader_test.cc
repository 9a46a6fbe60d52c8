#include "models/model_loader.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <thread>
#include <vector>

#include "core/threads/mutex.h"
#include "models/model_fixture.h"

namespace linserve {
namespace {

class ModelLoaderTest : public ModelFixture {
 protected:
  // Returns what loading a config.json of this text says.
  std::string ConfigError(const std::string& text) {
    const std::string directory =
        Init("linformer.Linformer", R"({"dim": 8, "seq_len": 6, "depth": 1, "k": 4})");
    Write(directory, "config.json", text);
    return std::string(LoadModel(directory, {}).status().message());
  }
};

bool Contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

std::string ReadAll(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return std::string((std::istreambuf_iterator<char>(file)), {});
}

TEST_F(ModelLoaderTest, TheSameSeedGivesTheSameFileAndAnotherOneAnother) {
  const std::string params = R"({"dim": 8, "seq_len": 6, "depth": 1, "k": 4})";
  const auto weights = [&](uint64_t seed) {
    return ReadAll(Init("linformer.Linformer", params, seed) + "/model.safetensors");
  };
  const std::string first = weights(7);
  EXPECT_EQ(first, weights(7));
  EXPECT_NE(first, weights(8));
}

TEST_F(ModelLoaderTest, ReplicasOnTheCpuShareWhatIsLoadedOnce) {
  const std::string directory =
      Init("linformer.Linformer", R"({"dim": 8, "seq_len": 6, "depth": 1, "k": 4})");
  std::atomic<int> loads = 0;
  ModelLoadOptions options;
  options.accept = [&](const Signature&) {
    ++loads;
    return absl::OkStatus();
  };
  const ModelFactory factory = ReplicasOf(directory, options, {"cpu"});
  std::vector<std::thread> threads;
  Mutex mutex;
  std::vector<std::unique_ptr<Model>> replicas;
  for (int64_t i = 0; i < 3; ++i) {
    threads.emplace_back([&, i] {
      auto model = factory(i);
      ASSERT_TRUE(model.ok()) << model.status();
      const MutexLock lock(mutex);
      replicas.push_back(*std::move(model));
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(loads, 1);
  ASSERT_EQ(replicas.size(), 3);
  EXPECT_EQ(replicas[0]->info().fingerprint, replicas[2]->info().fingerprint);
  replicas.clear();
  EXPECT_TRUE(factory(0).ok());
  EXPECT_EQ(loads, 2);
}

TEST_F(ModelLoaderTest, LogsWhatAttentionIsComputedInWhereThatWasMeasured) {
  const auto log = [this](const std::string& dtype) {
    ModelLoadOptions options;
    options.dtype = dtype;
    testing::internal::CaptureStderr();
    EXPECT_TRUE(
        LoadModel(Init("linserve.Encoder", R"({"num_tokens": 9, "dim": 8, "depth": 1})"), options)
            .ok());
    return testing::internal::GetCapturedStderr();
  };
  for (const std::string& dtype : TypesOfCpu()) {
    const bool logged = log(dtype).find("products of attention measured") != std::string::npos;
    EXPECT_EQ(logged, dtype != "f32") << dtype;
  }
}

TEST_F(ModelLoaderTest, ReplicasOnTheCpuAreTriedOnceWhereTheyCannotBeLoaded) {
  const std::string directory =
      Init("linformer.Linformer", R"({"dim": 8, "seq_len": 6, "depth": 1, "k": 4})");
  int loads = 0;
  ModelLoadOptions options;
  options.accept = [&](const Signature&) {
    ++loads;
    return absl::ResourceExhaustedError("too many");
  };
  const ModelFactory factory = ReplicasOf(directory, options, {"cpu"});
  for (int64_t i = 0; i < 3; ++i) {
    EXPECT_EQ(factory(i).status(), absl::ResourceExhaustedError("too many"));
  }
  EXPECT_EQ(loads, 1);
}

TEST_F(ModelLoaderTest, InitOverwritesNoModel) {
  const std::string params = R"({"dim": 8, "seq_len": 6, "depth": 1, "k": 4})";
  const std::string directory = Init("linformer.Linformer", params);
  EXPECT_TRUE(absl::IsAlreadyExists(InitModel("linformer.Linformer", params, 1, directory)));
}

TEST_F(ModelLoaderTest, AnUnknownArchitectureIsRefusedWithTheKnownOnes) {
  const std::string error = InitError("linformer.Linfomer", "{}");
  EXPECT_TRUE(Contains(error, "unknown architecture \"linformer.Linfomer\"")) << error;
  for (const std::string& name : Architectures()) EXPECT_TRUE(Contains(error, name)) << error;
}

TEST_F(ModelLoaderTest, ImpossibleArgumentsAreNamedWithTheirValueAndWhatIsAllowed) {
  const auto error = [&](const std::string& params) {
    return InitError("linformer.Linformer", params);
  };
  EXPECT_TRUE(Contains(error(R"({"dim": 30, "seq_len": 6, "depth": 1})"),
                       "parameter \"dim\" is 30, expected a multiple of heads = 8"));
  EXPECT_TRUE(Contains(error(R"({"dim": 8, "seq_len": 6, "depth": 1, "k": 0})"),
                       "parameter \"k\" is 0, expected a positive integer"));
  EXPECT_TRUE(Contains(error(R"({"dim": 8, "depth": 1})"), "parameter \"seq_len\" is missing"));
  EXPECT_TRUE(Contains(error(R"({"dim": 8, "seq_len": 6, "depth": 1, "reversible": 1})"),
                       "parameter \"reversible\" is 1, expected true or false"));
  EXPECT_TRUE(Contains(error(R"({"dim": 8, "seq_len": 6, "depth": 1, "hedas": 2})"),
                       "unknown parameter \"hedas\""));
  EXPECT_TRUE(Contains(error(R"({"dim": 8, "seq_len": 6, "depth": 1000000000})"),
                       "parameter \"depth\" is 1000000000, expected an integer from 1 to 4096"));
  EXPECT_TRUE(Contains(error(R"({"dim": 2147483648, "seq_len": 6, "depth": 1})"),
                       "more than any memory holds"));
  EXPECT_TRUE(
      Contains(error(R"({"dim": 4194304, "seq_len": 6, "depth": 1})"), "the weights would take"));
  EXPECT_TRUE(Contains(InitError("linformer_pytorch.Linformer",
                                 R"({"input_size": 64, "channels": 4, "dim_d": 1, "dim_k": 2,
                                       "nhead": 1024, "depth": 4096})"),
                       "more than 131072 tensors"));
  EXPECT_TRUE(Contains(error("[1]"), "not a JSON object"));
}

TEST_F(ModelLoaderTest, DropoutIsAcceptedAndIgnored) {
  const std::string directory = Init(
      "linformer.Linformer", R"({"dim": 8, "seq_len": 6, "depth": 1, "k": 4, "dropout": 0.1})");
  EXPECT_NE(Load(directory), nullptr);
}

TEST_F(ModelLoaderTest, ABrokenConfigurationIsAnErrorThatNamesTheFile) {
  EXPECT_TRUE(Contains(ConfigError("{"), "config.json"));
  EXPECT_TRUE(Contains(ConfigError(R"({"params": {}})"), "\"architecture\" is missing"));
  EXPECT_TRUE(Contains(ConfigError(R"({"architecture": "linformer.Linformer", "parms": {}})"),
                       "unknown key 'parms'"));
  EXPECT_TRUE(
      Contains(ConfigError(R"({"architecture": "linformer.Linformer", "wrapper": {"type": "Padder"},
                      "params": {"dim": 8, "seq_len": 6, "depth": 1, "k": 4}})"),
               "takes no wrapper"));
  EXPECT_TRUE(
      Contains(ConfigError(R"({"architecture": "linformer.Linformer", "call": {"verbose": true},
                      "params": {"dim": 8, "seq_len": 6, "depth": 1, "k": 4}})"),
               "unknown call argument \"verbose\""));
}

TEST_F(ModelLoaderTest, TablesOfTokensAndLogitsTakeHalfWhereProductsAreRounded) {
  const std::string directory =
      Init("linformer.LinformerLM",
           R"({"num_tokens": 5000, "dim": 8, "seq_len": 6, "depth": 1, "k": 4, "heads": 1})");
  const auto bytes = [&](const std::string& type) {
    return Load(directory, {.dtype = type})->info().bytes;
  };
  constexpr int64_t kTable = 5000 * 8 * 4;
  // Logits stay as they are where there are no kernels for them.
  const int64_t halves = std::ranges::count(TypesOfCpu(), "bf16") + 1;
  for (const std::string& type : TypesOfCpu()) {
    if (type == "f32") continue;
    EXPECT_LE(bytes(type), bytes("f32") - halves * kTable / 2) << type;
  }
}

TEST_F(ModelLoaderTest, AFaultIsToldInAFewKilobytes) {
  const std::string large(500'000, 'a');
  for (const std::string& text :
       {R"({"architecture": ")" + large + "\"}",
        R"({"architecture": "linformer.Linformer", "params": {")" + large + R"(": 1}})",
        R"({"architecture": "linformer.Linformer", "params": {"dim": ")" + large + R"("}})",
        R"({"architecture": "linformer.Linformer", "wrapper": ")" + large + R"(",
            "params": {"dim": 8, "seq_len": 6, "depth": 1, "k": 4}})",
        R"({"architecture": "linformer.Linformer", "aliases": {")" + large + R"(": "net.0"},
            "params": {"dim": 8, "seq_len": 6, "depth": 2, "k": 4}})",
        R"({")" + large + R"(": 1})"}) {
    const std::string error = ConfigError(text);
    EXPECT_NE(error, "") << text.substr(0, 100);
    EXPECT_LE(error.size(), 17'000U) << text.substr(0, 100);
  }
}

TEST_F(ModelLoaderTest, ADirectoryWithoutAModelIsAnErrorThatSaysWhatIsMissing) {
  const auto model = LoadModel("/no/such/model", {});
  EXPECT_TRUE(absl::IsNotFound(model.status()));
  EXPECT_TRUE(Contains(std::string(model.status().message()), "config.json"));
}

TEST_F(ModelLoaderTest, ADeviceWhosePluginIsNotOpenIsAnError) {
  ModelLoadOptions options;
  options.device = "cuda:0";
  const auto model = LoadModel(
      Init("linformer.Linformer", R"({"dim": 8, "seq_len": 6, "depth": 1, "k": 4})"), options);
  EXPECT_TRUE(Contains(std::string(model.status().message()),
                       "is neither cpu nor one whose plug-in is open"));
}

TEST_F(ModelLoaderTest, InspectCountsParametersAsPyTorchDoes) {
  // This is the language model of the linformer README, smaller: counted by hand from its modules.
  const int64_t tokens = 200;
  const int64_t dim = 64;
  const int64_t length = 128;
  const int64_t k = 32;
  const int64_t head = dim / 8;
  const int64_t attention = dim * dim + 2 * dim * head + 2 * length * k + dim * dim + dim;
  const int64_t feed_forward = 2 * 4 * dim * dim + 4 * dim + dim;
  const int64_t expected = tokens * dim + length * dim + 3 * (attention + feed_forward + 4 * dim) +
                           tokens * dim + tokens;
  const auto report = InspectModel(
      Init("linformer.LinformerLM", R"({"num_tokens": 200, "dim": 64, "seq_len": 128, "depth": 3,
                                        "heads": 8, "k": 32, "one_kv_head": true})"));
  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_EQ(report->info.parameters, expected);
  EXPECT_EQ(report->difference, "");
}

TEST_F(ModelLoaderTest, InspectCountsTheFlopsOfAToken) {
  const auto report = InspectModel(
      Init("linformer.Linformer", R"({"dim": 64, "seq_len": 256, "depth": 2, "heads": 4,
                                      "k": 32})"));
  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_EQ(report->length, 256);
  // A token takes in each layer q, k, v, out (4·2·d²), E and F (2·2·k·d), scores and values
  // (2·2·k·d), and feed-forward (2·2·4·d²).
  const double by_hand = 2.0 * (8.0 * 64 * 64 + 8.0 * 32 * 64 + 16.0 * 64 * 64);
  EXPECT_NEAR(report->flops_per_token / by_hand, 1, 0.05);
}

}  // namespace
}  // namespace linserve
