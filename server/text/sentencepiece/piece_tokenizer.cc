#include "text/sentencepiece/piece_tokenizer.h"

#include <algorithm>
#include <filesystem>
#include <limits>
#include <utility>

#include "core/files/file.h"
#include "text/sentencepiece/decode_pieces.h"
#include "text/sentencepiece/piece_reader.h"

namespace linserve {
namespace {

constexpr size_t kLargestModel = 32 << 20;  // some megabytes are usual

class PieceTokenizer : public Tokenizer {
 public:
  PieceTokenizer(std::string file, Marks marks, std::shared_ptr<const Vocabulary> pieces)
      : Tokenizer(std::move(file), std::move(marks)),
        pieces_(std::move(pieces)),
        normalizer_(pieces_->model.normalizer, pieces_->user_defined,
                    pieces_->model.whitespace_as_suffix),
        denormalizer_(pieces_->model.denormalizer, nothing_kept_, false) {}

  int64_t vocabulary() const override { return static_cast<int64_t>(pieces_->model.pieces.size()); }

  const std::string& PieceOf(int64_t id) const override {
    return pieces_->model.pieces[static_cast<size_t>(id)].text;
  }

  std::optional<int64_t> IdOf(std::string_view piece) const override {
    const auto& pieces = pieces_->model.pieces;
    const auto found = std::find_if(pieces.begin(), pieces.end(),
                                    [&](const auto& one) { return one.text == piece; });
    return found == pieces.end() ? std::nullopt : std::optional(found - pieces.begin());
  }

  std::unique_ptr<TokenReader> Read(std::string_view text, bool places) const override {
    return std::make_unique<PieceReader>(*pieces_, normalizer_, text, places);
  }

 private:
  absl::StatusOr<std::string> DecodeIds(const std::vector<int64_t>& ids,
                                        bool marks) const override {
    std::string text = DecodePieces(*pieces_, ids, marks);
    if (pieces_->model.denormalizer.charsmap.empty()) return text;
    std::string denormalized;
    NormalizedText whole(denormalizer_, text);
    absl::Status status = whole.Append(std::numeric_limits<size_t>::max(), denormalized);
    if (!status.ok()) return status;
    return denormalized;
  }

  const std::shared_ptr<const Vocabulary> pieces_;
  const PieceTrie nothing_kept_;
  const Normalizer normalizer_;
  const Normalizer denormalizer_;
};

// Adds a mark that is asked for.
absl::Status AddMark(bool wanted, const Vocabulary& pieces, const std::string& mark,
                     const char* option, const std::string& path, std::vector<int64_t>& marks) {
  if (!wanted) return absl::OkStatus();
  const int id = pieces.ControlId(mark);
  if (id < 0) {
    return absl::InvalidArgumentError(path + " has no piece that " + option + " could add");
  }
  marks.push_back(id);
  return absl::OkStatus();
}

absl::StatusOr<std::shared_ptr<const Vocabulary>> LoadPieces(const std::string& path) {
  const auto bytes = ReadFile(path, kLargestModel);
  if (!bytes.ok()) return bytes.status();
  auto model = ParsePieceModel(*bytes);
  if (!model.ok()) return model.status();
  for (const NormalizerRules* rules : {&model->normalizer, &model->denormalizer}) {
    if (absl::Status status = CheckRules(*rules); !status.ok()) return status;
  }
  return Vocabulary::Make(*std::move(model));
}

}  // namespace

absl::StatusOr<std::shared_ptr<const Tokenizer>> LoadSentencePiece(
    const std::string& path, const TokenizerOptions& options) {
  std::error_code error;
  if (!std::filesystem::is_regular_file(path, error)) {
    return absl::NotFoundError("there is no tokenizer at " + path);
  }
  auto pieces = LoadPieces(path);
  if (!pieces.ok()) {
    return absl::InvalidArgumentError(
        path + " is no SentencePiece model: " + std::string(pieces.status().message()));
  }
  Marks marks;
  absl::Status status =
      AddMark(options.add_bos, **pieces, (*pieces)->model.bos, "add_bos", path, marks.before);
  if (status.ok()) {
    status = AddMark(options.add_eos, **pieces, (*pieces)->model.eos, "add_eos", path, marks.after);
  }
  if (!status.ok()) return status;
  return std::make_shared<PieceTokenizer>(std::filesystem::path(path).filename(), std::move(marks),
                                          *std::move(pieces));
}

}  // namespace linserve
