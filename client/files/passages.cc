#include "client/files/passages.h"

#include <algorithm>
#include <array>
#include <utility>

namespace linserve {
namespace {

constexpr size_t kHeading = 40;  // bytes: a paragraph no longer than that goes with the next one

// Is a word, or a part of one that is too long, or that has a sentence's end inside.
struct Word {
  size_t line = 0;
  std::string_view text;
  bool goes_on = false;  // it is not the word's first part

  size_t bytes() const { return text.size() + (goes_on ? 0 : 1); }
};

// These end sentences in scripts that have no spaces behind them: Chinese and Japanese, Devanagari,
// Arabic.
constexpr std::array<std::string_view, 5> kEnds = {"\u3002", "\uFF01", "\uFF1F", "\u0964",
                                                   "\u061F"};

bool EndsSentence(std::string_view word) {
  return word.ends_with('.') || word.ends_with('!') || word.ends_with('?') || word.ends_with(':') ||
         std::any_of(kEnds.begin(), kEnds.end(),
                     [word](std::string_view end) { return word.ends_with(end); });
}

// Returns the first part of a word: to the end of a sentence, or as many whole characters as fit.
std::string_view FirstPart(std::string_view word, size_t longest) {
  const std::string_view fitting = word.substr(0, longest);
  size_t bytes = word.size();
  for (const std::string_view end : kEnds) {
    if (const size_t at = fitting.find(end); at < bytes) bytes = at + end.size();
  }
  if (bytes <= longest) return word.substr(0, bytes);
  constexpr size_t kLongestCharacter = 4;
  const auto is_inside = [word](size_t at) {
    return (static_cast<unsigned char>(word[at]) & 0xC0U) == 0x80U;
  };
  bytes = longest;
  while (bytes > 1 && longest - bytes < kLongestCharacter && is_inside(bytes)) --bytes;
  return word.substr(0, bytes);
}

// Adds the words of one line.
void AddWords(std::string_view line, size_t number, size_t longest, std::vector<Word>& words) {
  constexpr std::string_view kBlank = " \t\r\f\v";
  while (true) {
    line.remove_prefix(std::min(line.find_first_not_of(kBlank), line.size()));
    if (line.empty()) return;
    std::string_view word = line.substr(0, line.find_first_of(kBlank));
    line.remove_prefix(word.size());
    for (bool goes_on = false; !word.empty(); goes_on = true) {
      words.push_back({number, FirstPart(word, longest), goes_on});
      word.remove_prefix(words.back().text.size());
    }
  }
}

std::vector<std::vector<Word>> Paragraphs(std::string_view text, size_t longest) {
  std::vector<std::vector<Word>> paragraphs(1);
  for (size_t number = 1; !text.empty(); ++number) {
    const std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(line.size() + 1, text.size()));
    const size_t before = paragraphs.back().size();
    AddWords(line, number, longest, paragraphs.back());
    if (paragraphs.back().size() == before && before > 0) paragraphs.emplace_back();
  }
  if (paragraphs.back().empty()) paragraphs.pop_back();
  return paragraphs;
}

// Returns how many of the words from `begin` on make a passage: all that fit, up to the last
// sentence that ends among them.
size_t Fitting(const std::vector<Word>& words, size_t begin, size_t longest) {
  size_t bytes = 0;
  size_t sentence = 0;
  for (size_t i = begin; i < words.size(); ++i) {
    bytes += words[i].bytes();
    if (bytes > longest && i > begin) return sentence > 0 ? sentence : i - begin;
    if (EndsSentence(words[i].text)) sentence = i - begin + 1;
  }
  return words.size() - begin;
}

}  // namespace

std::vector<Passage> CutIntoPassages(std::string_view text, size_t longest) {
  std::vector<Passage> passages;
  bool heading = false;  // the last passage is one
  longest = std::max<size_t>(longest, 1);
  for (const std::vector<Word>& words : Paragraphs(text, longest)) {
    for (size_t begin = 0; begin < words.size();) {
      const size_t count = Fitting(words, begin, longest);
      if (!heading) passages.push_back({words[begin].line, {}});
      std::string& passage = passages.back().text;
      for (size_t i = begin; i < begin + count; ++i) {
        if (!passage.empty() && !words[i].goes_on) passage += ' ';
        passage += words[i].text;
      }
      begin += count;
      heading = begin == words.size() && passage.size() <= kHeading;
    }
  }
  return passages;
}

}  // namespace linserve
