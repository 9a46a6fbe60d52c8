#include "repository/repository_scan.h"

#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <filesystem>
#include <optional>
#include <string_view>
#include <tuple>
#include <utility>

#include "core/strings/quote.h"
#include "core/strings/utf8.h"
#include "telemetry/log.h"

namespace linserve {
namespace {

namespace fs = std::filesystem;

constexpr size_t kMostVersions = 4096;  // each has threads and metrics of its own
constexpr size_t kLongestName = 128;    // as every protocol has it
constexpr const char* kNoConfig = "not a model: no config.json";
// Names what a load may read besides what IsRead() knows by the ends of names.
constexpr std::array kModelFiles = std::to_array<std::string_view>(
    {"tokenizer.model", "tokenizer.json", "vocab.json", "vocab.txt", "merges.txt",
     "added_tokens.json", "special_tokens_map.json", "modules.json",
     "config_sentence_transformers.json", "artifact.metadata", "chat_template.jinja"});

// Holds what is found in a repository.
struct Scan {
  std::vector<ModelDirectory> models{};
  std::vector<PassedOver> passed_over{};

  void PassOver(const fs::path& directory, const std::string& because) {
    passed_over.push_back({directory.string(), because});
  }
};

// Returns whether a model is there. Some of sentence-transformers have no config.json. The overload
// does not throw: what cannot be looked at, a link to itself say, is no model.
bool IsModel(const fs::path& path) {
  std::error_code error;
  return fs::is_regular_file(path / "config.json", error) ||
         fs::is_regular_file(path / "modules.json", error);
}

// Returns whether the directory is a model, and not a repository in which a config.json lies, too.
bool IsModelItself(const fs::path& path) {
  std::error_code error;
  return IsModel(path) && (fs::exists(path / "modules.json", error) ||
                           fs::exists(path / "model.safetensors", error) ||
                           fs::exists(path / "model.safetensors.index.json", error));
}

std::optional<int64_t> VersionNumber(const std::string& name) {
  int64_t version = 0;
  const char* end = name.data() + name.size();
  const auto parsed = std::from_chars(name.data(), end, version);
  if (parsed.ec != std::errc() || parsed.ptr != end || version < 1) return std::nullopt;
  // "01" beside "1" would be one version twice.
  if (std::to_string(version) != name) return std::nullopt;
  return version;
}

absl::StatusOr<std::vector<fs::path>> Subdirectories(const fs::path& path) {
  std::vector<fs::path> found;
  std::error_code error;
  for (fs::directory_iterator entry(path, error), end; !error && entry != end;
       entry.increment(error)) {
    std::error_code unknown;
    if (entry->is_directory(unknown)) found.push_back(entry->path());
  }
  if (error) return absl::NotFoundError("cannot read " + path.string() + ": " + error.message());
  return found;
}

// Returns whether a load may read a file of this name: weights may lie in shards, whose names an
// index gives, and sentence-transformers has settings in sentence_TYPE_config.json.
bool IsRead(const std::string& name) {
  return name == "config.json" || name.ends_with("_config.json") ||
         name.ends_with(".safetensors") || name.ends_with(".index.json") ||
         std::find(kModelFiles.begin(), kModelFiles.end(), name) != kModelFiles.end();
}

void AddFiles(const fs::path& directory, std::vector<fs::path>& files) {
  std::error_code error;
  for (fs::directory_iterator entry(directory, error), end; !error && entry != end;
       entry.increment(error)) {
    if (IsRead(entry->path().filename())) files.push_back(entry->path());
  }
}

// Returns the paths of all that a load may read of a model: its own directory's files, and those of
// the modules of sentence-transformers, each of which has a directory in it.
std::vector<fs::path> FilesOf(const fs::path& model) {
  std::vector<fs::path> files;
  AddFiles(model, files);
  for (const fs::path& module : Subdirectories(model).value_or(std::vector<fs::path>())) {
    if (!VersionNumber(module.filename())) AddFiles(module, files);
  }
  std::sort(files.begin(), files.end());
  return files;
}

// Says why a directory is passed over in which there is neither a model nor a version of one; "" if
// nothing in it looks like a part of a model.
std::string WhyNoModel(const fs::path& path) {
  for (const fs::path& snapshot :
       Subdirectories(path / "snapshots").value_or(std::vector<fs::path>())) {
    if (!IsModel(snapshot)) continue;
    return "it is a cache of the Hugging Face hub; to serve it, give its snapshot a name: ln -s " +
           (path.filename() / "snapshots" / snapshot.filename()).string() + " NAME";
  }
  return FilesOf(path).empty() ? "" : kNoConfig;
}

void ScanModel(const fs::path& path, Scan& scan) {
  const std::string name = path.filename();
  const auto entries = Subdirectories(path);
  if (IsModel(path)) {
    scan.models.push_back({name, 1, path});
    for (const fs::path& entry : entries.value_or(std::vector<fs::path>())) {
      if (!VersionNumber(entry.filename()) || !IsModel(entry)) continue;
      scan.PassOver(entry, "its model has a config.json of its own");
    }
    return;
  }
  if (!entries.ok()) return scan.PassOver(path, std::string(entries.status().message()));
  bool any = false;
  for (const fs::path& entry : *entries) {
    const std::string own = entry.filename();
    const auto version = VersionNumber(own);
    if (own.starts_with('.') || (!version && !IsModel(entry))) continue;
    any = true;
    if (!version) {
      scan.PassOver(entry, Quoted(own) + " is no version; expected a number such as 1");
    } else if (!IsModel(entry)) {
      scan.PassOver(entry, kNoConfig);
    } else {
      scan.models.push_back({name, *version, entry});
    }
  }
  const std::string why = any ? "" : WhyNoModel(path);
  if (!why.empty()) scan.PassOver(path, why);
}

std::string WhyNoName() {
  return "no caller can name it, expected at most " + std::to_string(kLongestName) +
         " bytes of UTF-8";
}

bool CanBeNamed(const std::string& name) { return IsUtf8(name) && name.size() <= kLongestName; }

bool IsBelow(const fs::path& root, const fs::path& path) {
  return std::mismatch(root.begin(), root.end(), path.begin(), path.end()).first == root.end();
}

// Says which link leads the loader out of the repository; "" if none does. A file that cannot be
// found is left to the loader.
std::string LeadsOut(const fs::path& root, const ModelDirectory& model) {
  for (const fs::path& file : FilesOf(model.path)) {
    std::error_code missing;
    const fs::path real = fs::canonical(file, missing);
    if (missing || IsBelow(root, real)) continue;
    return model.path + ": a link leads out of the model repository, " + file.string() + " to " +
           real.string() + "; copy or mount it there, or serve with --follow-links";
  }
  return "";
}

absl::Status NoModel(const std::string& root, const std::vector<PassedOver>& passed_over) {
  constexpr size_t kMostNamed = 4;
  std::string named;
  for (size_t i = 0; i < std::min(passed_over.size(), kMostNamed); ++i) {
    named += "; " + passed_over[i].directory + ": " + passed_over[i].because;
  }
  return absl::NotFoundError("no model in " + root + ": expected " + root +
                             "/NAME/config.json or " + root + "/NAME/VERSION/config.json" + named +
                             "; `linserve init --help` tells how to make one");
}

// Returns the model that the root is itself.
absl::StatusOr<ModelDirectory> RootModel(const RepositoryRoot& root) {
  std::error_code error;
  const fs::path real = fs::canonical(root.path, error);
  if (error) return absl::NotFoundError("cannot read " + root.path + ": " + error.message());
  const std::string name = root.model_name.empty() ? real.filename().string() : root.model_name;
  if (!CanBeNamed(name)) {
    return absl::InvalidArgumentError(root.path + " is a model itself, and " + WhyNoName() +
                                      "; give it another by --model-name");
  }
  return ModelDirectory{name, 1, root.path};
}

// Looks for the models below a root.
absl::Status ScanRoot(const std::string& root, Scan& scan) {
  const auto entries = Subdirectories(root);
  if (!entries.ok()) return entries.status();
  for (const fs::path& entry : *entries) {
    const std::string name = entry.filename();
    // A model on its way in or a tool's own directory, and what volumes have.
    if (name.starts_with('.') || name == "lost+found") continue;
    if (CanBeNamed(name)) {
      ScanModel(entry, scan);
    } else {
      scan.PassOver(entry, WhyNoName());
    }
  }
  return absl::OkStatus();
}

absl::Status RefuseWhatLeadsOut(const std::string& root, std::vector<ModelDirectory>& found) {
  std::error_code error;
  const fs::path real = fs::canonical(root, error);
  if (error) return absl::NotFoundError("cannot read " + root + ": " + error.message());
  for (ModelDirectory& model : found) model.refused = LeadsOut(real, model);
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::vector<ModelDirectory>> ScanRepository(const RepositoryRoot& root,
                                                           std::vector<PassedOver>* passed_over) {
  std::error_code error;
  if (!fs::is_directory(root.path, error)) {
    return absl::NotFoundError("the model repository " + root.path +
                               " is not a directory; give one with --model-repository");
  }
  Scan scan;
  if (IsModelItself(root.path)) {
    auto model = RootModel(root);
    if (!model.ok()) return model.status();
    scan.models.push_back(*std::move(model));
  } else if (absl::Status status = ScanRoot(root.path, scan); !status.ok()) {
    return status;
  }
  std::vector<ModelDirectory>& found = scan.models;
  if (!root.follow_links) {
    if (absl::Status status = RefuseWhatLeadsOut(root.path, found); !status.ok()) return status;
  }
  std::sort(scan.passed_over.begin(), scan.passed_over.end());
  if (found.empty()) return NoModel(root.path, scan.passed_over);
  if (found.size() > kMostVersions) {
    return absl::ResourceExhaustedError(root.path + " has " + std::to_string(found.size()) +
                                        " model versions, expected at most " +
                                        std::to_string(kMostVersions));
  }
  std::sort(found.begin(), found.end(), [](const ModelDirectory& a, const ModelDirectory& b) {
    return std::tie(a.name, a.version) < std::tie(b.name, b.version);
  });
  if (passed_over != nullptr) *passed_over = std::move(scan.passed_over);
  return std::move(found);
}

void WarnOfVersions(const std::string& root, const std::vector<ModelDirectory>& found) {
  const auto is_version = [](const ModelDirectory& model) {
    return VersionNumber(model.name).has_value();
  };
  if (!std::all_of(found.begin(), found.end(), is_version)) return;
  Log(LogLevel::kWarning,
      "models are named by numbers: is the repository one of their directories?",
      {{"directory", root}, {"first", found.front().name}});
}

std::string LatestVersion(const std::string& path) {
  int64_t latest = 0;
  const auto entries = Subdirectories(path);
  if (IsModel(path) || !entries.ok()) return path;
  for (const fs::path& entry : *entries) {
    if (IsModel(entry)) latest = std::max(latest, VersionNumber(entry.filename()).value_or(0));
  }
  return latest == 0 ? path : (fs::path(path) / std::to_string(latest)).string();
}

std::string StampOf(const ModelDirectory& directory) {
  std::string stamp;
  for (const fs::path& file : FilesOf(directory.path)) {
    // stat() is used and not std::filesystem: a file that replaces another may have its time, but
    // not its inode.
    struct stat found = {};
    if (stat(file.c_str(), &found) != 0) continue;
    for (const int64_t part : {static_cast<int64_t>(found.st_ino), int64_t{found.st_size},
                               int64_t{found.st_mtim.tv_sec}, int64_t{found.st_mtim.tv_nsec}}) {
      stamp += std::to_string(part) + " ";
    }
  }
  return stamp;
}

std::string StampsOf(const std::vector<ModelDirectory>& found, const std::string& model) {
  std::string stamps;
  for (const ModelDirectory& directory : found) {
    if (directory.name != model) continue;
    stamps += std::to_string(directory.version) + ": " + StampOf(directory);
  }
  return stamps;
}

}  // namespace linserve
