#include "models/config/own_code.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <string_view>
#include <vector>

#include "absl/strings/str_join.h"
#include "core/strings/quote.h"
#include "models/config/config_error.h"
#include "models/config/folder_file.h"

namespace linserve {
namespace {

using nlohmann::json;

// These are computed as their authors' code has them.
constexpr std::array<std::string_view, 5> kOfTheirAuthors = {
    "jina_bert.", "molformer.", "transformers.EuroBert", "transformers.Gte",
    "transformers.NomicBert"};
// These see earlier rows alone, unless is_causal says otherwise.
constexpr std::array<std::string_view, 4> kCausal = {"transformers.Llama", "transformers.Mistral",
                                                     "transformers.Qwen2", "transformers.Qwen3"};

template <typename Beginnings>
bool StartsWithOne(const std::string& architecture, const Beginnings& beginnings) {
  return std::any_of(beginnings.begin(), beginnings.end(),
                     [&](std::string_view begin) { return architecture.starts_with(begin); });
}

// Returns the automatic class that transformers makes such a model by.
const char* AutoClassOf(const std::string& architecture) {
  if (architecture.ends_with("ForSequenceClassification")) {
    return "AutoModelForSequenceClassification";
  }
  return architecture.ends_with("ForMaskedLM") ? "AutoModelForMaskedLM" : "AutoModel";
}

}  // namespace

void RefuseOwnCode(const json& document, const std::string& architecture) {
  const json map = document.value("auto_map", json());
  const char* const name = AutoClassOf(architecture);
  if (!map.is_object() || !map.contains(name) || map[name].is_null()) return;
  if (StartsWithOne(architecture, kOfTheirAuthors)) return;
  const bool causal = StartsWithOne(architecture, kCausal);
  if (causal && document.value("is_causal", json()).is_boolean()) return;
  const std::string code = map[name].is_string() ? map[name].get<std::string>() : map[name].dump();
  throw ConfigError(
      "config.json: auto_map has the model computed by code of the folder's own, " + Quoted(code) +
      ", which is not run here" +
      (causal ? "; write \"is_causal\": false if by that code all rows see each other, as those "
                "of gte-Qwen2 do, or true if it computes what transformers' own class does"
              : "; if it computes what transformers' own class does, remove " + Quoted(name) +
                    " from auto_map"));
}

void RefuseAdapter(const std::string& directory) {
  constexpr const char* kFile = "adapter_config.json";
  if (FolderFile(directory, kFile).is_null()) return;
  throw ConfigError(std::string(kFile) +
                    ": the folder is an adapter, which is not added to weights here; save the "
                    "model with it merged: "
                    "PeftModel.merge_and_unload() and save_pretrained()");
}

std::vector<std::string> WarningsOfAdapters(const std::string& directory) {
  std::vector<std::string> names;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(directory, error)) {
    const std::string name = entry.path().filename();
    if (FolderHas(directory, name + "/adapter_config.json")) names.push_back(Quoted(name));
  }
  if (names.empty()) return {};
  std::sort(names.begin(), names.end());
  return {
      "the vectors are those of the model without its adapters (" + absl::StrJoin(names, ", ") +
      "), none of which is added to the weights; for a task's own vectors save a model with its "
      "adapter merged: PeftModel.from_pretrained(MODEL, FOLDER, subfolder=ADAPTER), "
      "merge_and_unload() and save_pretrained()"};
}

}  // namespace linserve
