#include "text/sentencepiece/piece_model.h"

#include <bit>
#include <cstring>
#include <optional>
#include <string>

namespace linserve {
namespace {

static_assert(std::endian::native == std::endian::little, "the file's numbers are little-endian");

// Holds one field of a protobuf message.
struct Field {
  uint32_t number = 0;
  uint64_t value = 0;      // of a number
  std::string_view bytes;  // of a text or a message
};

// Reads the fields of a message one by one.
class Fields {
 public:
  explicit Fields(std::string_view message) : rest_(message) {}

  // Returns the next field; nullopt at the end, or where the bytes are no message.
  std::optional<Field> Next() {
    if (rest_.empty()) return std::nullopt;
    const uint64_t tag = Varint();
    Field field{.number = static_cast<uint32_t>(tag >> 3), .value = 0, .bytes = {}};
    switch (tag & 7) {
      case 0:
        field.value = Varint();
        break;
      case 1:
        field.value = Fixed(8);
        break;
      case 2:
        field.bytes = Bytes(Varint());
        break;
      case 5:
        field.value = Fixed(4);
        break;
      default:
        sound_ = false;
    }
    sound_ = sound_ && field.number > 0;
    return sound_ ? std::optional(field) : std::nullopt;
  }

  // Says whether all bytes up to here were fields of a message.
  bool sound() const { return sound_; }

 private:
  std::string_view Bytes(uint64_t count) {
    sound_ = sound_ && count <= rest_.size();
    if (!sound_) return {};
    const std::string_view bytes = rest_.substr(0, count);
    rest_.remove_prefix(count);
    return bytes;
  }

  uint64_t Fixed(size_t count) {
    uint64_t value = 0;
    const std::string_view bytes = Bytes(count);
    if (sound_) std::memcpy(&value, bytes.data(), count);
    return value;
  }

  uint64_t Varint() {
    uint64_t value = 0;
    for (int shift = 0; shift < 64; shift += 7) {
      const std::string_view byte = Bytes(1);
      if (!sound_) return 0;
      value |= static_cast<uint64_t>(byte[0] & 0x7F) << shift;
      if ((byte[0] & 0x80) == 0) return value;
    }
    sound_ = false;
    return 0;
  }

  std::string_view rest_;
  bool sound_ = true;
};

// Models have a quarter of a million. A piece takes more in memory than in a file.
constexpr size_t kMostPieces = size_t{1} << 20;

bool ReadPiece(std::string_view message, Piece& piece) {
  Fields fields(message);
  while (const auto field = fields.Next()) {
    if (field->number == 1) piece.text = field->bytes;
    if (field->number == 2) piece.score = std::bit_cast<float>(static_cast<uint32_t>(field->value));
    if (field->number == 3 && field->value >= 1 && field->value <= 6) {
      piece.kind = static_cast<PieceKind>(field->value);
    }
  }
  return fields.sound();
}

bool ReadTrainer(std::string_view message, PieceModel& model) {
  Fields fields(message);
  while (const auto field = fields.Next()) {
    switch (field->number) {
      case 3:  // model_type
        if (field->value >= 1 && field->value <= 4) {
          model.method = static_cast<PieceMethod>(field->value);
        }
        break;
      case 24:  // treat_whitespace_as_suffix
        model.whitespace_as_suffix = field->value != 0;
        break;
      case 35:  // byte_fallback
        model.byte_fallback = field->value != 0;
        break;
      case 44:  // unk_surface
        model.unknown_surface = field->bytes;
        break;
      case 46:  // bos_piece
        if (!field->bytes.empty()) model.bos = field->bytes;
        break;
      case 47:  // eos_piece
        if (!field->bytes.empty()) model.eos = field->bytes;
        break;
      default:
        break;
    }
  }
  return fields.sound();
}

bool ReadRules(std::string_view message, NormalizerRules& rules) {
  Fields fields(message);
  while (const auto field = fields.Next()) {
    if (field->number == 2) rules.charsmap = field->bytes;
    if (field->number == 3) rules.add_dummy_prefix = field->value != 0;
    if (field->number == 4) rules.remove_extra_whitespaces = field->value != 0;
    if (field->number == 5) rules.escape_whitespaces = field->value != 0;
  }
  return fields.sound();
}

bool ReadField(const Field& field, PieceModel& model) {
  switch (field.number) {
    case 1:  // pieces
      if (model.pieces.size() == kMostPieces) return false;
      return ReadPiece(field.bytes, model.pieces.emplace_back());
    case 2:  // trainer_spec
      return ReadTrainer(field.bytes, model);
    case 3:  // normalizer_spec
      return ReadRules(field.bytes, model.normalizer);
    case 5:  // denormalizer_spec
      return ReadRules(field.bytes, model.denormalizer);
    default:
      return true;
  }
}

}  // namespace

absl::StatusOr<PieceModel> ParsePieceModel(std::string_view bytes) {
  PieceModel model;
  Fields fields(bytes);
  bool sound = true;
  while (const auto field = fields.Next()) sound = sound && ReadField(*field, model);
  if (sound && fields.sound()) return model;
  return absl::InvalidArgumentError(
      "its bytes are no message of sentencepiece_model.proto, or one of more than " +
      std::to_string(kMostPieces) + " pieces");
}

}  // namespace linserve
