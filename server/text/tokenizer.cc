#include "text/tokenizer.h"

#include <filesystem>
#include <utility>

#include "core/utf8.h"
#include "text/piece_functions.h"

namespace linserve {
namespace {

// The id of a mark, if it is asked for.
absl::StatusOr<std::optional<int64_t>> MarkOf(bool wanted, int id, const char* option,
                                              const std::string& path) {
  if (!wanted) return std::nullopt;
  if (id >= 0) return std::optional<int64_t>(id);
  return absl::InvalidArgumentError(path + " has no piece that " + option + " could add");
}

}  // namespace

absl::StatusOr<std::shared_ptr<const Tokenizer>> Tokenizer::Load(const std::string& path,
                                                                 const TokenizerOptions& options) {
  std::error_code error;
  if (!std::filesystem::is_regular_file(path, error)) {
    return absl::NotFoundError("there is no tokenizer at " + path);
  }
  const auto functions = OpenPieceFunctions();
  if (!functions.ok()) return functions.status();
  void* const model = (*functions)->load(path.c_str());
  if (model == nullptr) {
    return absl::InvalidArgumentError(path + " is no SentencePiece model");
  }
  const std::shared_ptr<Tokenizer> tokenizer(new Tokenizer(**functions, model));
  const auto bos = MarkOf(options.add_bos, (*functions)->bos(model), "add_bos", path);
  if (!bos.ok()) return bos.status();
  const auto eos = MarkOf(options.add_eos, (*functions)->eos(model), "add_eos", path);
  if (!eos.ok()) return eos.status();
  tokenizer->bos_ = *bos;
  tokenizer->eos_ = *eos;
  return tokenizer;
}

absl::StatusOr<std::vector<int64_t>> Tokenizer::Encode(std::string_view text) const {
  if (!IsUtf8(text)) return absl::InvalidArgumentError("the text is not UTF-8");
  std::vector<int64_t> ids;
  if (bos_) ids.push_back(*bos_);
  const size_t marks = ids.size();
  const auto append = [](void* sink, const int* begin, size_t count) {
    auto& all = *static_cast<std::vector<int64_t>*>(sink);
    all.insert(all.end(), begin, begin + count);
  };
  if (!functions_.encode(model_, text.data(), text.size(), append, &ids)) {
    return absl::InternalError("SentencePiece failed on the text");
  }
  if (ids.size() == marks) return std::vector<int64_t>();
  if (eos_) ids.push_back(*eos_);
  return ids;
}

absl::StatusOr<std::string> Tokenizer::Decode(const std::vector<int64_t>& ids) const {
  std::vector<int> pieces;
  for (const int64_t id : ids) {
    if (id >= 0 && id < vocabulary()) pieces.push_back(static_cast<int>(id));
  }
  std::string text;
  const auto append = [](void* sink, const char* begin, size_t bytes) {
    static_cast<std::string*>(sink)->append(begin, bytes);
  };
  if (!functions_.decode(model_, pieces.data(), pieces.size(), append, &text)) {
    return absl::InternalError("SentencePiece failed on the tokens");
  }
  return text;
}

absl::Status Tokenizer::Truncate(Truncation truncation, int64_t longest,
                                 std::vector<int64_t>& ids) const {
  const auto count = static_cast<int64_t>(ids.size());
  if (longest == 0 || count <= longest) return absl::OkStatus();
  if (truncation == Truncation::kNone) {
    return absl::InvalidArgumentError(
        "the text has " + std::to_string(count) + " tokens, but the model takes at most " +
        std::to_string(longest) + "; shorten it, or ask for truncation (left or right)");
  }
  if (truncation == Truncation::kLeft) ids.erase(ids.begin(), ids.end() - longest);
  ids.resize(static_cast<size_t>(longest));
  // Over a piece at the side that was cut.
  if (bos_) ids.front() = *bos_;
  if (eos_) ids.back() = *eos_;
  return absl::OkStatus();
}

}  // namespace linserve
