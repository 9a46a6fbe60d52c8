#include "models/checkpoint/checkpoint_files.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <set>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "core/files/file.h"
#include "core/json/json_text.h"
#include "core/strings/quote.h"
#include "core/system/memory.h"

namespace linserve {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr size_t kMostShards = 1024;
constexpr size_t kLongestIndex = 32 << 20;  // as a safetensors header
constexpr size_t kLongestName = 255;        // of a file, on every file system

std::string IndexPath(const std::string& directory) {
  return WeightsPath(directory) + ".index.json";
}

std::string HowToConvert(const std::string& file) {
  // fairseq and Lightning save their arguments as a Namespace, which executes nothing. Old versions
  // of torch have no list of what may be read.
  return "convert it in Python, where it was trained: `import argparse, torch, "
         "safetensors.torch as st; "
         "getattr(torch.serialization, \"add_safe_globals\", id)([argparse.Namespace]); "
         "d = torch.load(\"" +
         file +
         "\", map_location=\"cpu\", weights_only=True); d = next((d[k] for k in (\"state_dict\", "
         "\"model_state_dict\", \"model\", \"module\") if k in d), d); t = {k: "
         "v.clone().contiguous() for k, v in d.items() if torch.is_tensor(v)}; assert t, list(d); "
         "st.save_file(t, \"model.safetensors\")`";
}

// Says how a file begins, what it then is, and how it becomes what is read.
struct OtherFormat {
  std::string_view magic;
  const char* what;
  bool pickle;
};

constexpr std::array kOtherFormats = {
    OtherFormat{
        "version https://git-lfs.github.com/spec/",
        "a pointer of Git LFS and not the file itself: run `git lfs pull` in the clone that "
        "it comes from",
        false},
    OtherFormat{"PK\x03\x04", "a pickle in a zip, as torch.save() writes it", true},
    OtherFormat{"\x80\x02", "a pickle, as torch.save() writes it", true},
    OtherFormat{"\x80\x04", "a pickle", true},
    OtherFormat{"GGUF",
                "GGUF, llama.cpp's format, which has other names and other numbers: save the "
                "state_dict that it was made of with safetensors.torch.save_model()",
                false},
    OtherFormat{"\x89HDF\r\n",
                "HDF5, which Keras writes: save a PyTorch state_dict with "
                "safetensors.torch.save_model()",
                false},
};

// Says what a file is that is not in the safetensors format; "" if it may be, or nobody knows.
std::string OtherFormatOf(const std::string& path) {
  if (path.ends_with(".distcp")) {
    return "a part of what torch.distributed.checkpoint (FSDP) writes: join the parts by "
           "`python -m torch.distributed.checkpoint.format_utils dcp_to_torch FOLDER model.pt`, "
           "and give that to linserve_export";
  }
  const auto file = InputFile::Open(path);
  if (!file.ok()) return "";
  std::array<char, 64> begin{};
  const size_t size = std::min(begin.size(), file->size());
  if (!file->Read(0, reinterpret_cast<std::byte*>(begin.data()), size).ok()) return "";
  const std::string_view text(begin.data(), size);
  for (const OtherFormat& format : kOtherFormats) {
    if (!text.starts_with(format.magic)) continue;
    std::string what = format.what;
    if (format.pickle)
      what += ", which may run any code: " + HowToConvert(fs::path(path).filename());
    return what;
  }
  return "";
}

absl::StatusOr<SafetensorsFile> ReadOne(const std::string& path) {
  auto file = ReadSafetensors(path);
  if (file.ok()) return file;
  const std::string other = OtherFormatOf(path);
  if (other.empty()) return file;
  return absl::InvalidArgumentError(path + " is " + other);
}

// Says what lies in a directory without model.safetensors.
absl::Status NoWeights(const std::string& directory) {
  constexpr size_t kMostNamed = 4;
  const std::set<std::string> extensions = {".bin",  ".pt", ".pth",         ".ckpt",  ".pkl",
                                            ".gguf", ".h5", ".safetensors", ".distcp"};
  std::set<std::string> found;
  std::error_code error;
  for (fs::directory_iterator entry(directory, error), end; !error && entry != end;
       entry.increment(error)) {
    const std::string name = entry->path().filename();
    // That is linserve_export's, and holds inputs and outputs.
    const bool example = name == "example.safetensors";
    if (!example && extensions.contains(entry->path().extension())) found.insert(name);
  }
  std::string message = "there is no model.safetensors in " + directory;
  if (found.empty()) {
    return absl::NotFoundError(message + "; safetensors.torch.save_model() writes it");
  }
  size_t named = 0;
  for (const std::string& name : found) {
    if (++named > kMostNamed) break;
    const std::string other = OtherFormatOf(directory + "/" + name);
    message += "; " + Quoted(name) + " is " +
               (!other.empty() ? other
                : name.ends_with(".safetensors")
                    ? "not read under this name: rename it, or write the index of its shards"
                    : "of no format that is read: " + HowToConvert(name));
  }
  return absl::NotFoundError(message);
}

// Holds the files of an index, each with the names of its tensors.
using Shards = std::map<std::string, std::set<std::string>>;

absl::StatusOr<Shards> ReadIndex(const std::string& path) {
  const auto fault = [&](const std::string& what) {
    return absl::InvalidArgumentError(path + ": " + what);
  };
  const auto text = ReadFile(path, kLongestIndex);
  if (!text.ok()) return text.status();
  const auto index = ParseJson(*text);
  if (!index.ok()) return fault(std::string(index.status().message()));
  const auto map = index->find("weight_map");
  if (map == index->end() || !map->is_object()) {
    return fault("\"weight_map\" must be an object of tensor names and their files");
  }
  Shards shards;
  for (const auto& [tensor, file] : map->items()) {
    const std::string name = file.is_string() ? file.get<std::string>() : "";
    // It is joined to the directory's path, so it must not lead elsewhere.
    if (name.empty() || name.size() > kLongestName || name.find('/') != std::string::npos ||
        !name.ends_with(".safetensors")) {
      return fault("tensor " + Quoted(tensor) + " is in " + Quoted(name) +
                   ", expected the name of a .safetensors file beside the index");
    }
    shards[name].insert(tensor);
    if (shards.size() > kMostShards) {
      return fault("it names more than " + std::to_string(kMostShards) + " files");
    }
  }
  return shards;
}

absl::StatusOr<SafetensorsFile> ReadShards(const std::string& directory, const Shards& shards) {
  SafetensorsFile whole;
  for (const auto& [name, tensors] : shards) {
    auto shard = ReadOne(directory + "/" + name);
    if (!shard.ok()) return shard.status();
    for (const std::string& tensor : tensors) {
      if (shard->tensors.contains(tensor)) continue;
      return absl::InvalidArgumentError(IndexPath(directory) + ": tensor " + Quoted(tensor) +
                                        " is not in " + Quoted(name) +
                                        ", as the index says: the files are not of one checkpoint");
    }
    for (auto& [tensor, value] : shard->tensors) {
      if (whole.tensors.emplace(tensor, std::move(value)).second) continue;
      return absl::InvalidArgumentError(directory + ": tensor " + Quoted(tensor) + " is in " +
                                        Quoted(name) + " and another file, too");
    }
    whole.metadata.merge(shard->metadata);
  }
  return whole;
}

int64_t SizeOf(const std::string& path) {
  std::error_code error;
  const auto size = fs::file_size(path, error);
  return error ? 0 : static_cast<int64_t>(size);
}

int64_t SizeOf(const std::string& directory, const Shards& shards) {
  int64_t sum = 0;
  for (const auto& [name, tensors] : shards) {
    if (__builtin_add_overflow(sum, SizeOf(directory + "/" + name), &sum)) return sum;
  }
  return sum;
}

bool Exists(const std::string& path) {
  std::error_code error;
  return fs::exists(path, error);
}

}  // namespace

std::string WeightsPath(const std::string& directory) { return directory + "/model.safetensors"; }

absl::StatusOr<SafetensorsFile> ReadCheckpoint(const std::string& directory) {
  if (Exists(WeightsPath(directory))) return ReadOne(WeightsPath(directory));
  if (!Exists(IndexPath(directory))) return NoWeights(directory);
  const auto shards = ReadIndex(IndexPath(directory));
  if (!shards.ok()) return shards.status();
  const auto bytes = static_cast<double>(SizeOf(directory, *shards));
  if (bytes > static_cast<double>(MemoryBytes())) {
    return absl::ResourceExhaustedError(
        IndexPath(directory) + ": its files are of " + FormatBytes(bytes) + ", but there are " +
        FormatBytes(static_cast<double>(MemoryBytes())) + " of memory");
  }
  return ReadShards(directory, *shards);
}

std::set<std::string> CheckpointTensorNames(const std::string& directory) {
  std::set<std::string> names;
  if (Exists(WeightsPath(directory))) {
    const auto shapes = ReadSafetensorsShapes(WeightsPath(directory));
    if (!shapes.ok()) return names;
    for (const auto& [name, shape] : *shapes) names.insert(name);
    return names;
  }
  auto shards = ReadIndex(IndexPath(directory));
  if (!shards.ok()) return names;
  for (auto& [file, tensors] : *shards) names.merge(tensors);
  return names;
}

int64_t CheckpointBytes(const std::string& directory) {
  if (Exists(WeightsPath(directory))) return SizeOf(WeightsPath(directory));
  const auto shards = ReadIndex(IndexPath(directory));
  return shards.ok() ? SizeOf(directory, *shards) : 0;
}

}  // namespace linserve
