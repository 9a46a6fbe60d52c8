#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "core/item.h"
#include "engine/repository.h"
#include "text/tokenizer.h"
#include "text/turns.h"

namespace linserve {

// A text of a request, and which of its items it is for.
struct TextInput {
  size_t item = 0;
  std::string_view text;
};

// The texts of a request on their way into its items.
struct Tokenization {
  std::shared_ptr<const ServedModel> model;
  std::vector<absl::StatusOr<Item>> items{};
  std::vector<TextInput> texts{};
  std::shared_ptr<const void> owner;  // of what the texts view
  Truncation truncation = Truncation::kNone;
  int64_t max_text_bytes = 0;
  std::function<bool()> abandoned;  // whether the caller has left
  TimePoint begin{};                // when it was handed to Tokenize()
  std::function<void(std::vector<absl::StatusOr<Item>>)> done{};
};

// Puts the token ids of each text into its item, or the text's fault into the item's place, and
// then calls `done`: on one of the threads, or at once where there are no texts.
void Tokenize(Turns& threads, Tokenization work);

}  // namespace linserve
