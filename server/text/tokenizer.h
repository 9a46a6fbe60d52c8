#pragma once

#include <cstdint>
#include <memory>
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

// A SentencePiece model (https://github.com/google/sentencepiece): text to token ids. Thread-safe.
class Tokenizer {
 public:
  // NOT_FOUND if there is no such file, INVALID_ARGUMENT if it is no SentencePiece model.
  static absl::StatusOr<std::shared_ptr<const Tokenizer>> Load(const std::string& path);

  ~Tokenizer() { functions_.unload(model_); }
  Tokenizer(const Tokenizer&) = delete;
  Tokenizer& operator=(const Tokenizer&) = delete;

  int64_t vocabulary() const { return functions_.size(model_); }  // ids are below it

  // As the package's encode() gives them: without the marks of a beginning or end, none for an
  // empty text. INVALID_ARGUMENT if the text is not UTF-8.
  absl::StatusOr<std::vector<int64_t>> Encode(std::string_view text) const;

 private:
  // Takes the model over.
  Tokenizer(const PieceFunctions& functions, void* model) : functions_(functions), model_(model) {}

  const PieceFunctions& functions_;
  void* const model_;
};

// At most `longest` ids are left; 0: as many as there are. INVALID_ARGUMENT tells both numbers.
absl::Status Truncate(Truncation truncation, int64_t longest, std::vector<int64_t>& ids);

}  // namespace linserve
