#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

namespace linserve {

// Lists the kinds of pieces by their numbers in the file.
enum class PieceKind : uint8_t {
  kNormal = 1,
  kUnknown = 2,
  kControl = 3,
  kUserDefined = 4,
  kUnused = 5,
  kByte = 6,
};

struct Piece {
  std::string text;
  float score = 0;
  PieceKind kind = PieceKind::kNormal;
};

// Lists the ways to choose pieces by their numbers in the file.
enum class PieceMethod : uint8_t { kUnigram = 1, kBpe = 2, kWord = 3, kChar = 4 };

// Says how a text is normalised.
struct NormalizerRules {
  // Holds four bytes with the size of a double-array trie, the trie, and the texts that its values
  // are offsets of. Empty: every character stays what it is.
  std::string charsmap;
  bool add_dummy_prefix = true;
  bool remove_extra_whitespaces = true;
  bool escape_whitespaces = true;
};

// Holds what a file of SentencePiece (https://github.com/google/sentencepiece) says: a message of
// its sentencepiece_model.proto. It is read here because the protobuf inside that library and the
// one of gRPC cannot be in one program.
struct PieceModel {
  std::vector<Piece> pieces;
  PieceMethod method = PieceMethod::kUnigram;
  bool whitespace_as_suffix = false;
  bool byte_fallback = false;
  std::string unknown_surface = " \xE2\x81\x87 ";
  std::string bos = "<s>";
  std::string eos = "</s>";
  NormalizerRules normalizer;
  NormalizerRules denormalizer;
};

// Reads a file's bytes. INVALID_ARGUMENT says what is wrong with them.
absl::StatusOr<PieceModel> ParsePieceModel(std::string_view bytes);

}  // namespace linserve
