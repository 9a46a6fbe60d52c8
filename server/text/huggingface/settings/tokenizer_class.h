#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>

namespace linserve {

// Names the tokenizers that transformers 5 makes of a file's tokens alone: how it normalises and
// splits texts, and which marks it puts around them, follows from the class and from
// tokenizer_config.json, whatever else the file says.
enum class TokenizerClass : uint8_t {
  kNone,  // all follows from the file
  kBert,
  kMpnet,
  kRoberta,
  kXlmRoberta,
  kCamembert,
  kDebertaV2,
  kT5,
  kBigBird,
  kMolformer,  // from the code that lies beside the models
  kEsm,        // of a vocab.txt, which other files are not
};

// Returns the class of a name without "Fast", which may be that of one that is built alike.
TokenizerClass ClassNamed(const std::string& name);

// Returns the name of the class that transformers takes for a type of models where the files name
// none; "" if all follows from the file.
std::string ClassOfModels(const std::string& model_type);

// Says whether transformers takes a tokenizer.json of this type of models as it is, even if
// tokenizer_config.json names a class.
bool KeepsFile(const std::string& model_type);

// Says whether transformers gives types of tokens to the model where no file lists what the model
// takes. The name is the class's without "Fast".
bool TakesTypes(TokenizerClass kind, const std::string& name);

// Returns the marks that a class has where no file names others, by their names in
// tokenizer_config.json.
nlohmann::json UsualMarks(TokenizerClass kind);

}  // namespace linserve
