#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/sequence/item.h"
#include "core/threads/step_pool.h"
#include "repository/repository.h"
#include "text/tokenizer.h"

namespace linserve {

// Says how a text is read.
struct TextReading {
  TextTask task = TextTask::kNone;  // of a late-interaction model
  std::string prompt{};             // stands before it
  int64_t most_tokens = 0;          // that it may have; 0: those the model takes
};

// Holds a text of a request, or two that are read together, and says which of its items it is for.
struct TextInput {
  size_t item = 0;
  std::string_view text;
  std::optional<std::string_view> second{};
  std::shared_ptr<const TextReading> reading{};  // null: that of all texts of the request

  size_t bytes() const { return text.size() + (second ? second->size() : 0); }
};

// Holds the texts of a request on their way into its items.
struct Tokenization {
  std::shared_ptr<const ServedModel> model;
  std::vector<absl::StatusOr<Item>> items{};
  std::vector<TextInput> texts{};
  std::shared_ptr<const void> owner;  // keeps alive what the texts view
  // How the texts are read; of two, the prompt stands before the first. It also says how many ids
  // are left where ids are truncated.
  TextReading reading{};
  Truncation truncation = Truncation::kNone;
  int64_t max_text_bytes = 0;
  std::string caller{};
  TimePoint deadline = TimePoint::max();
  std::function<bool()> abandoned;  // whether the caller has left
  std::function<absl::Status(int64_t)>
      reserve{};      // takes so many bytes more of what may be in flight
  TimePoint begin{};  // when Tokenize() got it
  // Called with the items, or with why the request is refused; also with the latter if the former
  // throws.
  std::function<void(absl::StatusOr<std::vector<absl::StatusOr<Item>>>)> done{};
};

// Returns how much work it is to tokenize a text of so many bytes, in the unit of all jobs of those
// threads.
constexpr int64_t WorkOfText(size_t bytes) { return 512 + static_cast<int64_t>(bytes); }

// Returns how many tokens a text may have by the model's settings; 0: as many as the model takes.
int64_t MostTextTokens(const ServedModel& model, TextTask task);

// Returns how many tokens along the axis a text that is read so may have beside these inputs; 0:
// any number.
int64_t MostTokens(const Tokenization& work, const TextReading& reading, const Item& item,
                   char letter);

// Puts the token ids of each text into its item, or the text's fault into the item's place, and
// then calls `done`. That happens on one of the threads, or at once where there are no texts.
// RESOURCE_EXHAUSTED says that the deadline leaves no time for it; then `done` is not called.
absl::Status Tokenize(StepPool& threads, Tokenization work);

}  // namespace linserve
