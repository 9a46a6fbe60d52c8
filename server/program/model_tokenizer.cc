#include "program/model_tokenizer.h"

namespace linserve {
namespace {

std::string PathIn(const std::string& directory) { return directory + "/tokenizer.model"; }

}  // namespace

absl::StatusOr<std::shared_ptr<const Tokenizer>> LoadTokenizer(const std::string& directory,
                                                               const ServingOptions& serving) {
  auto tokenizer =
      Tokenizer::Load(PathIn(directory), {.add_bos = serving.add_bos, .add_eos = serving.add_eos});
  if (absl::IsNotFound(tokenizer.status())) return nullptr;
  return tokenizer;
}

absl::Status CheckTokenizer(const std::string& directory, const Tokenizer& tokenizer,
                            const Signature& signature) {
  const std::string path = PathIn(directory);
  const InputSpec* input = signature.FindInput(kTextBecomes);
  if (input == nullptr || input->kind != InputKind::kToken) {
    return absl::InvalidArgumentError(path + ": the model's input 'x' takes no token ids");
  }
  if (tokenizer.vocabulary() <= input->vocabulary) return absl::OkStatus();
  return absl::InvalidArgumentError(path + " has " + std::to_string(tokenizer.vocabulary()) +
                                    " pieces, but the model's vocabulary is " +
                                    std::to_string(input->vocabulary));
}

}  // namespace linserve
