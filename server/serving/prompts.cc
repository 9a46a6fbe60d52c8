#include "serving/prompts.h"

#include "core/strings/quote.h"

namespace linserve {

absl::StatusOr<std::string> PromptOf(const ServedModel& model, const std::string& asked) {
  const std::string& name = asked.empty() ? model.default_prompt : asked;
  if (name.empty()) return "";
  const auto found = model.prompts.find(name);
  if (found != model.prompts.end()) return found->second;
  std::string names;
  for (const auto& [known, prompt] : model.prompts) {
    names += (names.empty() ? "" : ", ") + Quoted(known);
  }
  return absl::InvalidArgumentError(
      "'prompt_name': model " + Quoted(model.name) + " has no prompt " + Quoted(name) + "; " +
      (names.empty() ? "it has none at all (\"prompts\" in the \"serving\" object of its "
                       "config.json, or in a Hugging Face folder's "
                       "config_sentence_transformers.json)"
                     : "expected one of " + names));
}

}  // namespace linserve
