#include "repository/model_manager.h"

#include <thread>

#include "repository/model_manager_fixture.h"
#include "support/wait_until.h"
#include "telemetry/scraped.h"

namespace linserve {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::IsEmpty;

TEST_F(ModelManagerTest, TellsWhichVersionsAModelIsServedIn) {
  for (const char* path : {"a/1", "a/2", "a/3", "b/7"}) Write(path, "good");
  Manage("latest(2); b=7,8");
  EXPECT_TRUE(Refresh().ok());
  EXPECT_EQ((*repository_.Find("a", 0))->versions.latest, 2);
  EXPECT_THAT((*repository_.Find("b", 0))->versions.versions, ElementsAre(7, 8));
}

TEST_F(ModelManagerTest, FollowsTheDirectory) {
  Write("a/1", "x");
  Write("b", "x");
  Manage();
  EXPECT_TRUE(Refresh().ok());
  EXPECT_THAT(Index(), ElementsAre("a 1 READY", "b 1 READY"));
  EXPECT_TRUE(ready_["a"]);
  Write("a/2", "x");
  Remove("b");
  EXPECT_TRUE(Refresh().ok());
  EXPECT_THAT(Index(), ElementsAre("a 1 READY", "a 2 READY"));
  EXPECT_FALSE(ready_["b"]);
  EXPECT_EQ((*repository_.Find("a", 0))->version, 2);
}

TEST_F(ModelManagerTest, LoadsOnlyWhatChanged) {
  Write("a", "x");
  Write("b", "x");
  Manage();
  EXPECT_TRUE(Refresh().ok());
  const auto before = *repository_.Find("a", 1);
  EXPECT_TRUE(Refresh().ok());
  EXPECT_EQ(loads_, 2);
  Write("a", "y");
  EXPECT_TRUE(Refresh().ok());
  EXPECT_EQ(loads_, 3);
  EXPECT_NE(*repository_.Find("a", 1), before);
}

TEST_F(ModelManagerTest, KeepsServingWhatABrokenSuccessorWasToReplace) {
  Write("a", "x");
  Manage();
  EXPECT_TRUE(Refresh().ok());
  Write("a", "broken");
  EXPECT_THAT(Refresh(), IsInvalid("the weights are broken"));
  EXPECT_TRUE(repository_.Find("a", 0).ok());
  EXPECT_TRUE(ready_["a"]);
  EXPECT_THAT(repository_.Index()[0].reason, testing::HasSubstr("the weights are broken"));
  // The broken version is not tried again until it changes.
  EXPECT_TRUE(Refresh().ok());
  EXPECT_EQ(loads_, 2);
  Write("a", "y");
  EXPECT_TRUE(Refresh().ok());
  EXPECT_EQ(repository_.Index()[0].reason, "");
}

TEST_F(ModelManagerTest, ServesTheVersionBeforeABrokenOne) {
  Write("a/1", "x");
  Write("a/2", "x");
  Manage("latest");
  EXPECT_TRUE(Refresh().ok());
  EXPECT_THAT(Index(), ElementsAre("a 2 READY"));
  Write("a/3", "broken");
  EXPECT_FALSE(Refresh().ok());
  EXPECT_EQ(Scraped(metrics_.Scrape())[R"(linserve_reload_failures_total{what="models"})"], 1);
  EXPECT_THAT(Index(), ElementsAre("a 2 READY", "a 3 UNAVAILABLE"));
  EXPECT_EQ((*repository_.Find("a", 0))->version, 2);
  EXPECT_THAT(repository_.Find("a", 3), IsStatus(kUnavailableCode, "the weights are broken"));
  Write("a/3", "x");
  EXPECT_TRUE(Refresh().ok());
  EXPECT_EQ((*repository_.Find("a", 0))->version, 3);
  EXPECT_THAT(repository_.Find("a", 2),
              IsStatus(kUnavailableCode, "the version policy has chosen"));
}

TEST_F(ModelManagerTest, FallsBackAtTheStartToo) {
  Write("a/1", "x");
  Write("a/2", "broken");
  Manage("latest");
  EXPECT_FALSE(Refresh().ok());
  EXPECT_EQ((*repository_.Find("a", 0))->version, 1);
}

TEST_F(ModelManagerTest, UnloadsUntilTheModelIsLoadedAgain) {
  Write("a/1", "x");
  Write("a/2", "x");
  Write("b", "x");
  Manage();
  EXPECT_TRUE(Refresh().ok());
  EXPECT_TRUE(Unload("a").ok());
  EXPECT_THAT(Index(), ElementsAre("a 1 UNAVAILABLE", "a 2 UNAVAILABLE", "b 1 READY"));
  EXPECT_FALSE(ready_["a"]);
  EXPECT_TRUE(Refresh().ok());
  EXPECT_THAT(repository_.Find("a", 0), IsStatus(kUnavailableCode, "unloaded"));
  EXPECT_TRUE(LoadByName("a").ok());
  EXPECT_TRUE(repository_.Find("a", 1).ok());
  EXPECT_TRUE(ready_["a"]);
}

TEST_F(ModelManagerTest, WhatWasUnloadedWhileTheRepositoryWasAwayStaysSoUntilItsFilesChange) {
  Write("a", "x");
  Manage();
  EXPECT_TRUE(Refresh().ok());
  std::filesystem::rename(root(), root() + ".away");
  EXPECT_TRUE(Unload("a").ok());
  EXPECT_FALSE(Refresh().ok());
  std::filesystem::rename(root() + ".away", root());
  EXPECT_TRUE(Refresh().ok());
  EXPECT_THAT(repository_.Find("a", 0), IsStatus(kUnavailableCode, "unloaded"));
  Write("a", "yy");
  EXPECT_TRUE(Refresh().ok());
  EXPECT_TRUE(repository_.Find("a", 0).ok());
}

TEST_F(ModelManagerTest, WithdrawsAVersionThatTheLatestReplacesEvenIfItsDeviceIsLost) {
  Write("a/1", "x");
  Manage("latest");
  EXPECT_TRUE(Refresh().ok());
  LoseDevices(*(*repository_.Find("a", 1))->engine);
  Write("a/2", "x");
  EXPECT_TRUE(Refresh().ok());
  EXPECT_THAT(Index(), ElementsAre("a 1 UNAVAILABLE", "a 2 READY"));
  EXPECT_EQ(repository_.Served("a", 1), nullptr);
}

TEST_F(ModelManagerTest, WhatWasUnloadedComesBackOnceItsFilesChange) {
  Write("a/1", "x");
  Write("a/2", "x");
  Manage("latest");
  EXPECT_TRUE(Refresh().ok());
  EXPECT_TRUE(Unload("a").ok());
  Write("a/1", "y");
  EXPECT_TRUE(Refresh().ok());
  EXPECT_EQ((*repository_.Find("a", 0))->version, 2);
}

TEST_F(ModelManagerTest, WhatWasUnloadedDoesNotComeBackInAnOlderVersion) {
  Write("a/1", "x");
  Write("a/2", "x");
  Manage("latest");
  EXPECT_TRUE(Refresh().ok());
  Write("a/2", "broken");
  EXPECT_FALSE(Refresh().ok());
  EXPECT_TRUE(Unload("a").ok());
  EXPECT_TRUE(Refresh().ok());
  EXPECT_THAT(repository_.Find("a", 0), IsStatus(kUnavailableCode, "unloaded"));
}

TEST_F(ModelManagerTest, LoadsAgainByNameWithoutTouchingOthers) {
  Write("a", "x");
  Write("b", "x");
  Manage();
  EXPECT_TRUE(Refresh().ok());
  Write("b", "y");
  const auto a = *repository_.Find("a", 0);
  const auto b = *repository_.Find("b", 0);
  EXPECT_TRUE(LoadByName("a").ok());
  EXPECT_NE(*repository_.Find("a", 0), a);
  EXPECT_EQ(*repository_.Find("b", 0), b);
}

TEST_F(ModelManagerTest, SaysWhyAModelCannotBeLoadedByName) {
  Write("a", "x");
  Manage();
  EXPECT_TRUE(Refresh().ok());
  EXPECT_THAT(LoadByName("c"), IsStatus(kNotFoundCode, "failed to load 'c': no such model in"));
  EXPECT_THAT(Unload("c"), IsStatus(kNotFoundCode, "failed to unload 'c'"));
  Write("c", "broken");
  EXPECT_THAT(LoadByName("c"), IsInvalid("failed to load 'c': the weights are broken"));
}

TEST_F(ModelManagerTest, PollsTheDirectory) {
  Write("a", "x");
  Manage("all", std::chrono::milliseconds(1));
  EXPECT_TRUE(Refresh().ok());
  Write("b", "x");
  EXPECT_TRUE(WaitUntil([&] { return repository_.Find("b", 0).ok(); }));
  Remove("a");
  EXPECT_TRUE(WaitUntil([&] { return repository_.Index().size() == 1; }));
  EXPECT_THAT(Index(), ElementsAre("b 1 READY"));
}

TEST_F(ModelManagerTest, ServesOnIfTheDirectoryCannotBeRead) {
  Write("a", "x");
  Manage();
  EXPECT_TRUE(Refresh().ok());
  fs::rename(root(), dir_.File("away"));
  EXPECT_THAT(Refresh(), IsStatus(kNotFoundCode, "is not a directory"));
  EXPECT_TRUE(repository_.Find("a", 0).ok());
}

TEST_F(ModelManagerTest, SaysWhenTheVersionPolicyAsksForNoVersionThatThereIs) {
  Write("m/1", "x");
  Write("m/2", "x");
  Manage("3");
  const absl::Status status = Refresh();
  EXPECT_THAT(status, IsStatus(kNotFoundCode, "none of the versions 1, 2 of model 'm'"));
  Write("m/3", "x");
  EXPECT_TRUE(Refresh().ok());
  EXPECT_THAT(Index(), ElementsAre("m 3 READY"));
}

// Checks what callers may see while models come, go and break: never a lost or a refused sequence.
TEST_F(ModelManagerTest, SaysSoOnceWhateverElseIsLoaded) {
  Write("a", "x");
  Write("b", "x");
  Manage("all; a=7");
  EXPECT_FALSE(Refresh().ok());
  EXPECT_TRUE(LoadByName("b").ok());
  testing::internal::CaptureStderr();
  EXPECT_FALSE(Refresh().ok());
  EXPECT_THAT(testing::internal::GetCapturedStderr(),
              testing::Not(testing::HasSubstr("model not served")));
}

TEST_F(ModelManagerTest, LogsOnceWhatItPassesOver) {
  Write("a", "x");
  Write("b/v1", "x");
  Manage();
  for (const int times : {1, 0}) {
    testing::internal::CaptureStderr();
    EXPECT_TRUE(Refresh().ok());
    const std::string log = testing::internal::GetCapturedStderr();
    EXPECT_EQ(log.find("'v1' is no version") != std::string::npos, times == 1) << log;
  }
}

TEST_F(ModelManagerTest, AModelThatLinksOutOfTheRepositoryIsUnavailableAndNeverLoaded) {
  Write("a", "x");
  Write("../elsewhere", "x");
  std::filesystem::create_directory_symlink("../elsewhere", root() + "/b");
  Manage();
  EXPECT_THAT(Refresh().message(), testing::HasSubstr("leads out of the model repository"));
  EXPECT_EQ(loads_, 1);
  EXPECT_THAT(Index(), ElementsAre("a 1 READY", "b 1 UNAVAILABLE"));
  EXPECT_THAT(repository_.Find("b", 0).status().message(), testing::HasSubstr("--follow-links"));
  EXPECT_TRUE(Refresh().ok());
}

TEST_F(ModelManagerTest, CallersSeeNothingButAnswersAndMissingModels) {
  constexpr int kRounds = 25;
  Write("stays", "x");
  Write("changes/1", "x");
  Manage("latest");
  EXPECT_TRUE(Refresh().ok());
  std::atomic<bool> stop = false;
  std::atomic<int64_t> answered = 0;
  const auto call = [&](const std::string& model, bool may_be_missing) {
    while (!stop) {
      const auto found = repository_.Find(model, 0);
      if (!found.ok()) {
        EXPECT_TRUE(may_be_missing &&
                    (absl::IsNotFound(found.status()) || absl::IsUnavailable(found.status())))
            << found.status();
        continue;
      }
      const auto sink = std::make_shared<RecordingSink>();
      Request request = Of(sink, {2, 3});
      const absl::Status status = (*found)->engine->Submit(request);
      EXPECT_TRUE(status.ok()) << status;
      for (const size_t index : {0, 1}) {
        const auto result = sink->Await(index);
        EXPECT_TRUE(result.ok()) << result.status();
        EXPECT_EQ(Rows(result), FakeResult(static_cast<int64_t>(index) + 2));
      }
      ++answered;
    }
  };
  {
    std::vector<std::jthread> callers;
    callers.emplace_back(call, "stays", false);
    callers.emplace_back(call, "changes", false);
    callers.emplace_back(call, "changes", false);
    callers.emplace_back(call, "comes", true);
    callers.emplace_back([&] {
      while (!stop) EXPECT_THAT(repository_.Index(), testing::Not(IsEmpty()));
    });
    for (int round = 0; round < kRounds; ++round) {
      const int64_t seen = answered;
      Write("changes/" + std::to_string(round + 2), round % 3 == 1 ? "broken" : "x");
      Write("stays", std::to_string(round));
      round % 2 == 0 ? Write("comes", "x") : Remove("comes");
      (void)Refresh();
      if (round % 5 == 4) (void)LoadByName("stays");
      if (round % 7 == 6) (void)Unload("comes");
      EXPECT_TRUE(WaitUntil([&] { return answered > seen; }));
    }
    stop = true;
  }
  EXPECT_GT(answered, kRounds);
}

TEST_F(ModelManagerTest, TriesFilesThatGoOnChangingOnceAtATime) {
  Write("a/1", "x");
  Write("a/2", "broken");
  std::string more;
  on_load_ = [&] { WriteAll(root() + "/a/2/config.json", "{}" + (more += ' ')); };
  Manage("latest");
  EXPECT_FALSE(Refresh().ok());
  EXPECT_EQ(loads_, 2);  // of the latest version, and of the one before it
  EXPECT_THAT(Index(), ElementsAre("a 1 READY", "a 2 UNAVAILABLE"));
}

}  // namespace
}  // namespace linserve
