#include <filesystem>
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
    EXPECT_FALSE(outcome.out.starts_with("{")) << outcome.out;  // the log may stand there
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
  EXPECT_EQ(config.at("max_batch_sequences"), 0);
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

TEST_F(ConfigTest, SizesAndTimesTakeUnitsWhereverTheyStand) {
  const Outcome outcome = Print(
      R"({"max_message_bytes": "64MiB", "session_idle_seconds": "5m", "drain_timeout_seconds": 7})",
      {{"LINSERVE_CACHE_BYTES", "1.5GiB"}}, {"--drain-delay-seconds", "250ms"});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const auto config = nlohmann::json::parse(outcome.out);
  EXPECT_EQ(config.at("max_message_bytes"), 64 << 20);
  EXPECT_EQ(config.at("session_idle_seconds"), 300);
  EXPECT_EQ(config.at("drain_timeout_seconds"), 7);
  EXPECT_EQ(config.at("cache_bytes"), int64_t{3} << 29);
  EXPECT_EQ(config.at("drain_delay_seconds"), 0.25);
}

TEST_F(ConfigTest, AVariableOfNoOptionIsRefused) {
  ExpectRefused(Print("{}", {{"LINSERVE_REPLICA", "1"}}),
                {"LINSERVE_REPLICA is of no option", "LINSERVE_REPLICAS"});
  EXPECT_EQ(Print("{}", {{"LINSERVE_SERVICE_HOST", "10.0.0.1"}}).code, 0);
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

TEST_F(ConfigTest, HelpOfServeBeginsWithTheTenOptionsThatMatterFirst) {
  const std::string help = RunLinserve({"serve", "--help"}).out;
  const size_t first = help.find("What to set first:");
  const size_t others = help.find("\nThe models:");
  ASSERT_LT(first, others);
  ASSERT_NE(others, std::string::npos);
  const std::string group = help.substr(first, others - first);
  for (const char* flag : {"--model-repository", "--grpc-address", "--tls-certificate",
                           "--tokens-file", "--device", "--dtype", "--replicas", "--threads"}) {
    EXPECT_THAT(group, HasSubstr(flag));
    EXPECT_EQ(help.find(std::string("\n  ") + flag + " ", others), std::string::npos) << flag;
  }
  size_t flags = 0;
  for (size_t at = 0; (at = group.find("\n  --", at + 1)) != std::string::npos;) ++flags;
  EXPECT_EQ(flags, 10U);
}

// `serve --check-config` says all that a start would, and serves nothing.
class CheckConfigTest : public ConfigTest {
 protected:
  CheckConfigTest() { InitModel(directory_.File("models/lm")); }

  // What the flags do not say is said by variables.
  Outcome Check(const std::string& file, const Arguments& flags = {}, Variables variables = {}) {
    WriteAll(path_, file);
    variables.insert({{"LINSERVE_DEVICE", "cpu"},
                      {"LINSERVE_GRPC_ADDRESS", "127.0.0.1:0"},
                      {"LINSERVE_HTTP_ADDRESS", "127.0.0.1:0"},
                      {"LINSERVE_MODEL_REPOSITORY", directory_.File("models")}});
    Arguments arguments = {"serve", "--config", path_, "--check-config"};
    arguments.insert(arguments.end(), flags.begin(), flags.end());
    return RunLinserve(arguments, variables);
  }
};

TEST_F(CheckConfigTest, ShowsWhereValuesStandWhatZerosBecameAndTheModels) {
  std::filesystem::create_directories(directory_.File("models/half"));
  WriteAll(directory_.File("models/half/model.safetensors"), "");
  const Outcome outcome = Check(R"({"processors": 3, "max_inflight_bytes": "64MiB"})",
                                {"--max-session-bytes", "8MiB"}, {{"LINSERVE_PROCESSORS", "2"}});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  for (const std::string& line :
       {"max_inflight_bytes                 67108864 (64.0 MiB)   [" + path_ + "]",
        "processors                         2   [variable LINSERVE_PROCESSORS, in the place of 3 "
        "in " +
            path_ + "]",
        std::string("max_session_bytes                  8388608 (8.0 MiB)   [command line]"),
        std::string("threads                            0, which becomes 2   [default]"),
        std::string("max_inflight_bytes_per_caller      0, which becomes 33554432 (32.0 MiB)"),
        std::string("lm, version 1: linformer.LinformerLM, "), std::string("of weights in F32"),
        std::string("replicas: 2"),
        std::string("models/half: passed over: not a model: no config.json"),
        std::string("A server would start with it.")}) {
    EXPECT_THAT(outcome.out, HasSubstr(line));
  }
}

TEST_F(CheckConfigTest, NamesAllThatWouldKeepAServerFromStarting) {
  RunningServer running(directory_.File("models"));
  WriteAll(directory_.File("models/lm/config.json"),
           R"({"architecture": "linformer.LinformerLM", "params": {}, "params": {}})");
  const Outcome outcome =
      Check("{}", {"--grpc-address", running.target(), "--http-address", running.http(), "--trace",
                   directory_.File("none/trace.json")});
  EXPECT_EQ(outcome.code, 1);
  for (const std::string& fault : std::vector<std::string>{
           "lm/config.json: the key 'params' stands twice", running.target() + " for gRPC",
           running.http(), "none/trace.json cannot be written"}) {
    EXPECT_THAT(outcome.err, HasSubstr(fault));
  }
  EXPECT_THAT(outcome.out, HasSubstr("lm, version 1: cannot be served: "));
  EXPECT_EQ(RunClient({"health", "--target", running.target()}).code, 0);
}

TEST_F(CheckConfigTest, ChecksPromptsLinksAndTheRoomForWeights) {
  for (const auto& [flags, fault] : std::vector<std::pair<Arguments, std::string>>{
           {{"--default-prompt", "query"}, "default_prompt is 'query', expected a name in its"},
           {{"--max-model-bytes", "1"}, "for its weights, but 1 B are left for them"}}) {
    const Outcome outcome = Check("{}", flags);
    EXPECT_EQ(outcome.code, 1) << fault;
    EXPECT_THAT(outcome.err, HasSubstr(fault));
  }
  InitModel(directory_.File("elsewhere"));
  std::filesystem::create_directory_symlink("../elsewhere", directory_.File("models/out"));
  const Outcome refused = Check("{}");
  EXPECT_EQ(refused.code, 1);
  EXPECT_THAT(refused.err, HasSubstr("a link leads out of the model repository"));
  EXPECT_EQ(Check("{}", {"--exit-on-error", "false"}).code, 0);
  EXPECT_EQ(Check("{}", {"--follow-links"}).code, 0);
}

TEST_F(CheckConfigTest, ChecksDevicesCertificatesAndTokens) {
  for (const auto& [flags, fault] : std::vector<std::pair<Arguments, std::string>>{
           {{"--device", "nowhere:0"}, "device 'nowhere:0' is none of auto"},
           {{"--tls-certificate", "none.crt", "--tls-private-key", "none.key"}, "none.crt"},
           {{"--tokens-file", "none.json"}, "none.json"},
           {{"--model-repository", "none"}, "none"}}) {
    const Outcome outcome = Check("{}", flags);
    EXPECT_EQ(outcome.code, 1) << fault;
    EXPECT_THAT(outcome.err, HasSubstr(fault));
    EXPECT_THAT(outcome.out, HasSubstr("[command line"));
  }
}

// A configuration that is read again while the server runs.
class LiveConfigTest : public CheckConfigTest {};

TEST_F(LiveConfigTest, OnHangupWhatMayChangeDoesAndTheLogSaysSo) {
  WriteAll(path_, R"({"max_queue_sequences": 100})");
  RunningServer server(directory_.File("models"), {"--config", path_});
  WriteAll(path_,
           R"({"max_queue_sequences": 1, "log_level": "debug", "max_message_bytes": "8MiB",
               "max_metadata_bytes": "8KiB"})");
  server.process().Signal(SIGHUP);
  for (const char* line :
       {R"("message":"option changed","option":"max_queue_sequences","from":"100","to":"1")",
        R"("message":"option changed","option":"log_level","from":"info","to":"debug")",
        R"("message":"option changes with the next start only","option":"max_message_bytes")",
        R"("message":"option changes with the next start only","option":"max_metadata_bytes")",
        R"("message":"reloaded","status":"ok")"}) {
    EXPECT_TRUE(server.process().WaitForOut(line)) << line;
  }
  // A request of two sequences finds the queue's new bound, and the log tells of it.
  const Outcome refused =
      RunClient({"embed", "--target", server.target(), "--batch", "2"}, "one\ntwo\n");
  EXPECT_THAT(refused.err, HasSubstr("max_queue_sequences = 1"));
  EXPECT_THAT(refused.err,
              testing::Not(HasSubstr("retry-delay")));  // it would not fit then, either
  EXPECT_TRUE(server.process().WaitForOut("request finished"));
  WriteAll(path_, R"({"max_queue_sequences": -1})");
  server.process().Signal(SIGHUP);
  EXPECT_TRUE(server.process().WaitForError(R"("message":"the configuration stays as it was")"));
  EXPECT_EQ(server.Stop(), 0);
}

TEST_F(LiveConfigTest, ThatAVariableOverridesAnotherValueIsSaid) {
  const auto serve = [&](const std::string& file) {
    WriteAll(path_, file);
    return RunLinserve({"serve", "--config", path_, "--model-repository", directory_.File("none")},
                       {{"LINSERVE_PROCESSORS", "2"}});
  };
  for (const char* agreeing : {"{}", R"({"processors": 2})"}) {
    const Outcome outcome = serve(agreeing);
    EXPECT_THAT(outcome.out + outcome.err, testing::Not(HasSubstr("overrides"))) << agreeing;
  }
  EXPECT_THAT(serve(R"({"processors": 3})").out,
              HasSubstr("a variable overrides the configuration file option=processors value=2 "
                        "by=\"variable LINSERVE_PROCESSORS\" in_place_of=3"));
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
