#include "text/sentencepiece/vocabulary.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>
#include <utility>

#include "support/paths.h"
#include "support/test_files.h"
#include "text/sentencepiece/normalizer.h"
#include "text/sentencepiece/piece_tokenizer.h"
#include "text/tokenizer.h"

namespace linserve {
namespace {

using ::testing::HasSubstr;

PieceModel Pieces(std::vector<Piece> pieces) {
  PieceModel model;
  model.pieces = std::move(pieces);
  return model;
}

std::string Refusal(PieceModel model) {
  return std::string(Vocabulary::Make(std::move(model)).status().message());
}

const Piece kUnk{.text = "<unk>", .kind = PieceKind::kUnknown};
const Piece kA{.text = "a"};

TEST(Vocabulary, SaysWhatIsWrongWithAModel) {
  EXPECT_EQ(Refusal(Pieces({kUnk, kA})), "");
  EXPECT_THAT(Refusal(Pieces({kA})), HasSubstr("no unknown piece"));
  EXPECT_THAT(Refusal(Pieces({kUnk, kUnk})), HasSubstr("equal to one before"));
  EXPECT_THAT(Refusal(Pieces({kUnk, {.text = "?", .kind = PieceKind::kUnknown}})),
              HasSubstr("a second unknown piece"));
  EXPECT_THAT(Refusal(Pieces({kUnk, kA, kA})), HasSubstr("piece 2 is equal to one before"));
  EXPECT_THAT(Refusal(Pieces({kUnk, {}})), HasSubstr("piece 1 is empty"));
  EXPECT_THAT(Refusal(Pieces({kUnk, {.text = "\xFF"}})), HasSubstr("piece 1 is not UTF-8"));
  EXPECT_THAT(Refusal(Pieces({kUnk})), HasSubstr("no pieces that texts could be made of"));
  EXPECT_THAT(Refusal(Pieces({kUnk, kA, {.text = "<0x41>", .kind = PieceKind::kByte}})),
              HasSubstr("byte_fallback is off"));
  PieceModel bytes = Pieces({kUnk, kA, {.text = "<0x41>", .kind = PieceKind::kByte}});
  bytes.byte_fallback = true;
  EXPECT_THAT(Refusal(bytes), HasSubstr("not a piece for each byte"));
  bytes.pieces[2].text = "A";
  EXPECT_THAT(Refusal(bytes), HasSubstr("piece 2 is no byte"));
}

TEST(Vocabulary, HoldsPiecesOfABoundedLength) {
  for (const size_t size : {2048, 2049, 2'048'000}) {
    const std::string text(size, 'a');
    const std::string refusal =
        size == 2048 ? "" : " has " + std::to_string(size) + " bytes, expected at most 2048";
    EXPECT_THAT(Refusal(Pieces({kUnk, {.text = text}})), HasSubstr(refusal));
    PieceModel model = Pieces({kUnk, kA});
    for (std::string* mark : {&model.unknown_surface, &model.bos, &model.eos}) {
      const std::string usual = std::exchange(*mark, text);
      EXPECT_THAT(Refusal(model), HasSubstr(refusal));
      *mark = usual;
    }
  }
}

TEST(ParsePieceModel, ReadsSoManyPiecesAndNoMore) {
  const std::string empty_piece("\x0a\x00", 2);
  std::string file;
  for (int i = 0; i < 1 << 20; ++i) file += empty_piece;
  EXPECT_EQ(ParsePieceModel(file)->pieces.size(), size_t{1} << 20);
  EXPECT_THAT(ParsePieceModel(file + empty_piece), IsInvalid("more than 1048576 pieces"));
}

TEST(Vocabulary, TextsCanBeCutWhereNoPieceReachesAcross) {
  const auto vocabulary = *Vocabulary::Make(Pieces({kUnk, kA, {.text = "ab\xC3\xA9"}}));
  EXPECT_FALSE(vocabulary->CanCut("ab", 1));
  EXPECT_FALSE(vocabulary->CanCut("b\xC3\xA9", 1));
  EXPECT_TRUE(vocabulary->CanCut("ba", 1));
  EXPECT_TRUE(
      vocabulary->CanCut("\xC3\xA9"
                         "a",
                         2));
  EXPECT_TRUE(vocabulary->CanCut("aa", 1));
}

TEST(CheckRules, RefusesWhatIsCutOffOrNoText) {
  EXPECT_TRUE(CheckRules({}).ok());
  const std::string unit(4, '\0');
  const std::string four("\4\0\0\0", 4);
  EXPECT_TRUE(CheckRules({.charsmap = four + unit + "text"}).ok());
  for (const std::string& charsmap :
       {std::string("\4"), four, four + unit, four + "\1", four + unit + "\xFF"}) {
    EXPECT_TRUE(absl::IsInvalidArgument(CheckRules({.charsmap = charsmap})));
  }
}

// A file that is not what it was loads or is refused, and texts never do harm.
TEST(Vocabulary, SurvivesFilesThatWereChanged) {
  const unsigned seed = std::random_device()();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937 random(seed);
  const std::string whole = ReadAll(DataFile("text/tokenizer.model"));
  const TempDir directory;
  int loaded = 0;
  for (int i = 0; i < 2000; ++i) {
    std::string bytes = whole;
    for (int changes = 1 + i % 3; changes > 0; --changes) {
      bytes[random() % bytes.size()] = static_cast<char>(random());
    }
    if (i % 10 == 0) bytes.resize(random() % bytes.size());
    WriteAll(directory.File("tokenizer.model"), bytes);
    const auto tokenizer = LoadSentencePiece(directory.File("tokenizer.model"));
    if (!tokenizer.ok()) {
      EXPECT_TRUE(absl::IsInvalidArgument(tokenizer.status()));
      continue;
    }
    ++loaded;
    const auto ids = (*tokenizer)->Encode("the server answers caf\xC3\xA9 \xEF\xB7\xBA");
    if (ids.ok()) (void)(*tokenizer)->Decode(*ids);
  }
  EXPECT_GT(loaded, 0);
}

}  // namespace
}  // namespace linserve
