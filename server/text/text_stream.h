#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "text/tokenizer.h"

namespace linserve {

// Decodes tokens that come one by one. Not thread-safe.
class TextStream {
 public:
  explicit TextStream(std::shared_ptr<const Tokenizer> tokenizer)
      : tokenizer_(std::move(tokenizer)) {}

  // Returns what the token adds to the text: nothing while it only begins a character.
  std::string Add(int64_t id);
  // Returns what was held back for a character that is not complete.
  std::string Rest();

 private:
  std::string TextOf(const std::vector<int64_t>& ids) const;
  // Forgets tokens on which the text of later ones does not depend. `text` is that of all.
  void Forget(const std::string& text);

  const std::shared_ptr<const Tokenizer> tokenizer_;
  std::vector<int64_t> ids_;  // the last ones: a piece's text depends on what is before it
  size_t told_ = 0;           // bytes of their text that were returned
  size_t held_ = 0;           // tokens since text was last returned
};

}  // namespace linserve
