#include "repository/repository.h"

#include <thread>

#include "support/fakes/engine_fixture.h"

namespace linserve {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

class RepositoryTest : public EngineTest {
 protected:
  std::unique_ptr<ServedModel> Load(const std::string& name, int64_t version) {
    auto model = std::make_unique<ServedModel>();
    model->name = name;
    model->version = version;
    model->engine =
        *Engine::Start(options_, FakeModelFactory(control_), metrics_.ForModel(name, version));
    return model;
  }

  void Publish(const std::string& name, int64_t version) {
    repository_.Publish(Load(name, version));
  }

  // Returns "NAME VERSION" of what is found, or why nothing is.
  std::string Found(const std::string& name, int64_t version) const {
    const auto model = repository_.Find(name, version);
    if (!model.ok()) return std::string(model.status().message());
    return (*model)->name + " " + std::to_string((*model)->version);
  }

  // Returns "NAME VERSION STATE REASON" of each version.
  std::vector<std::string> Index() const {
    std::vector<std::string> lines;
    for (const VersionStatus& version : repository_.Index()) {
      lines.push_back(version.name + " " + std::to_string(version.version) + " " +
                      std::string(Name(version.state)) + " " + version.reason);
    }
    return lines;
  }

  double State(const std::string& state) const {
    return Metric("model_state", "state=\"" + state + "\",");
  }

  ModelRepository repository_{metrics_};
};

TEST_F(RepositoryTest, FindsAnOlderVersionWhileTheLatestHasLostItsDevice) {
  Publish("a", 2);
  EXPECT_EQ(Found("a", 0), "a 2");
  EXPECT_TRUE(repository_.Ready().ok());
  LoseDevices(*(*repository_.Find("a", 2))->engine);
  EXPECT_THAT(Found("a", 0), testing::HasSubstr("version 2: its device was lost"));
  EXPECT_EQ(repository_.Served("a", 2)->version, 2);
  EXPECT_THAT(repository_.Ready(), IsStatus(absl::StatusCode::kUnavailable, "version 2"));
  Publish("a", 1);
  EXPECT_TRUE(repository_.Ready().ok());
  EXPECT_EQ(Found("a", 0), "a 1");
  EXPECT_THAT(Found("a", 2), testing::HasSubstr("version 2: its device was lost"));
}

TEST_F(RepositoryTest, FindsTheLatestVersionUnlessOneIsNamed) {
  for (const int64_t version : {10, 2}) Publish("a", version);
  Publish("b", 30);
  EXPECT_EQ(Found("a", 0), "a 10");
  EXPECT_EQ(Found("a", 2), "a 2");
  EXPECT_EQ(Found("a", 10), "a 10");
  EXPECT_EQ(Found("b", 0), "b 30");
  std::vector<std::string> listed;
  for (const auto& model : repository_.List()) {
    listed.push_back(model->name + std::to_string(model->version));
  }
  EXPECT_THAT(listed, ElementsAre("a2", "a10", "b30"));
}

TEST_F(RepositoryTest, FindsTheOnlyModelWithoutItsName) {
  repository_.Announce("a", 2);
  Publish("a", 1);
  EXPECT_EQ(Found("", 0), "a 1");
  EXPECT_EQ(Found("", 1), "a 1");
}

TEST_F(RepositoryTest, WantsANameIfThereAreSeveralModels) {
  Publish("a", 1);
  repository_.Announce("b", 3);
  EXPECT_THAT(repository_.Find("", 0), IsInvalid("no model was named, and there are several: "));
  EXPECT_THAT(repository_.Find("", 0), IsInvalid("a version 1, b version 3"));
}

TEST_F(RepositoryTest, IsUnavailableWhileAModelIsLoading) {
  repository_.Announce("a", 1);
  repository_.Announce("a", 2);
  EXPECT_THAT(repository_.Find("a", 0), IsStatus(kUnavailableCode, "'a' is loading"));
  EXPECT_THAT(repository_.Find("", 0), IsStatus(kUnavailableCode, "'a' is loading"));
  EXPECT_THAT(repository_.List(), IsEmpty());
  EXPECT_THAT(Index(), ElementsAre("a 1 LOADING ", "a 2 LOADING "));
  Publish("a", 1);
  EXPECT_EQ(Found("a", 0), "a 1");
  EXPECT_THAT(repository_.Find("a", 2), IsStatus(kUnavailableCode, "'a' version 2 is loading"));
}

TEST_F(RepositoryTest, ListsWhatThereIsIfItDoesNotHaveAModel) {
  repository_.Announce("a", 1);
  repository_.Announce("a", 2);
  repository_.Announce("b", 1);
  EXPECT_THAT(repository_.Find("c", 0),
              IsStatus(kNotFoundCode,
                       "model 'c' is not found; there is a version 1, a version 2, b version 1"));
  EXPECT_THAT(repository_.Find("a", 3),
              IsStatus(kNotFoundCode, "model 'a' version 3 is not found; there is"));
  EXPECT_THAT(repository_.Find("a", -1), IsStatus(kNotFoundCode, "version -1"));
}

TEST_F(RepositoryTest, ListsAFewOfHundredsIfItDoesNotHaveAModel) {
  for (int64_t version = 1; version <= 512; ++version) repository_.Announce("a", version);
  EXPECT_THAT(Found("b", 0),
              testing::StartsWith("model 'b' is not found; there is a version 1, a version 2"));
  EXPECT_LE(Found("b", 0).size(), 1024U);
}

TEST_F(RepositoryTest, SaysWhyAVersionIsNotServed) {
  repository_.Announce("m", 1);
  EXPECT_EQ(State("LOADING"), 1);
  repository_.Failed("m", 1, "no weights");
  EXPECT_EQ(State("UNAVAILABLE"), 1);
  EXPECT_THAT(Index(), ElementsAre("m 1 UNAVAILABLE no weights"));
  EXPECT_THAT(repository_.Find("m", 0),
              IsStatus(kUnavailableCode, "'m' is not served: no weights"));
}

TEST_F(RepositoryTest, KeepsWhatIsServedIfItsSuccessorCannotBeLoaded) {
  Publish("m", 1);
  repository_.Announce("m", 1);
  EXPECT_EQ(State("READY"), 1);
  repository_.Failed("m", 1, "no weights");
  EXPECT_EQ(Found("m", 0), "m 1");
  EXPECT_THAT(Index(),
              ElementsAre("m 1 READY the files changed, but cannot be loaded: no weights"));
  Publish("m", 1);
  EXPECT_THAT(Index(), ElementsAre("m 1 READY "));
}

TEST_F(RepositoryTest, LetsAReplacedModelAnswerWhatWasSubmittedToIt) {
  Publish("m", 1);
  control_->Hold();
  Request request = Of(sink_, {3, 4});
  ASSERT_TRUE((*repository_.Find("m", 1))->engine->Submit(request).ok());
  control_->AwaitHeld(1);
  const auto old = *repository_.Find("m", 1);
  Publish("m", 1);
  EXPECT_NE(*repository_.Find("m", 1), old);
  // Whoever had found the model before may still submit to it.
  request = Of(occupant_, {5});
  EXPECT_TRUE(old->engine->Submit(request).ok());
  control_->LetGo();
  for (const size_t index : {0, 1}) EXPECT_TRUE(sink_->Await(index).ok());
  EXPECT_TRUE(occupant_->Await(0).ok());
  EXPECT_EQ(State("READY"), 1);
}

TEST_F(RepositoryTest, RetiresEachModelByItself) {
  Publish("m", 1);
  control_->Hold();
  Request request = Of(occupant_, {1});
  ASSERT_TRUE((*repository_.Find("m", 1))->engine->Submit(request).ok());
  control_->AwaitHeld(1);
  // The first one is still answering; those that replace each other meanwhile end.
  for (int i = 0; i < 5; ++i) Publish("m", 1);
  EXPECT_TRUE(WaitUntil([&] { return control_->alive() == 2; }));
  EXPECT_TRUE(WaitUntil([&] { return repository_.weight_bytes() == 2 * kFakeModelBytes; }));
  EXPECT_EQ(occupant_->delivered(), 0u);
  control_->LetGo();
  EXPECT_TRUE(occupant_->Await(0).ok());
  repository_.AwaitRetired(TimePoint::max());
  EXPECT_EQ(repository_.weight_bytes(), kFakeModelBytes);
}

TEST_F(RepositoryTest, ForgetsAVersionThatIsGone) {
  Publish("a", 1);
  Publish("m", 1);
  repository_.Withdraw("m", 1, "unloaded");
  EXPECT_THAT(Index(), ElementsAre("a 1 READY ", "m 1 UNAVAILABLE unloaded"));
  EXPECT_EQ(State("READY"), 0);
  EXPECT_EQ(State("UNAVAILABLE"), 0) << "nobody misses it";
  repository_.Forget("m", 1);
  EXPECT_THAT(Index(), ElementsAre("a 1 READY "));
  EXPECT_THAT(repository_.Find("m", 0), IsStatus(kNotFoundCode, "model 'm' is not found"));
  repository_.Withdraw("nobody", 1, "");
  repository_.Forget("nobody", 1);
}

TEST_F(RepositoryTest, ShowsNothingOfAVersionThatIsGone) {
  const std::string series = R"(model="gone",version="7")";
  Publish("gone", 7);
  const auto under_way = *repository_.Find("gone", 0);
  EXPECT_THAT(metrics_.Scrape(), testing::HasSubstr(series));
  repository_.Forget("gone", 7);
  under_way->engine->metrics().Accepted(1);
  EXPECT_THAT(metrics_.Scrape(), testing::Not(testing::HasSubstr(series)));
}

TEST_F(RepositoryTest, LetsEveryModelRefuseRequestsAsSoonAsItDrains) {
  Publish("a", 1);
  Publish("b", 1);
  const auto busy = *repository_.Find("a", 1);
  const auto idle = *repository_.Find("b", 1);
  control_->Hold();
  Request request = Of(occupant_, {1});
  ASSERT_TRUE(busy->engine->Submit(request).ok());
  control_->AwaitHeld(1);
  // Requests are refused although the drain still waits for the first model.
  std::jthread drain([&] { EXPECT_EQ(repository_.Drain(TimePoint::max()), 0u); });
  absl::Status status;
  EXPECT_TRUE(WaitUntil([&] {
    request = Of(std::make_shared<RecordingSink>(), {65});
    status = idle->engine->Submit(request);
    return !status.ok();
  }));
  EXPECT_THAT(status, IsStatus(absl::StatusCode::kUnavailable, "draining"));
  EXPECT_EQ(occupant_->delivered(), 0u);
  control_->LetGo();
  drain.join();
  EXPECT_EQ(occupant_->delivered(), 1u);
}

TEST_F(RepositoryTest, GivesUpWhatAReplacedModelHasNotAnsweredAtTheDeadline) {
  Publish("m", 1);
  control_->Hold();
  Request request = Of(occupant_, {1});
  ASSERT_TRUE((*repository_.Find("m", 1))->engine->Submit(request).ok());
  control_->AwaitHeld(1);
  request = Of(sink_, {1});
  ASSERT_TRUE((*repository_.Find("m", 1))->engine->Submit(request).ok());
  Publish("m", 1);
  EXPECT_EQ(repository_.Drain(SteadyClock().Now()), 1u);
  EXPECT_THAT(sink_->Await(0), IsStatus(kUnavailableCode, "draining"));
  control_->LetGo();
  EXPECT_TRUE(occupant_->Await(0).ok());
}

TEST_F(RepositoryTest, FindsTheOnlyModelThatIsServedBesideABrokenOne) {
  repository_.Failed("a", 1, "no weights");
  EXPECT_THAT(repository_.Find("", 0), IsStatus(kUnavailableCode, "no weights"));
  repository_.Announce("b", 1);
  EXPECT_THAT(repository_.Find("", 0), IsStatus(kUnavailableCode, "'b' is loading"));
  Publish("b", 1);
  EXPECT_EQ(Found("", 0), "b 1");
}

TEST_F(RepositoryTest, KnowsModelsByTheirNamesOnAHubAndByAliases) {
  ModelRepository repository(metrics_, {{"text-embedding-3-small", "a"}, {"b", "a"}});
  repository.Publish(Load("a", 1));
  repository.Publish(Load("b", 1));
  for (const char* name : {"a", "text-embedding-3-small", "org/a", "org/team/a"}) {
    EXPECT_EQ(repository.NameOf(name), "a");
  }
  EXPECT_EQ(repository.NameOf("b"), "b");  // a model's own name goes before an alias
  for (const char* name : {"", "c", "org/c", "a/"}) EXPECT_EQ(repository.NameOf(name), name);
}

}  // namespace
}  // namespace linserve
