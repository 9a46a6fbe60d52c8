#include "text/huggingface/models/bpe_model.h"

#include <algorithm>
#include <limits>
#include <optional>
#include <queue>

#include "core/strings/quote.h"
#include "text/huggingface/characters/byte_characters.h"
#include "text/huggingface/characters/characters.h"
#include "text/huggingface/models/byte_tokens.h"

namespace linserve {
namespace {

uint64_t KeyOf(int32_t left, int32_t right) {
  return static_cast<uint64_t>(static_cast<uint32_t>(left)) << 32u | static_cast<uint32_t>(right);
}

// Returns the bytes that a token of a byte-level vocabulary stands for; nullopt if it is none.
std::optional<std::string> BytesOf(std::string_view token) {
  std::string bytes;
  for (size_t at = 0; at < token.size();) {
    const Character next = CharacterAt(token, at);
    const auto byte = ByteOfCharacter(next.code);
    if (!byte) return std::nullopt;
    bytes += *byte;
    at += next.bytes;
  }
  return bytes;
}

}  // namespace

// Turns a word into symbols: the tokens of its characters, before they are merged.
class BpeModel::Word {
 public:
  Word(const BpeModel& model, std::string_view word, std::vector<Symbol>& symbols)
      : model_(model), word_(word), symbols_(symbols) {}

  // Returns false if something is unknown, and the token that is named for that is none.
  bool Begin() {
    for (size_t at = 0; at < word_.size();) {
      const size_t bytes = model_.takes_bytes_ ? 1 : CharacterAt(word_, at).bytes;
      if (!AddCharacter(at, bytes)) return false;
      at += bytes;
    }
    EndUnknown();
    return true;
  }

 private:
  bool AddCharacter(size_t at, size_t bytes) {
    const int32_t id = IdOf(at, bytes);
    if (id >= 0) {
      EndUnknown();
      symbols_.push_back({id, static_cast<uint32_t>(bytes)});
      return true;
    }
    // As in the package, what was unknown before these bytes comes behind them.
    if (model_.options_.byte_fallback && AddBytes()) return true;
    if (model_.options_.unk_token.empty()) return true;
    if (model_.unknown_ < 0) return false;
    if (!model_.options_.fuse_unk) EndUnknown();
    unknown_bytes_ += static_cast<uint32_t>(bytes);
    return true;
  }

  int32_t IdOf(size_t at, size_t bytes) {
    if (model_.takes_bytes_) return model_.bytes_[static_cast<unsigned char>(word_[at])];
    const BpeOptions& options = model_.options_;
    text_ = at > 0 ? options.continuing_subword_prefix : "";
    text_ += word_.substr(at, bytes);
    if (at + bytes == word_.size()) text_ += options.end_of_word_suffix;
    return model_.vocabulary_->Find(text_);
  }

  bool AddBytes() {
    const auto id = [this](char byte) { return model_.bytes_[static_cast<unsigned char>(byte)]; };
    const bool all =
        std::all_of(text_.begin(), text_.end(), [&](char byte) { return id(byte) >= 0; });
    for (const char byte : all ? text_ : std::string()) symbols_.push_back({id(byte), 1});
    return all;
  }

  void EndUnknown() {
    if (unknown_bytes_ > 0) symbols_.push_back({model_.unknown_, unknown_bytes_});
    unknown_bytes_ = 0;
  }

  const BpeModel& model_;
  const std::string_view word_;
  std::vector<Symbol>& symbols_;
  std::string text_;            // of the character that is looked at
  uint32_t unknown_bytes_ = 0;  // that wait for what is unknown, too
};

// Merges a few symbols: it looks at all pairs for each merge.
class BpeModel::FewMerges {
 public:
  static constexpr size_t kMost = 32;  // symbols

  FewMerges(const BpeModel& model, std::vector<Symbol>& symbols)
      : model_(model), symbols_(symbols) {
    for (size_t i = 0; i + 1 < symbols.size(); ++i) pairs_[i] = PairAt(i);
  }

  void Run() {
    while (symbols_.size() > 1) {
      const auto end = pairs_.begin() + static_cast<std::ptrdiff_t>(symbols_.size() - 1);
      const auto best = std::min_element(
          pairs_.begin(), end, [](const Merged& a, const Merged& b) { return a.rank < b.rank; });
      if (best->rank == kNone) return;
      Join(static_cast<size_t>(best - pairs_.begin()), best->id);
    }
  }

 private:
  static constexpr int32_t kNone = std::numeric_limits<int32_t>::max();

  Merged PairAt(size_t i) const {
    const Merged* const merged = model_.Find(symbols_[i].id, symbols_[i + 1].id);
    return merged == nullptr ? Merged{kNone, 0} : *merged;
  }

  void Join(size_t i, int32_t id) {
    symbols_[i] = {id, symbols_[i].bytes + symbols_[i + 1].bytes};
    symbols_.erase(symbols_.begin() + static_cast<std::ptrdiff_t>(i) + 1);
    // The pair of the two is gone, and those beside it are others now.
    for (size_t next = i; next + 1 < symbols_.size(); ++next) pairs_[next] = pairs_[next + 1];
    if (i + 1 < symbols_.size()) pairs_[i] = PairAt(i);
    if (i > 0) pairs_[i - 1] = PairAt(i - 1);
  }

  const BpeModel& model_;
  std::vector<Symbol>& symbols_;
  std::array<Merged, kMost> pairs_;
};

// Merges any number of symbols, with a heap of what can be merged.
class BpeModel::ManyMerges {
 public:
  ManyMerges(const BpeModel& model, std::vector<Symbol>& symbols)
      : model_(model), symbols_(symbols), links_(symbols.size()) {
    for (int32_t i = 0; i < Count(); ++i) {
      links_[Index(i)] = {.previous = i - 1, .next = i + 1 < Count() ? i + 1 : -1};
    }
    std::vector<Candidate> all;
    for (int32_t i = 0; i + 1 < Count(); ++i) {
      if (const Merged* const merged = MergedAt(i)) all.push_back({merged->rank, i, merged->id});
    }
    queue_ = std::priority_queue<Candidate>(std::less<Candidate>(), std::move(all));
  }

  void Run() {
    while (!queue_.empty()) {
      const Candidate top = queue_.top();
      queue_.pop();
      if (symbols_[Index(top.at)].bytes == 0) continue;
      // What stands there may have been merged since.
      const Merged* const merged = MergedAt(top.at);
      if (merged == nullptr || merged->id != top.id) continue;
      Join(top.at, top.id);
    }
    std::erase_if(symbols_, [](const Symbol& one) { return one.bytes == 0; });
  }

 private:
  struct Link {
    int32_t previous = -1;
    int32_t next = -1;
  };
  struct Candidate {
    int32_t rank;
    int32_t at;
    int32_t id;

    // Orders the queue: the first merge of the list is on top, of equal ones the leftmost.
    bool operator<(const Candidate& other) const {
      return rank > other.rank || (rank == other.rank && at > other.at);
    }
  };

  static size_t Index(int32_t at) { return static_cast<size_t>(at); }
  int32_t Count() const { return static_cast<int32_t>(symbols_.size()); }

  // Returns what a symbol and the next one become; null if there is no such merge.
  const Merged* MergedAt(int32_t at) const {
    const int32_t next = links_[Index(at)].next;
    return next < 0 ? nullptr : model_.Find(symbols_[Index(at)].id, symbols_[Index(next)].id);
  }

  void Join(int32_t at, int32_t id) {
    Link& link = links_[Index(at)];
    Symbol& right = symbols_[Index(link.next)];
    symbols_[Index(at)] = {id, symbols_[Index(at)].bytes + right.bytes};
    right.bytes = 0;
    link.next = links_[Index(link.next)].next;
    if (link.next >= 0) links_[Index(link.next)].previous = at;
    for (const int32_t pair : {link.previous, at}) {
      if (pair < 0) continue;
      if (const Merged* const merged = MergedAt(pair))
        queue_.push({merged->rank, pair, merged->id});
    }
  }

  const BpeModel& model_;
  std::vector<Symbol>& symbols_;
  std::vector<Link> links_;
  std::priority_queue<Candidate> queue_;
};

BpeModel::BpeModel(const TokenVocabulary& vocabulary, BpeOptions options, bool takes_bytes)
    : vocabulary_(&vocabulary),
      options_(std::move(options)),
      takes_bytes_(takes_bytes),
      unknown_(options_.unk_token.empty() ? -1 : vocabulary.Find(options_.unk_token)) {
  if (!takes_bytes) {
    bytes_ = ByteTokens(vocabulary);
    return;
  }
  for (size_t byte = 0; byte < bytes_.size(); ++byte) {
    bytes_[byte] = vocabulary.Find(CharacterOfByte(static_cast<char>(byte)));
  }
}

absl::StatusOr<BpeModel> BpeModel::Make(const TokenVocabulary& vocabulary,
                                        const std::vector<Merge>& merges, BpeOptions options,
                                        bool takes_bytes) {
  BpeModel model(vocabulary, std::move(options), takes_bytes);
  if (absl::Status status = model.AddMerges(merges); !status.ok()) return status;
  model.IndexWords();
  return model;
}

absl::Status BpeModel::AddMerges(const std::vector<Merge>& merges) {
  const size_t prefix = options_.continuing_subword_prefix.size();
  merges_.reserve(merges.size());
  for (size_t rank = 0; rank < merges.size(); ++rank) {
    const auto& [left, right] = merges[rank];
    const std::string& end = vocabulary_->TextOf(right);
    const std::string text =
        vocabulary_->TextOf(left) + (end.size() > prefix ? end.substr(prefix) : std::string());
    const int32_t id = vocabulary_->Find(text);
    if (id < 0) {
      return absl::InvalidArgumentError("its merge " + std::to_string(rank + 1) + " makes " +
                                        Quoted(text) + ", which is no token");
    }
    merges_[KeyOf(left, right)] = {static_cast<int32_t>(rank), id};
  }
  return absl::OkStatus();
}

void BpeModel::IndexWords() {
  if (!options_.continuing_subword_prefix.empty() || !options_.end_of_word_suffix.empty()) return;
  word_bytes_.reserve(takes_bytes_ ? vocabulary_->texts() : 0);
  words_.reserve(vocabulary_->texts());
  std::vector<Symbol> symbols;
  for (const auto& [token, id] : vocabulary_->ids()) {
    std::string_view word = token;
    if (takes_bytes_) {
      auto bytes = BytesOf(token);
      if (!bytes) continue;
      word = word_bytes_.emplace_back(*std::move(bytes));
    }
    symbols.clear();
    const bool one = options_.ignore_merges ||
                     (Symbols(word, symbols) && symbols.size() == 1 && symbols[0].id == id);
    if (one) words_[word] = id;
  }
}

const BpeModel::Merged* BpeModel::Find(int32_t left, int32_t right) const {
  const auto found = merges_.find(KeyOf(left, right));
  return found == merges_.end() ? nullptr : &found->second;
}

bool BpeModel::Symbols(std::string_view word, std::vector<Symbol>& symbols) const {
  if (!Word(*this, word, symbols).Begin()) return false;
  if (symbols.size() <= FewMerges::kMost) {
    FewMerges(*this, symbols).Run();
  } else {
    ManyMerges(*this, symbols).Run();
  }
  return true;
}

int32_t BpeModel::WordOf(std::string_view word) const {
  const auto found = words_.find(word);
  return found == words_.end() ? -1 : found->second;
}

void BpeModel::Encode(std::string_view word, size_t at, FoundTokens& found) const {
  if (const int32_t id = WordOf(word); id >= 0) return found.Add(id, at, at + word.size());
  std::vector<Symbol> symbols;
  symbols.reserve(word.size());
  if (!Symbols(word, symbols)) {
    found.lacks_unknown = true;
    return;
  }
  for (const Symbol& symbol : symbols) {
    found.Add(symbol.id, at, at + symbol.bytes);
    at += symbol.bytes;
  }
}

}  // namespace linserve
