#pragma once

#include <string>

namespace linserve {

// Says how a static model reads texts, as its folder has it: without marks around them.
struct StaticSettings {
  std::string tokenizer{};  // the folder of its tokenizer.json, in the model's; "": the model's own
  bool as_model2vec = false;  // no more characters are read than those of so many tokens as a rule,
                              // and unknown tokens are left out
};

}  // namespace linserve
