#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/truncation.h"
#include "text/sentencepiece/functions.h"

namespace linserve {

// The model's input that a text stands for.
inline constexpr const char* kTextBecomes = "x";

// Marks around the pieces of each text, as the package's encode() puts them for arguments of these
// names.
struct TokenizerOptions {
  bool add_bos = false;
  bool add_eos = false;
};

// A SentencePiece model (https://github.com/google/sentencepiece): text to token ids. Thread-safe.
class Tokenizer {
 public:
  // NOT_FOUND if there is no such file, INVALID_ARGUMENT if it is no SentencePiece model, or one
  // without a mark that is asked for.
  static absl::StatusOr<std::shared_ptr<const Tokenizer>> Load(
      const std::string& path, const TokenizerOptions& options = {});

  ~Tokenizer() { functions_.unload(model_); }
  Tokenizer(const Tokenizer&) = delete;
  Tokenizer& operator=(const Tokenizer&) = delete;

  int64_t vocabulary() const { return functions_.size(model_); }  // ids are below it

  // As the package's encode() gives them, but none for a text without pieces, marks included.
  // INVALID_ARGUMENT if the text is not UTF-8.
  absl::StatusOr<std::vector<int64_t>> Encode(std::string_view text) const;

  // The mark that ends the ids of each text, if one does.
  std::optional<int64_t> end_mark() const { return eos_; }

  // The inverse, without marks; ids that are no pieces say nothing.
  absl::StatusOr<std::string> Decode(const std::vector<int64_t>& ids) const;

  // At most `longest` ids of Encode() are left, the marks among them; 0: as many as there are.
  // INVALID_ARGUMENT tells both numbers.
  absl::Status Truncate(Truncation truncation, int64_t longest, std::vector<int64_t>& ids) const;

 private:
  // Takes the model over.
  Tokenizer(const PieceFunctions& functions, void* model) : functions_(functions), model_(model) {}

  const PieceFunctions& functions_;
  void* const model_;
  std::optional<int64_t> bos_;  // if it is added
  std::optional<int64_t> eos_;
};

}  // namespace linserve
