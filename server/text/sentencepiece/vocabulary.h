#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "text/sentencepiece/piece_model.h"
#include "text/sentencepiece/piece_trie.h"

namespace linserve {

// Stands for a space in pieces and in normalised texts.
inline constexpr std::string_view kSpaceSymbol = "\xE2\x96\x81";

// Holds the pieces of a model, checked, and what is looked up among them.
struct Vocabulary {
  // INVALID_ARGUMENT says what is wrong with the model.
  static absl::StatusOr<std::shared_ptr<const Vocabulary>> Make(PieceModel model);

  // Returns the id of the control piece of this text; -1 if there is none.
  int ControlId(std::string_view text) const;

  // Returns whether the pieces of a normalised text on both sides of `at` do not depend on each
  // other: no piece reaches across. REQUIRES: characters begin at 0 and `at`, which is inside.
  bool CanCut(std::string_view text, size_t at) const;

  PieceModel model;
  PieceTrie found;         // ids of the pieces that texts are made of: normal, user-defined, unused
  PieceTrie user_defined;  // those of `found` that are taken wherever they stand
  int32_t unknown = -1;
  float least_score = 0;  // of the normal pieces
  float most_score = 0;
  size_t longest = 0;                // bytes of the longest piece in `found`
  std::array<int32_t, 256> bytes{};  // ids of the byte pieces, where the model has byte_fallback

 private:
  explicit Vocabulary(PieceModel parsed) : model(std::move(parsed)) {}
  absl::Status CheckPieces();
  absl::Status FindBytes();
  void Index();

  std::vector<uint64_t> neighbours_;  // pairs of characters that stand side by side in a piece
};

}  // namespace linserve
