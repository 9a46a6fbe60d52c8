#include "models/config/own_code.h"

#include <algorithm>
#include <array>
#include <string_view>

#include "core/strings/quote.h"
#include "models/config/config_error.h"

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

}  // namespace linserve
