#include "text/tokenizer.h"

#include <filesystem>
#include <limits>
#include <utility>

#include "core/files/file.h"
#include "text/sentencepiece/decode_pieces.h"
#include "text/text_encoding.h"

namespace linserve {
namespace {

constexpr size_t kLargest = 32 << 20;  // some megabytes are usual

// Returns the id of a mark, if it is asked for.
absl::StatusOr<std::optional<int64_t>> MarkOf(bool wanted, int id, const char* option,
                                              const std::string& path) {
  if (!wanted) return std::nullopt;
  if (id >= 0) return std::optional<int64_t>(id);
  return absl::InvalidArgumentError(path + " has no piece that " + option + " could add");
}

absl::StatusOr<std::shared_ptr<const Vocabulary>> LoadPieces(const std::string& path) {
  const auto bytes = ReadFile(path, kLargest);
  if (!bytes.ok()) return bytes.status();
  auto model = ParsePieceModel(*bytes);
  if (!model.ok()) return model.status();
  for (const NormalizerRules* rules : {&model->normalizer, &model->denormalizer}) {
    if (absl::Status status = CheckRules(*rules); !status.ok()) return status;
  }
  return Vocabulary::Make(*std::move(model));
}

}  // namespace

Tokenizer::Tokenizer(std::shared_ptr<const Vocabulary> pieces)
    : pieces_(std::move(pieces)),
      normalizer_(pieces_->model.normalizer, pieces_->user_defined,
                  pieces_->model.whitespace_as_suffix),
      denormalizer_(pieces_->model.denormalizer, nothing_kept_, false) {}

absl::StatusOr<std::shared_ptr<const Tokenizer>> Tokenizer::Load(const std::string& path,
                                                                 const TokenizerOptions& options) {
  std::error_code error;
  if (!std::filesystem::is_regular_file(path, error)) {
    return absl::NotFoundError("there is no tokenizer at " + path);
  }
  auto pieces = LoadPieces(path);
  if (!pieces.ok()) {
    return absl::InvalidArgumentError(
        path + " is no SentencePiece model: " + std::string(pieces.status().message()));
  }
  const std::shared_ptr<Tokenizer> tokenizer(new Tokenizer(*std::move(pieces)));
  const Vocabulary& vocabulary = *tokenizer->pieces_;
  const auto bos =
      MarkOf(options.add_bos, vocabulary.ControlId(vocabulary.model.bos), "add_bos", path);
  if (!bos.ok()) return bos.status();
  const auto eos =
      MarkOf(options.add_eos, vocabulary.ControlId(vocabulary.model.eos), "add_eos", path);
  if (!eos.ok()) return eos.status();
  tokenizer->bos_ = *bos;
  tokenizer->eos_ = *eos;
  return tokenizer;
}

absl::StatusOr<std::vector<int64_t>> Tokenizer::Encode(std::string_view text) const {
  TextEncoding encoding(*this, text, Truncation::kNone, 0);
  size_t budget = std::numeric_limits<size_t>::max();
  absl::Status status = encoding.Advance(budget);
  if (status.ok()) status = encoding.Finish();
  if (!status.ok()) return status;
  return encoding.ids();
}

absl::StatusOr<std::string> Tokenizer::Decode(const std::vector<int64_t>& ids, bool marks) const {
  std::string text = DecodePieces(*pieces_, ids, marks);
  if (pieces_->model.denormalizer.charsmap.empty()) return text;
  std::string denormalized;
  NormalizedText whole(denormalizer_, text);
  absl::Status status = whole.Append(std::numeric_limits<size_t>::max(), denormalized);
  if (!status.ok()) return status;
  return denormalized;
}

absl::Status Tokenizer::Truncate(Truncation truncation, int64_t longest,
                                 std::vector<int64_t>& ids) const {
  if (longest == 0 || std::cmp_less_equal(ids.size(), longest)) return absl::OkStatus();
  if (truncation == Truncation::kNone) {
    return absl::InvalidArgumentError("the text has more than the " + std::to_string(longest) +
                                      " tokens that the model takes; shorten it, or ask for "
                                      "truncation (left or right)");
  }
  if (truncation == Truncation::kLeft) ids.erase(ids.begin(), ids.end() - longest);
  ids.resize(static_cast<size_t>(longest));
  // A mark takes the place of a piece at the side that was cut.
  if (bos_) ids.front() = *bos_;
  if (eos_) ids.back() = *eos_;
  return absl::OkStatus();
}

}  // namespace linserve
