#include <nlohmann/json.hpp>
#include <ostream>

#include "support/programs.h"

namespace linserve {
namespace {

using ::testing::HasSubstr;

class ConfigTest : public ::testing::Test {
 protected:
  // Runs `serve --print-config` with a file, variables and flags.
  Outcome Print(const std::string& file, const Variables& variables = {},
                const Arguments& flags = {}) {
    WriteAll(path_, file);
    Arguments arguments = {"serve", "--config", path_, "--print-config"};
    arguments.insert(arguments.end(), flags.begin(), flags.end());
    return RunLinserve(arguments, variables);
  }

  void ExpectRefused(const Outcome& outcome, const std::vector<std::string>& messages) {
    EXPECT_EQ(outcome.code, 1);
    EXPECT_EQ(outcome.out, "");
    for (const std::string& message : messages) EXPECT_THAT(outcome.err, HasSubstr(message));
  }

  TempDir directory_;
  std::string path_ = directory_.File("linserve.json");
};

TEST_F(ConfigTest, FlagsWinOverVariablesAndVariablesOverTheFile) {
  const std::string file =
      R"({"max_batch_tokens": 1, "replicas": 2, "pooling": "mean"}  // a comment)";
  const Variables variables = {{"LINSERVE_MAX_BATCH_TOKENS", "3"}, {"LINSERVE_REPLICAS", "4"}};
  const Outcome outcome = Print(file, variables, {"--max-batch-tokens", "5"});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const auto config = nlohmann::json::parse(outcome.out);
  EXPECT_EQ(config.at("max_batch_tokens"), 5);
  EXPECT_EQ(config.at("replicas"), 4);
  EXPECT_EQ(config.at("pooling"), "mean");
  EXPECT_EQ(config.at("max_batch_sequences"), 256);
}

TEST_F(ConfigTest, WhatIsPrintedIsAConfigurationFile) {
  const Outcome first = Print("{}", {}, {"--buckets", "[16, 32]", "--max-batch-delay-ms", "1.5"});
  ASSERT_EQ(first.code, 0) << first.err;
  const Outcome second = Print(first.out);
  EXPECT_EQ(second.code, 0) << second.err;
  EXPECT_EQ(second.out, first.out);
}

TEST_F(ConfigTest, AnUnknownKeyIsRefusedWithTheOneItResembles) {
  ExpectRefused(Print(R"({"max_batch_token": 5})"), {path_, "max_batch_token", "max_batch_tokens"});
}

TEST_F(ConfigTest, ValuesOutOfRangeAreRefusedWithWhereTheyStand) {
  ExpectRefused(Print(R"({"replicas": -1})"), {path_, "replicas", "-1", "0"});
  ExpectRefused(Print("{}", {{"LINSERVE_REPLICAS", "257"}}),
                {"variable LINSERVE_REPLICAS", "257", "256"});
  ExpectRefused(Print("{}", {}, {"--replicas", "-1"}), {"command line", "replicas", "-1"});
}

TEST_F(ConfigTest, ValuesOfTheWrongKindAreRefused) {
  ExpectRefused(Print(R"({"replicas": "two"})"), {"replicas", "two"});
  ExpectRefused(Print("{}", {{"LINSERVE_WARMUP", "maybe"}}), {"LINSERVE_WARMUP", "maybe"});
  ExpectRefused(Print("{}", {}, {"--padding", "most"}), {"padding", "most", "packed"});
}

TEST_F(ConfigTest, AFileThatCannotBeReadOrParsedIsNamed) {
  const Outcome missing = RunLinserve({"serve", "--config", directory_.File("none.json")});
  ExpectRefused(missing, {"none.json"});
  ExpectRefused(Print("{\"replicas\": "), {path_, "parse error"});
  ExpectRefused(Print("[1]"), {path_});
}

TEST_F(ConfigTest, AnAddressWithoutAPortIsRefused) {
  CopyGolden("linformer-lm-basic", directory_.File("models/lm"));
  const Outcome outcome =
      RunLinserve({"serve", "--model-repository", directory_.File("models"), "--http-address",
                   "127.0.0.1:0", "--grpc-address", "nowhere"});
  ExpectRefused(outcome, {"grpc_address", "nowhere", "HOST:PORT"});
}

TEST_F(ConfigTest, APortInUseIsReportedWithTheWayOut) {
  CopyGolden("linformer-lm-basic", directory_.File("models/lm"));
  RunningServer first(directory_.File("models"));
  const auto serve = [&](const std::string& grpc, const std::string& http) {
    return RunLinserve({"serve", "--model-repository", directory_.File("models"), "--grpc-address",
                        grpc, "--http-address", http});
  };
  ExpectRefused(serve(first.target(), "127.0.0.1:0"), {first.target(), "--grpc-address"});
  ExpectRefused(serve("127.0.0.1:0", first.http()), {first.http()});
  EXPECT_EQ(RunClient({"health", "--target", first.target()}).code, 0);
}

TEST_F(ConfigTest, HelpOfServeHasEveryOption) {
  const Outcome config = Print("{}");
  ASSERT_EQ(config.code, 0) << config.err;
  const Outcome help = RunLinserve({"serve", "--help"});
  EXPECT_EQ(help.code, 0);
  const auto options = nlohmann::json::parse(config.out);
  EXPECT_GT(options.size(), 20U);
  for (const auto& [name, value] : options.items()) {
    std::string flag = "--" + name;
    for (char& c : flag) c = c == '_' ? '-' : c;
    EXPECT_THAT(help.out, HasSubstr(flag));
  }
  EXPECT_THAT(help.out, HasSubstr("--config"));
}

struct Help {
  std::string program;
  Arguments command;
  std::vector<std::string> options;
};

void PrintTo(const Help& help, std::ostream* out) {
  *out << help.program;
  for (const std::string& word : help.command) *out << ' ' << word;
}

class HelpTest : public ::testing::TestWithParam<Help> {};

TEST_P(HelpTest, HasEveryOptionAndAnExample) {
  Arguments arguments = GetParam().command;
  arguments.emplace_back("--help");
  const bool client = GetParam().program == "linserve-client";
  const Outcome outcome = client ? RunClient(arguments) : RunLinserve(arguments);
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  for (const std::string& option : GetParam().options) {
    EXPECT_THAT(outcome.out, HasSubstr(option));
  }
  EXPECT_THAT(outcome.out, HasSubstr("Example"));
}

INSTANTIATE_TEST_SUITE_P(
    All, HelpTest,
    ::testing::Values(
        Help{"linserve", {}, {"serve", "run", "init", "inspect", "bench", "--version"}},
        Help{"linserve",
             {"run"},
             {"--model", "--input", "--output", "--outputs", "--dtype", "--padding", "--threads",
              "--device", "--compare", "--tolerance"}},
        Help{"linserve",
             {"init"},
             {"--architecture", "--params", "--wrapper", "--output", "--seed"}},
        Help{"linserve", {"bench"}, {"--model", "--lengths", "--rounds", "--dtype", "--json"}},
        Help{"linserve", {"inspect"}, {"--model", "--json"}},
        Help{"linserve-client", {}, {"embed", "load", "models", "health", "--target", "--timeout"}},
        Help{"linserve-client",
             {"embed"},
             {"FILE", "--format", "--token-offset", "--truncate", "--batched", "--model",
              "--version", "--output-name", "--pooling", "--normalize", "--dtype", "--output",
              "--output-format", "--neighbours", "--batch", "--in-flight"}},
        Help{"linserve-client",
             {"load"},
             {"--concurrency", "--rate", "--duration", "--requests", "--warmup", "--connections",
              "--deadline-ms", "--sequences", "--lengths", "--seed", "--json"}},
        Help{"linserve-client", {"compare"}, {"--models", "--pooling", "--batched"}},
        Help{"linserve-client", {"models"}, {"--json"}},
        Help{"linserve-client", {"health"}, {"--service"}}),
    [](const auto& help) {
      const Help& wanted = help.param;
      return (wanted.program == "linserve" ? "Server" : "Client") +
             (wanted.command.empty() ? "" : "_" + wanted.command[0]);
    });

}  // namespace
}  // namespace linserve
