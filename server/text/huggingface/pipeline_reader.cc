#include "text/huggingface/pipeline_reader.h"

#include <algorithm>

#include "core/strings/utf8.h"
#include "text/huggingface/characters/characters.h"

namespace linserve {
namespace {

// A block has about so many bytes, or so many where no place to cut is found.
constexpr size_t kBlock = 1 << 10;
constexpr size_t kMostInBlock = 16 << 10;

// Pieces are found in so many bytes at once, or in fewer.
constexpr size_t kFewAtOnce = 2 << 10;
constexpr size_t kMostAtOnce = 64 << 10;

constexpr size_t kLongestCharacter = 4;

bool TakesWords(const TokenModel& model) {
  return std::holds_alternative<WordPieceModel>(model) ||
         std::holds_alternative<WordLevelModel>(model);
}

}  // namespace

PipelineReader::PipelineReader(const Pipeline& pipeline, std::string_view text, bool places)
    : pipeline_(pipeline),
      text_(text),
      finds_places_(places),
      normalizer_state_(pipeline.normalizer.Begin()),
      look_at_(kFewAtOnce) {
  // Where a part asks what begins the text, that must be known at its beginning.
  const bool aligned = places || pipeline.splits.asks_for_first_place();
  block_.aligned = waiting_.aligned = part_.aligned = aligned;
  found_.finds_places = places;
}

size_t PipelineReader::held_bytes() const {
  return block_.held_bytes() + waiting_.held_bytes() + part_.held_bytes() +
         pieces_.capacity() * sizeof(ByteRange) + found_.ids.capacity() * sizeof(int64_t) +
         found_.places.capacity() * sizeof(ByteRange);
}

absl::StatusOr<size_t> PipelineReader::Step(TextTokens& tokens) {
  const size_t unread = left();
  // A block may become so much that it lasts for many steps.
  if (!segment_read_ && waiting_.text.size() <= kMostAtOnce) {
    if (absl::Status status = TakeBlock(); !status.ok()) return status;
  }
  const Ready ready = FindReady();
  if (ready.bytes > 0) {
    if (absl::Status status = Encode(ready, tokens); !status.ok()) return status;
  }
  if (segment_read_ && waiting_.text.empty()) EndSegment(tokens);
  return std::max<size_t>(1, unread - left() + ready.bytes);
}

// Makes sure that the text is UTF-8 up to `end` at least, or to its own end.
absl::Status PipelineReader::Validate(size_t end) {
  end = std::min(end, text_.size());
  if (end <= validated_) return absl::OkStatus();
  const size_t looked_at = std::min(end + kLongestCharacter, text_.size());
  const size_t sound = Utf8Prefix(text_.substr(validated_, looked_at - validated_));
  validated_ += sound;
  if (validated_ >= end) return absl::OkStatus();
  return absl::InvalidArgumentError("the text is not UTF-8");
}

// Finds the next added token, if it begins before `limit`.
absl::Status PipelineReader::LookForToken(size_t limit) {
  size_t ahead = kLongestToken + kLongestCharacter;
  while (!token_ && scan_ < limit) {
    if (pipeline_.before_normalizing.empty()) {
      scan_ = limit;
      return Validate(limit);
    }
    if (absl::Status status = Validate(limit + ahead); !status.ok()) return status;
    size_t from = scan_;
    const auto match = pipeline_.before_normalizing.Next(text_.substr(0, validated_), from,
                                                         std::min(limit, validated_), at_);
    if (!match) {
      scan_ = std::max(from, limit);
      return absl::OkStatus();
    }
    const bool whole = validated_ == text_.size() || match->end + kLongestCharacter <= validated_;
    if (whole) token_ = match;
    ahead += validated_ - limit;  // the space behind it may be long
  }
  return absl::OkStatus();
}

absl::Status PipelineReader::TakeBlock() {
  const size_t window = std::min(text_.size(), at_ + kBlock);
  if (absl::Status status = LookForToken(window); !status.ok()) return status;
  const size_t limit = token_ ? std::max(token_->begin, at_) : text_.size();
  auto end = BlockEnd(limit);
  if (!end.ok()) return end.status();
  // A token may begin in what a longer block has taken.
  if (*end > window && !token_) {
    if (absl::Status status = LookForToken(*end); !status.ok()) return status;
    if (token_) *end = std::min(*end, std::max(token_->begin, at_));
  }
  segment_read_ = *end == (token_ ? std::max(token_->begin, at_) : text_.size());
  FillBlock(*end);
  absl::Status status = pipeline_.normalizer.Apply(normalizer_state_, segment_read_, block_);
  if (status.ok()) waiting_.AddFrom(block_, 0, block_.text.size());
  return status;
}

// Returns where the next block ends, before `limit`.
absl::StatusOr<size_t> PipelineReader::BlockEnd(size_t limit) {
  if (limit - at_ <= kBlock) return limit;
  if (absl::Status status = Validate(std::min(limit, at_ + kBlock)); !status.ok()) return status;
  const std::string_view rest = text_.substr(at_, limit - at_);
  const auto can_cut = [&](size_t at) {
    // What takes the space before it must find all of that.
    return pipeline_.normalizer.CanCut(rest, at) &&
           pipeline_.before_normalizing.CanCut(CharacterBefore(rest, at).code,
                                               CharacterAt(rest, at).code);
  };
  const size_t middle = CharacterBegin(rest, kBlock);
  for (size_t end = middle; end > kBlock / 2; end = CharacterBegin(rest, end - 1)) {
    if (can_cut(end)) return at_ + end;
  }
  if (absl::Status status = Validate(std::min(limit, at_ + kMostInBlock)); !status.ok()) {
    return status;
  }
  const size_t most = std::min(rest.size(), kMostInBlock);
  size_t end = middle;
  while (end < most && !can_cut(end)) end += CharacterAt(rest, end).bytes;
  return at_ + std::min(end, rest.size());
}

void PipelineReader::FillBlock(size_t end) {
  block_.Clear();
  block_.text = text_.substr(at_, end - at_);
  if (block_.aligned) {
    block_.origins.reserve(block_.text.size());
    for (size_t at = 0; at < block_.text.size();) {
      const size_t bytes = CharacterAt(block_.text, at).bytes;
      block_.origins.insert(block_.origins.end(), bytes, {at_ + at, at_ + at + bytes});
      at += bytes;
    }
  }
  at_ = end;
}

std::optional<size_t> PipelineReader::CanCut(size_t at) const {
  const std::string_view text = waiting_.text;
  const char32_t previous = CharacterBefore(text, at).code;
  const char32_t next = CharacterAt(text, at).code;
  if (!pipeline_.after_normalizing.CanCut(previous, next)) return std::nullopt;
  if (const auto goes_on = pipeline_.splits.CanCut(text, at)) return goes_on;
  if (!pipeline_.neighbours) return std::nullopt;
  const char32_t space = pipeline_.splits.SpaceBecomes();
  const auto becomes = [space](char32_t code) { return code == U' ' ? space : code; };
  if (!pipeline_.neighbours->CanCut(becomes(previous), becomes(next))) return std::nullopt;
  return pipeline_.splits.parts();
}

PipelineReader::Ready PipelineReader::FindReady() {
  const std::string_view text = waiting_.text;
  if (segment_read_ && text.size() <= kMostAtOnce) return {.bytes = text.size()};
  if (text.size() < look_at_) return {};
  const size_t end = CharacterBegin(text, std::min(text.size() - 1, kMostAtOnce));
  for (size_t at = end; at > 0; at = CharacterBegin(text, at - 1)) {
    if (const auto goes_on = CanCut(at)) return {.bytes = at, .goes_on = *goes_on};
  }
  if (text.size() > kMostAtOnce) {
    return {.bytes = end, .goes_on = pipeline_.splits.parts(), .within_word = true};
  }
  // So looking takes time in proportion to the text.
  look_at_ = std::min(2 * text.size(), kMostAtOnce + 1);
  return {};
}

absl::Status PipelineReader::Encode(const Ready& ready, TextTokens& tokens) {
  const AddedTokenFinder& finder = pipeline_.after_normalizing;
  size_t begin = 0;
  for (size_t from = 0; !finder.empty() && from < ready.bytes;) {
    const auto match = finder.Next(waiting_.text, from, ready.bytes, begin, before_);
    if (!match) break;
    const size_t part_end = std::max(begin, match->begin);
    if (absl::Status status = EncodePart(begin, part_end, tokens); !status.ok()) return status;
    AddToken(*match->token,
             {.begin = waiting_.OriginAt(match->begin).begin,
              .end = waiting_.OriginAt(match->end - 1).end},
             tokens);
    goes_on_ = 0;
    in_long_word_ = false;
    begin = match->end;
    from = match->resume;
  }
  const size_t end = std::max(begin, ready.bytes);
  if (absl::Status status = EncodePart(begin, end, tokens); !status.ok()) return status;
  before_ = CharacterBefore(waiting_.text, end).code;
  waiting_.EraseFront(end);
  look_at_ = kFewAtOnce;
  goes_on_ = ready.goes_on;
  // A word that is cut was found too long by the model.
  in_long_word_ = ready.within_word && TakesWords(*pipeline_.model);
  begins_text_ = false;
  return absl::OkStatus();
}

// Finds the tokens of what waits between two added tokens.
absl::Status PipelineReader::EncodePart(size_t begin, size_t end, TextTokens& tokens) {
  if (begin == end) return absl::OkStatus();
  part_.Clear();
  part_.AddFrom(waiting_, begin, end);
  const SplitPlace place{.goes_on = begin == 0 ? goes_on_ : 0, .begins_text = begins_text_};
  if (absl::Status status = pipeline_.splits.Split(place, part_, pieces_); !status.ok()) {
    return status;
  }
  const bool skips = in_long_word_ && begin == 0 && !pieces_.empty() && pieces_[0].begin == 0;
  found_.ids.clear();
  found_.places.clear();
  const std::string_view text = part_.text;
  std::visit(
      [&](const auto& model) {
        for (size_t i = skips ? 1 : 0; i < pieces_.size(); ++i) {
          const ByteRange& piece = pieces_[i];
          model.Encode(text.substr(piece.begin, piece.end - piece.begin), piece.begin, found_);
        }
      },
      *pipeline_.model);
  if (found_.lacks_unknown) {
    return absl::InvalidArgumentError(
        "the text has something that is none of the tokenizer's tokens, and it has none for what "
        "is unknown");
  }
  AddFound(tokens);
  return absl::OkStatus();
}

void PipelineReader::AddFound(TextTokens& tokens) {
  has_pieces_ = has_pieces_ || !found_.ids.empty();
  tokens.ids.insert(tokens.ids.end(), found_.ids.begin(), found_.ids.end());
  for (const ByteRange& place : found_.places) {
    const size_t last = std::max(place.end, place.begin + 1) - 1;
    TokenPlace found{.begin = part_.OriginAt(place.begin).begin, .end = part_.OriginAt(last).end};
    if (pipeline_.post.trims_places) Trim(place, !has_places_, found);
    has_places_ = true;
    tokens.places.push_back(found);
  }
}

// Leaves the spaces of a token out of its place.
void PipelineReader::Trim(ByteRange piece, bool first, TokenPlace& place) const {
  const std::string_view text = part_.text;
  const auto is_space = [&](size_t at) { return text[at] == ' '; };
  size_t before = 0;
  while (piece.begin + before < piece.end && is_space(piece.begin + before)) ++before;
  size_t after = 0;
  while (piece.begin + after < piece.end && is_space(piece.end - 1 - after)) ++after;
  const bool is_prefix = (first || place.begin == 0) && pipeline_.post.has_prefix && before == 1;
  if (!is_prefix) place.begin = std::min(place.begin + before, place.end);
  if (place.end >= after) place.end = std::max(place.end - after, place.begin);
}

void PipelineReader::AddToken(const AddedToken& token, TokenPlace place, TextTokens& tokens) {
  has_pieces_ = has_places_ = true;
  tokens.ids.push_back(token.id);
  if (finds_places_) tokens.places.push_back(place);
}

// Takes the added token behind a segment, and begins the next one.
void PipelineReader::EndSegment(TextTokens& tokens) {
  if (!token_) return;
  AddToken(*token_->token, {.begin = token_->begin, .end = token_->end}, tokens);
  at_ = std::max(at_, token_->end);
  scan_ = token_->resume;
  token_.reset();
  normalizer_state_ = pipeline_.normalizer.Begin();
  segment_read_ = at_ == text_.size() && scan_ >= at_;
  goes_on_ = 0;
  in_long_word_ = false;
  before_.reset();
  begins_text_ = false;
  // Only the first segment needs to know where it came from, unless places are asked for.
  if (!finds_places_) {
    block_.Clear();
    waiting_.Clear();
    block_.aligned = waiting_.aligned = part_.aligned = false;
    part_.Clear();
  }
}

}  // namespace linserve
