#include <map>
#include <optional>
#include <queue>
#include <utility>

#include "core/strings/utf8.h"
#include "text/sentencepiece/choose_pieces.h"

namespace linserve {
namespace {

// Merges neighbours of a text into pieces, those of the best score first.
class Merging {
 public:
  Merging(const Vocabulary& vocabulary, std::string_view text) : vocabulary_(vocabulary) {
    while (!text.empty()) {
      const size_t own = vocabulary.user_defined.LongestPrefix(text);
      const size_t bytes = own > 0 ? own : CharacterBytes(text);
      symbols_.push_back({.text = text.substr(0, bytes),
                          .previous = static_cast<int>(symbols_.size()) - 1,
                          .next = static_cast<int>(symbols_.size()) + 1,
                          .frozen = own > 0});
      text.remove_prefix(bytes);
    }
    symbols_.back().next = -1;
  }

  std::vector<ChosenPiece> Run() {
    for (size_t i = 1; i < symbols_.size(); ++i) {
      Consider(static_cast<int>(i) - 1, static_cast<int>(i));
    }
    while (!pairs_.empty()) {
      const Pair pair = pairs_.top();
      pairs_.pop();
      Merge(pair);
    }
    std::vector<ChosenPiece> chosen;
    for (int at = 0; at >= 0; at = At(at).next) Choose(At(at).text, chosen);
    return chosen;
  }

 private:
  struct Symbol {
    std::string_view text;  // empty: it was merged into the one before
    int previous = -1;      // -1: none
    int next = -1;
    bool frozen = false;  // user-defined: never merged
  };

  // Names two neighbours that make a piece of so many bytes together.
  struct Pair {
    float score;
    int left;
    int right;
    size_t bytes;

    // Orders the queue: the best score is on top, of equal ones the leftmost.
    bool operator<(const Pair& other) const {
      return score < other.score || (score == other.score && left > other.left);
    }
  };

  Symbol& At(int index) { return symbols_[static_cast<size_t>(index)]; }

  void Consider(int left, int right) {
    if (left < 0 || right < 0 || At(left).frozen || At(right).frozen) return;
    const size_t bytes = At(left).text.size() + At(right).text.size();
    if (bytes > vocabulary_.longest) return;
    const std::string_view together(At(left).text.data(), bytes);
    const int32_t id = vocabulary_.found.Find(together);
    if (id < 0) return;
    const Piece& piece = vocabulary_.model.pieces[static_cast<size_t>(id)];
    pairs_.push({piece.score, left, right, bytes});
    if (piece.kind == PieceKind::kUnused) parts_[together] = {At(left).text, At(right).text};
  }

  void Merge(const Pair& pair) {
    Symbol& left = At(pair.left);
    Symbol& right = At(pair.right);
    // One of them was merged since.
    if (left.text.empty() || right.text.empty()) return;
    if (left.text.size() + right.text.size() != pair.bytes) return;
    left.text = {left.text.data(), pair.bytes};
    left.next = right.next;
    if (right.next >= 0) At(right.next).previous = pair.left;
    right.text = {};
    Consider(left.previous, pair.left);
    Consider(pair.left, left.next);
  }

  // Takes a piece, or what one that is not to be used was merged from.
  void Choose(std::string_view text, std::vector<ChosenPiece>& chosen) {
    std::vector<std::string_view> open = {text};
    while (!open.empty()) {
      const std::string_view piece = open.back();
      open.pop_back();
      if (const auto parts = parts_.find(piece); parts != parts_.end()) {
        open.push_back(parts->second.second);
        open.push_back(parts->second.first);
        continue;
      }
      const int32_t id = vocabulary_.found.Find(piece);
      chosen.push_back({piece, id >= 0 ? id : vocabulary_.unknown});
    }
  }

  const Vocabulary& vocabulary_;
  std::vector<Symbol> symbols_;
  std::priority_queue<Pair> pairs_;
  // Says what the pieces that are not to be used were merged from.
  std::map<std::string_view, std::pair<std::string_view, std::string_view>> parts_;
};

}  // namespace

std::vector<ChosenPiece> ChooseBpe(const Vocabulary& vocabulary, std::string_view text) {
  return text.empty() ? std::vector<ChosenPiece>() : Merging(vocabulary, text).Run();
}

}  // namespace linserve
