#include "repository/repository_scan.h"

#include <filesystem>

#include "support/test_files.h"

namespace linserve {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::HasSubstr;

class ScanTest : public testing::Test {
 protected:
  void MakeModel(const std::string& path) const {
    fs::create_directories(dir_.File(path));
    WriteAll(dir_.File(path + "/config.json"), "{}");
  }
  std::string root() const { return dir_.File("repository"); }

  // Returns "NAME VERSION PATH" of each, the path below the root.
  std::vector<std::string> Scan(bool follow_links = false) const {
    const auto found = ScanRepository({root(), follow_links});
    std::vector<std::string> lines;
    if (!found.ok()) return {found.status().ToString()};
    for (const ModelDirectory& model : *found) {
      if (!model.refused.empty()) continue;
      lines.push_back(model.name + " " + std::to_string(model.version) + " " +
                      fs::path(model.path).lexically_relative(root()).string());
    }
    return lines;
  }

  // Returns "PATH: BECAUSE" of what is passed over, the path below the root.
  std::vector<std::string> PassedOverOnes() const {
    std::vector<PassedOver> passed_over;
    EXPECT_TRUE(ScanRepository({root()}, &passed_over).ok());
    std::vector<std::string> lines;
    for (const PassedOver& one : passed_over) {
      lines.push_back(fs::path(one.directory).lexically_relative(root()).string() + ": " +
                      one.because);
    }
    return lines;
  }

  TempDir dir_;
};

TEST_F(ScanTest, SkipsNamesThatNoProtocolCanCarry) {
  MakeModel("repository/a");
  MakeModel("repository/\xff\xfe");
  const std::string longest(128, 'b');
  MakeModel("repository/" + longest);
  MakeModel("repository/" + longest + "b");
  EXPECT_THAT(Scan(), ElementsAre("a 1 a", longest + " 1 " + longest));
}

TEST_F(ScanTest, RefusesMoreModelsThanAServerHas) {
  MakeModel("repository/.data/a");
  fs::create_directory(root() + "/a");
  for (int i = 1; i <= 4096; ++i) {
    fs::create_directory_symlink("../.data/a", root() + "/a/" + std::to_string(i));
  }
  EXPECT_TRUE(ScanRepository({root()}).ok());
  MakeModel("repository/b");
  EXPECT_THAT(ScanRepository({root()}),
              IsStatus(kExhaustedCode, "has 4097 model versions, expected at most 4096"));
}

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

TEST_F(ScanTest, FollowsLinksWithinTheRepository) {
  MakeModel("repository/.data/a");
  fs::create_directory_symlink(root() + "/.data/a", root() + "/a");
  MakeModel("repository/b");
  fs::create_symlink("../a/config.json", root() + "/b/model.safetensors");
  EXPECT_THAT(Scan(), ElementsAre("a 1 a", "b 1 b"));
}

TEST_F(ScanTest, FollowsLinksOutOfTheRepositoryOnlyIfItIsAskedTo) {
  MakeModel("elsewhere");
  MakeModel("repository-of-another");
  MakeModel("repository/a");
  fs::create_directory_symlink(dir_.File("elsewhere"), root() + "/b");
  MakeModel("repository/c");
  fs::create_symlink("../../elsewhere/config.json", root() + "/c/model.safetensors");
  fs::create_directory_symlink(dir_.File("repository-of-another"), root() + "/d");
  MakeModel("repository/e");
  fs::create_symlink("../../elsewhere/config.json", root() + "/e/shard-1-of-2.safetensors");
  MakeModel("repository/f");
  fs::create_directory_symlink(dir_.File("elsewhere"), root() + "/f/3_Dense");
  EXPECT_THAT(Scan(), ElementsAre("a 1 a"));
  EXPECT_THAT(Scan(true), ElementsAre("a 1 a", "b 1 b", "c 1 c", "d 1 d", "e 1 e", "f 1 f"));
}

TEST_F(ScanTest, SaysWhichLinkLeadsOutAndWhatPermitsIt) {
  MakeModel("elsewhere");
  fs::create_directories(root());
  fs::create_directory_symlink(dir_.File("elsewhere"), root() + "/a");
  const auto found = ScanRepository({root()});
  ASSERT_TRUE(found.ok()) << found.status();
  EXPECT_THAT(found->at(0).refused,
              HasSubstr(root() + "/a/config.json to " + dir_.File("elsewhere/config.json")));
  EXPECT_THAT(found->at(0).refused, HasSubstr("serve with --follow-links"));
}

TEST_F(ScanTest, TellsWhatItPassesOver) {
  MakeModel("repository/a");
  MakeModel("repository/a/2");
  MakeModel("repository/b/v1");
  MakeModel("repository/b/01");
  MakeModel("repository/b/3");
  fs::create_directories(root() + "/b/4");
  fs::create_directories(root() + "/c");
  WriteAll(root() + "/c/model.safetensors", "");
  fs::create_directories(root() + "/scripts/of/training");
  MakeModel("repository/models--org--name/snapshots/0af1");
  fs::create_directories(root() + "/.git");
  fs::create_directories(root() + "/b/.git");
  fs::create_directories(root() + "/lost+found");
  EXPECT_THAT(
      PassedOverOnes(),
      ElementsAre("a/2: its model has a config.json of its own",
                  "b/01: '01' is no version; expected a number such as 1",
                  "b/4: not a model: no config.json",
                  "b/v1: 'v1' is no version; expected a number such as 1",
                  "c: not a model: no config.json",
                  "models--org--name: it is a cache of the Hugging Face hub; to serve it, give "
                  "its snapshot a name: ln -s models--org--name/snapshots/0af1 NAME"));
}

TEST_F(ScanTest, OfACacheOfTheHubServesTheSnapshotThatIsLinkedInBesideIt) {
  MakeModel("repository/models--org--name/blobs");
  fs::create_directories(root() + "/models--org--name/snapshots/0af1");
  fs::create_symlink("../../blobs/config.json",
                     root() + "/models--org--name/snapshots/0af1/config.json");
  fs::create_directory_symlink("models--org--name/snapshots/0af1", root() + "/name");
  EXPECT_THAT(Scan(), ElementsAre("name 1 name"));
}

TEST_F(ScanTest, PassesOverWhatIsNoModel) {
  MakeModel("repository/a/1");
  MakeModel("repository/a/latest");
  MakeModel("repository/a/0");
  MakeModel("repository/a/01");
  MakeModel("repository/a/-1");
  MakeModel("repository/a/99999999999999999999");
  MakeModel("repository/.on-its-way");
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
  // A volume's lost+found is like this; to the superuser it is just empty.
  fs::create_directories(root() + "/lost+found");
  fs::permissions(root() + "/lost+found", fs::perms::none);
  EXPECT_THAT(Scan(), ElementsAre("a 1 a"));
}

TEST_F(ScanTest, SaysWhatItLookedForIfThereIsNone) {
  EXPECT_THAT(ScanRepository({root()}), IsStatus(kNotFoundCode, "is not a directory"));
  fs::create_directories(root());
  EXPECT_THAT(ScanRepository({root()}),
              IsStatus(kNotFoundCode, "no model in " + root() + ": expected " + root() + "/NAME/"));
  MakeModel("repository/a/v1");
  EXPECT_THAT(
      ScanRepository({root()}),
      IsStatus(kNotFoundCode, root() + "/a/v1: 'v1' is no version; expected a number such as 1"));
  WriteAll(dir_.File("file"), "");
  EXPECT_THAT(ScanRepository({dir_.File("file")}), IsStatus(kNotFoundCode, "is not a directory"));
}

TEST_F(ScanTest, TakesAModelForARepositoryOfItself) {
  // A folder of sentence-transformers holds others with a config.json.
  MakeModel("repository/1_Pooling");
  WriteAll(root() + "/config.json", "{}");
  EXPECT_THAT(Scan(), ElementsAre("1_Pooling 1 1_Pooling"));
  WriteAll(root() + "/model.safetensors", "");
  EXPECT_THAT(Scan(), ElementsAre("repository 1 ."));
  fs::remove(root() + "/model.safetensors");
  WriteAll(root() + "/modules.json", "[]");
  EXPECT_THAT(Scan(), ElementsAre("repository 1 ."));
  const auto named = ScanRepository({.path = root() + "/", .model_name = "bge"});
  ASSERT_TRUE(named.ok()) << named.status();
  EXPECT_EQ(named->front().name, "bge");
  EXPECT_THAT(ScanRepository({.path = root(), .model_name = std::string(129, 'a')}),
              IsInvalid("is a model itself, and no caller can name it"));
}

TEST_F(ScanTest, ANameForAModelSaysNothingOfThoseOfARepository) {
  MakeModel("repository/a");
  const auto found = ScanRepository({.path = root(), .model_name = "bge"});
  ASSERT_TRUE(found.ok()) << found.status();
  EXPECT_EQ(found->front().name, "a");
}

TEST_F(ScanTest, TheLatestVersionIsThatOfTheLargestNumber) {
  for (const char* version : {"2", "10", "09", "latest"}) {
    MakeModel(std::string("repository/a/") + version);
  }
  fs::create_directories(root() + "/a/11");
  EXPECT_EQ(LatestVersion(root() + "/a"), root() + "/a/10");
  EXPECT_EQ(LatestVersion(root() + "/a/"), root() + "/a/10");
  EXPECT_EQ(LatestVersion(root() + "/a/2"), root() + "/a/2");
  EXPECT_EQ(LatestVersion(root() + "/a/11"), root() + "/a/11");
  MakeModel("repository/b");
  EXPECT_EQ(LatestVersion(root() + "/b"), root() + "/b");
  EXPECT_EQ(LatestVersion(root() + "/none"), root() + "/none");
}

TEST_F(ScanTest, FingerprintsTellWhetherFilesWereReplaced) {
  MakeModel("repository/a");
  const ModelDirectory directory{"a", 1, root() + "/a"};
  const std::string before = StampOf(directory);
  EXPECT_EQ(StampOf(directory), before);
  WriteAll(root() + "/a/model.safetensors", "weights");
  const std::string with_weights = StampOf(directory);
  EXPECT_NE(with_weights, before);
  // The new file has the same size and, as a copy may, the same time.
  const auto time = fs::last_write_time(root() + "/a/model.safetensors");
  WriteAll(root() + "/a/new", "WEIGHTS");
  fs::last_write_time(root() + "/a/new", time);
  fs::rename(root() + "/a/new", root() + "/a/model.safetensors");
  const std::string renamed = StampOf(directory);
  EXPECT_NE(renamed, with_weights);
  WriteAll(root() + "/a/model-00001-of-00002.safetensors", "a shard");
  const std::string with_shard = StampOf(directory);
  EXPECT_NE(with_shard, renamed);
  WriteAll(root() + "/a/new", "A SHARD");
  fs::rename(root() + "/a/new", root() + "/a/model-00001-of-00002.safetensors");
  std::string last = StampOf(directory);
  EXPECT_NE(last, with_shard);
  for (const char* file :
       {"3_Dense/config.json", "3_Dense/model.safetensors", "3_Dense/model.safetensors.index.json",
        "sentence_roberta_config.json", "merges.txt", "added_tokens.json",
        "special_tokens_map.json", "artifact.metadata", "chat_template.jinja"}) {
    fs::create_directories(root() + "/a/3_Dense");
    WriteAll(root() + "/a/" + file, "{}");
    const std::string now = StampOf(directory);
    EXPECT_NE(now, last) << file;
    last = now;
  }
}

}  // namespace
}  // namespace linserve
