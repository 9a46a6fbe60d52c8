#include "engine/repository.h"

#include <filesystem>
#include <thread>

#include "engine/engine_fixture.h"

namespace linserve {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::IsEmpty;

constexpr auto kNotFound = absl::StatusCode::kNotFound;

class ScanTest : public testing::Test {
 protected:
  void MakeModel(const std::string& path) const {
    fs::create_directories(dir_.File(path));
    WriteAll(dir_.File(path + "/config.json"), "{}");
  }
  std::string root() const { return dir_.File("repository"); }

  // "NAME VERSION PATH" of each, the path below the root.
  std::vector<std::string> Scan() const {
    const auto found = ScanRepository(root());
    std::vector<std::string> lines;
    if (!found.ok()) return {found.status().ToString()};
    for (const ModelDirectory& model : *found) {
      lines.push_back(model.name + " " + std::to_string(model.version) + " " +
                      fs::path(model.path).lexically_relative(root()).string());
    }
    return lines;
  }

  TempDir dir_;
};

TEST_F(ScanTest, FindsModelsWithAndWithoutVersions) {
  MakeModel("repository/b");
  MakeModel("repository/a/10");
  MakeModel("repository/a/2");
  EXPECT_THAT(Scan(), ElementsAre("a 2 a/2", "a 10 a/10", "b 1 b"));
}

TEST_F(ScanTest, TakesADirectoryWithAConfigForOneModelWhateverIsInIt) {
  MakeModel("repository/a");
  MakeModel("repository/a/2");
  EXPECT_THAT(Scan(), ElementsAre("a 1 a"));
}

TEST_F(ScanTest, FollowsLinks) {
  MakeModel("elsewhere");
  fs::create_directories(root());
  fs::create_directory_symlink(dir_.File("elsewhere"), root() + "/a");
  EXPECT_THAT(Scan(), ElementsAre("a 1 a"));
}

TEST_F(ScanTest, PassesOverWhatIsNoModel) {
  MakeModel("repository/a/1");
  MakeModel("repository/a/latest");
  MakeModel("repository/a/0");
  MakeModel("repository/a/01");
  MakeModel("repository/a/-1");
  MakeModel("repository/a/99999999999999999999");
  fs::create_directories(root() + "/a/7");
  fs::create_directories(root() + "/empty/config.json");
  WriteAll(root() + "/README.md", "");
  WriteAll(root() + "/a/8", "");
  EXPECT_THAT(Scan(), ElementsAre("a 1 a/1"));
}

TEST_F(ScanTest, PassesOverWhatCannotBeRead) {
  MakeModel("repository/a");
  fs::create_symlink(root() + "/loop", root() + "/loop");
  fs::create_directories(root() + "/b/2");
  fs::create_symlink(root() + "/b/config.json", root() + "/b/config.json");
  fs::create_symlink(root() + "/b/3", root() + "/b/3");
  // As a volume's lost+found; to the superuser it is just empty.
  fs::create_directories(root() + "/lost+found");
  fs::permissions(root() + "/lost+found", fs::perms::none);
  EXPECT_THAT(Scan(), ElementsAre("a 1 a"));
}

TEST_F(ScanTest, SaysWhatItLookedForIfThereIsNone) {
  EXPECT_THAT(ScanRepository(root()), IsStatus(kNotFound, "is not a directory"));
  fs::create_directories(root());
  EXPECT_THAT(ScanRepository(root()),
              IsStatus(kNotFound, "no model in " + root() + ": expected " + root() + "/NAME/"));
  WriteAll(dir_.File("file"), "");
  EXPECT_THAT(ScanRepository(dir_.File("file")), IsStatus(kNotFound, "is not a directory"));
}

class RepositoryTest : public EngineTest {
 protected:
  std::shared_ptr<ServedModel> Load(const std::string& name, int64_t version) {
    ModelMetrics& metrics = metrics_.ForModel(name, version);
    auto model = std::make_shared<ServedModel>();
    model->name = name;
    model->version = version;
    model->engine = *Engine::Start(options_, FakeModelFactory(control_), metrics);
    return model;
  }
};

TEST_F(RepositoryTest, FindsTheLatestVersionUnlessOneIsNamed) {
  ModelRepository repository({{"a", 2, ""}, {"a", 10, ""}, {"b", 30, ""}});
  const auto ten = Load("a", 10);
  const auto two = Load("a", 2);
  const auto other = Load("b", 30);
  for (const auto& model : {ten, other, two}) repository.Add(model);
  EXPECT_EQ(*repository.Find("a", 0), ten);
  EXPECT_EQ(*repository.Find("a", 2), two);
  EXPECT_EQ(*repository.Find("a", 10), ten);
  EXPECT_EQ(*repository.Find("b", 0), other);
  EXPECT_THAT(repository.List(), ElementsAre(two, ten, other));
}

TEST_F(RepositoryTest, FindsTheOnlyModelWithoutItsName) {
  ModelRepository repository({{"a", 1, ""}, {"a", 2, ""}});
  const auto one = Load("a", 1);
  repository.Add(one);
  EXPECT_EQ(*repository.Find("", 0), one);
  EXPECT_EQ(*repository.Find("", 1), one);
}

TEST_F(RepositoryTest, WantsANameIfThereAreSeveralModels) {
  ModelRepository repository({{"a", 1, ""}, {"b", 3, ""}});
  repository.Add(Load("a", 1));
  EXPECT_THAT(repository.Find("", 0), IsInvalid("no model was named and there are several"));
  EXPECT_THAT(repository.Find("", 0), IsInvalid("a version 1, b version 3"));
}

TEST_F(RepositoryTest, IsUnavailableWhileAModelIsLoading) {
  ModelRepository repository({{"a", 1, ""}, {"a", 2, ""}});
  constexpr auto kUnavailable = absl::StatusCode::kUnavailable;
  EXPECT_THAT(repository.Find("a", 0), IsStatus(kUnavailable, "'a' is loading"));
  EXPECT_THAT(repository.Find("", 0), IsStatus(kUnavailable, "'a' is loading"));
  EXPECT_THAT(repository.List(), IsEmpty());
  repository.Add(Load("a", 1));
  EXPECT_TRUE(repository.Find("a", 0).ok());
  EXPECT_THAT(repository.Find("a", 2), IsStatus(kUnavailable, "'a' is loading"));
}

TEST_F(RepositoryTest, ListsWhatThereIsIfItDoesNotHaveAModel) {
  const ModelRepository repository({{"a", 1, ""}, {"a", 2, ""}, {"b", 1, ""}});
  EXPECT_THAT(repository.Find("c", 0),
              IsStatus(kNotFound, "no model 'c'; there is a version 1, a version 2, b version 1"));
  EXPECT_THAT(repository.Find("a", 3), IsStatus(kNotFound, "no model 'a' version 3; there is"));
  EXPECT_THAT(repository.Find("a", -1), IsStatus(kNotFound, "version -1"));
}

TEST_F(RepositoryTest, LetsEveryModelRefuseRequestsAsSoonAsItDrains) {
  ModelRepository repository({{"a", 1, ""}, {"b", 1, ""}});
  const auto busy = Load("a", 1);
  const auto idle = Load("b", 1);
  repository.Add(busy);
  repository.Add(idle);
  control_->Hold();
  Request request = Of(occupant_, {1});
  ASSERT_TRUE(busy->engine->Submit(request).ok());
  control_->AwaitHeld(1);
  // Refused although the drain still waits for the first model.
  std::jthread drain([&] { EXPECT_EQ(repository.Drain(TimePoint::max()), 0u); });
  absl::Status status;
  while (status.ok()) {
    request = Of(std::make_shared<RecordingSink>(), {65});
    status = idle->engine->Submit(request);
    std::this_thread::yield();
  }
  EXPECT_THAT(status, IsStatus(absl::StatusCode::kUnavailable, "draining"));
  EXPECT_EQ(occupant_->delivered(), 0u);
  control_->LetGo();
  drain.join();
  EXPECT_EQ(occupant_->delivered(), 1u);
}

}  // namespace
}  // namespace linserve
