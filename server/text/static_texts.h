#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "core/strings/static_settings.h"
#include "text/tokenizer.h"

namespace linserve {

// Knows what of a text becomes tokens in a static model. Thread-safe.
class StaticTexts {
 public:
  StaticTexts(const StaticSettings& settings, const Tokenizer& tokenizer);

  // Returns what of the text is read where `longest` tokens of it are kept; 0: any number. As
  // model2vec has it, so many are taken to have the median length of a token each.
  std::string_view Read(std::string_view text, int64_t longest) const;

  // Takes out the tokens that have no row, once a text is cut to its longest.
  void LeaveOut(std::vector<int64_t>& ids) const;

 private:
  int64_t characters_of_token_ = 0;  // 0: texts are read to their ends
  std::optional<int64_t> unknown_;   // nullopt: no token is left out
};

}  // namespace linserve
