#include "program/serve/settings.h"

#include <gmock/gmock.h>

#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>

#include "program/serve/live_config.h"
#include "support/test_files.h"

namespace linserve {
namespace {

using testing::Contains;
using testing::Field;
using testing::IsEmpty;
using testing::SizeIs;

using Variables = std::map<std::string, std::string>;

// Sets variables for as long as it lives.
class WithVariables {
 public:
  explicit WithVariables(Variables variables) : variables_(std::move(variables)) {
    for (const auto& [name, value] : variables_) setenv(name.c_str(), value.c_str(), 1);
  }
  ~WithVariables() {
    for (const auto& [name, value] : variables_) unsetenv(name.c_str());
  }
  WithVariables(const WithVariables&) = delete;
  WithVariables& operator=(const WithVariables&) = delete;

 private:
  const Variables variables_;
};

class SettingsTest : public testing::Test {
 protected:
  void Write(const std::string& text) { std::ofstream(settings_.sources.file) << text; }

  std::string OriginOf(const std::string& name) const {
    for (const auto& option : settings_.table.Describe()) {
      if (option.name == name) return option.origin;
    }
    return "";
  }

  TempDir directory_;
  Settings settings_;

 private:
  void SetUp() override {
    settings_.sources.file = directory_.File("linserve.json");
    Write("{}");
  }
};

TEST_F(SettingsTest, RefuseAVariableThatIsOfNoOptionAndNameTheOneItResembles) {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"LINSERVE_MAX_BATCH_TOKEN", "did you mean LINSERVE_MAX_BATCH_TOKENS?"},
      {"LINSERVE_replicas", "did you mean LINSERVE_REPLICAS?"},
      {"LINSERVE_GRPC_ADDRES", "did you mean LINSERVE_GRPC_ADDRESS?"},
      {"LINSERVE_WHATEVER_THIS_IS", "`linserve serve --help` lists"},
      {"LINSERVE_", "`linserve serve --help` lists"}};
  for (const auto& [name, hint] : cases) {
    const WithVariables set(Variables{{name, "5"}});
    EXPECT_THAT(settings_.Read(), IsInvalid("the variable " + name + " is of no option; " + hint));
  }
}

TEST_F(SettingsTest, SayWhereTheMembersOfServingStandInTheServersOwnFile) {
  Write(R"({"serving": {"max_batch_tokens": 512}})");
  EXPECT_THAT(settings_.Read(), IsInvalid("here its members stand at the top level"));
}

TEST_F(SettingsTest, SayThatTheFileIsJson) {
  Write("replicas: 2");
  EXPECT_THAT(settings_.Read(), IsInvalid("the configuration, which is JSON, cannot be read: " +
                                          settings_.sources.file));
}

TEST_F(SettingsTest, OverlookWhatKubernetesSetsBesideServices) {
  for (const std::string service : {"LINSERVE", "LINSERVE_HEADLESS", "LINSERVE_CANARY_2"}) {
    const WithVariables set(Variables{{service + "_SERVICE_HOST", "10.0.0.1"},
                                      {service + "_SERVICE_PORT", "8500"},
                                      {service + "_SERVICE_PORT_GRPC", "8500"},
                                      {service + "_PORT", "tcp://10.0.0.1:8500"},
                                      {service + "_PORT_8500_TCP", "tcp://10.0.0.1:8500"},
                                      {service + "_PORT_8500_TCP_PROTO", "tcp"},
                                      {service + "_PORT_8500_TCP_PORT", "8500"},
                                      {service + "_PORT_8500_TCP_ADDR", "10.0.0.1"}});
    EXPECT_TRUE(settings_.Read().ok()) << settings_.Read();
  }
  // Somebody who sets a port means something else.
  const WithVariables set(Variables{{"LINSERVE_GRPC_PORT", "8500"}});
  EXPECT_THAT(settings_.Read(), IsInvalid("LINSERVE_GRPC_PORT is of no option"));
}

TEST_F(SettingsTest, OverlookTheVariablesOfClientsAndScripts) {
  const WithVariables set(Variables{{"LINSERVE_TOKEN", "t"},
                                    {"LINSERVE_ALONE_build", "/"},
                                    {"LINSERVE_TEST_DATA", "/"},
                                    {"LINSERVE_TEST_BIN", "/"}});
  EXPECT_TRUE(settings_.Read().ok()) << settings_.Read();
}

TEST_F(SettingsTest, SayWhereEachValueStands) {
  Write(R"({"threads": 2, "replicas": 2, "dtype": "bf16"})");
  settings_.sources.flags = {{"replicas", "3"}};
  const WithVariables set(Variables{{"LINSERVE_THREADS", "4"}});
  ASSERT_TRUE(settings_.Read().ok());
  EXPECT_EQ(OriginOf("threads"), "variable LINSERVE_THREADS");
  EXPECT_EQ(OriginOf("replicas"), "command line");
  EXPECT_EQ(OriginOf("dtype"), settings_.sources.file);
  EXPECT_EQ(OriginOf("padding"), "");
}

TEST_F(SettingsTest, TakeWhatMayChangeWhenTheyAreReadAgain) {
  Write(R"({"log_level": "info", "threads": 2})");
  ASSERT_TRUE(settings_.Read().ok());
  Write(R"({"log_level": "debug", "threads": 3, "max_queue_tokens": 7})");
  const auto changes = LiveConfig(settings_, settings_.config).Reload();
  ASSERT_TRUE(changes.ok()) << changes.status();
  EXPECT_THAT(*changes, SizeIs(3));
  using Change = OptionTable::Change;
  EXPECT_THAT(*changes, Contains(testing::AllOf(Field(&Change::name, "threads"),
                                                Field(&Change::taken, false))));
  EXPECT_EQ(settings_.config.log.level, LogLevel::kDebug);
  EXPECT_EQ(settings_.config.serving.queue.max_tokens, 7);
  EXPECT_EQ(settings_.config.serving.threads, 2);
}

TEST_F(SettingsTest, SayWhatAVariableOverridesWhenTheyAreReadAgain) {
  Write(R"({"log_level": "info"})");
  const WithVariables set(Variables{{"LINSERVE_LOG_LEVEL", "warning"}});
  ASSERT_TRUE(settings_.Read().ok());
  Write(R"({"log_level": "debug"})");
  LiveConfig live(settings_, settings_.config);
  EXPECT_THAT(*live.Reload(), IsEmpty());
  using Description = OptionTable::Description;
  EXPECT_THAT(live.Describe(),
              Contains(testing::AllOf(Field(&Description::name, "log_level"),
                                      Field(&Description::overridden, R"("debug")"),
                                      Field(&Description::overridden_origin, live.file()))));
}

TEST_F(SettingsTest, StayAsTheyWereWhereTheyCannotBeReadAgain) {
  ASSERT_TRUE(settings_.Read().ok());
  for (const char* broken : {R"({"log_level": "debug", "threads": -1})", "{", R"({"thread": 1})"}) {
    Write(broken);
    EXPECT_THAT(LiveConfig(settings_, settings_.config).Reload(),
                IsInvalid(settings_.sources.file));
    EXPECT_EQ(settings_.config.log.level, LogLevel::kInfo);
  }
}

TEST_F(SettingsTest, ThatRunKeepWhatWasPlannedUntilAnOptionSaysOtherwise) {
  ASSERT_TRUE(settings_.Read().ok());
  Config planned = settings_.config;
  planned.grpc.inflight.max_bytes = 1000;
  LiveConfig live(settings_, planned);
  Write(R"({"max_queue_tokens": 7})");
  ASSERT_TRUE(live.Reload().ok());
  EXPECT_EQ(live.Get().serving.queue.max_tokens, 7);
  EXPECT_EQ(live.Get().grpc.inflight.max_bytes, 1000);
  Write(R"({"max_queue_tokens": 7, "max_inflight_bytes": "2KiB"})");
  EXPECT_THAT(*live.Reload(), SizeIs(1));
  EXPECT_EQ(live.Get().grpc.inflight.max_bytes, 2048);
  EXPECT_THAT(*live.Reload(), IsEmpty());
  // How much the memory plan leaves is known at the start only.
  Write(R"({"max_queue_tokens": 7})");
  using Change = OptionTable::Change;
  EXPECT_THAT(*live.Reload(),
              testing::ElementsAre(testing::AllOf(Field(&Change::name, "max_inflight_bytes"),
                                                  Field(&Change::taken, false))));
  EXPECT_EQ(live.Get().grpc.inflight.max_bytes, 2048);
}

TEST_F(SettingsTest, TakeOriginsWithSpacesBetweenThem) {
  Write(R"({"http_cors_origins": "https://a.example, https://b.example:3000"})");
  ASSERT_TRUE(settings_.Read().ok());
  EXPECT_THAT(settings_.config.http.cors_origins,
              testing::ElementsAre("https://a.example", "https://b.example:3000"));
  for (const char* wrong :
       {"a.example", "https://a.example https://b.example", "https://a/b", "*,*"}) {
    Write(nlohmann::json{{"http_cors_origins", wrong}}.dump());
    EXPECT_FALSE(LiveConfig(settings_, settings_.config).Reload().ok()) << wrong;
  }
}

}  // namespace
}  // namespace linserve
