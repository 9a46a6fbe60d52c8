#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/sequence/truncation.h"
#include "text/sentencepiece/normalizer.h"
#include "text/sentencepiece/vocabulary.h"

namespace linserve {

// Names the model's input that a text becomes.
inline constexpr const char* kTextBecomes = "x";

// Says which marks stand around the pieces of each text, as the package's encode() puts them for
// arguments of these names.
struct TokenizerOptions {
  bool add_bos = false;
  bool add_eos = false;
};

// Turns text into token ids by a SentencePiece model (https://github.com/google/sentencepiece).
// Thread-safe.
class Tokenizer {
 public:
  // Loads a model. Returns NOT_FOUND if there is no such file, INVALID_ARGUMENT if it is no
  // SentencePiece model, or one without a mark that is asked for.
  static absl::StatusOr<std::shared_ptr<const Tokenizer>> Load(
      const std::string& path, const TokenizerOptions& options = {});

  // Returns the number of pieces: ids are below it.
  int64_t vocabulary() const { return static_cast<int64_t>(pieces_->model.pieces.size()); }

  // Returns the ids of a whole text: see TextEncoding.
  absl::StatusOr<std::vector<int64_t>> Encode(std::string_view text) const;

  // Returns the mark that ends the ids of each text, if one does.
  std::optional<int64_t> end_mark() const { return eos_; }

  // Inverts Encode(), without marks or with their names; ids that are not pieces add nothing.
  absl::StatusOr<std::string> Decode(const std::vector<int64_t>& ids, bool marks = false) const;

  // Returns a piece as the vocabulary has it. REQUIRES: `id` is below vocabulary().
  const std::string& PieceOf(int64_t id) const {
    return pieces_->model.pieces[static_cast<size_t>(id)].text;
  }

  // Leaves at most `longest` ids of Encode(), the marks among them; 0: as many as there are.
  // INVALID_ARGUMENT tells `longest`.
  absl::Status Truncate(Truncation truncation, int64_t longest, std::vector<int64_t>& ids) const;

 private:
  friend class TextEncoding;

  explicit Tokenizer(std::shared_ptr<const Vocabulary> pieces);

  const std::shared_ptr<const Vocabulary> pieces_;
  const PieceTrie nothing_kept_;
  const Normalizer normalizer_;
  const Normalizer denormalizer_;
  std::optional<int64_t> bos_;  // set if it is added
  std::optional<int64_t> eos_;
};

}  // namespace linserve
