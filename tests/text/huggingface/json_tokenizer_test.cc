#include "text/huggingface/json_tokenizer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <random>

#include "text/huggingface/tokenizers.h"

namespace linserve {
namespace {

using nlohmann::json;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

const json kWords = {{"type", "WordLevel"},
                     {"unk_token", "?"},
                     {"vocab", {{"?", 0}, {"a", 1}, {"b", 2}, {"a b", 3}}}};

json File(const json& changes = json::object()) {
  json file = {{"version", "1.0"}, {"model", kWords}};
  file.update(changes);
  return file;
}

std::string Refusal(const json& file) {
  return std::string(ParseTokenizerJson(file.dump()).status().message());
}

std::string RefusalOf(const std::string& part, const json& value) {
  return Refusal(File({{part, value}}));
}

std::vector<int64_t> IdsBy(const json& file, const std::string& text) {
  const auto tokenizer = ParseTokenizerJson(file.dump());
  EXPECT_TRUE(tokenizer.ok()) << tokenizer.status();
  return tokenizer.ok() ? *(*tokenizer)->Encode(text) : std::vector<int64_t>();
}

TEST(TokenizerJson, IsReadWithTheFewestMembers) {
  EXPECT_EQ(Refusal(File()), "");
  EXPECT_THAT(IdsBy({{"model", kWords}}, "a b"), ElementsAre(3));
  EXPECT_THAT(IdsBy(File({{"pre_tokenizer", {{"type", "Whitespace"}}}}), "a b c"),
              ElementsAre(1, 2, 0));
}

TEST(TokenizerJson, NamesPartsThatAreNotKnown) {
  EXPECT_THAT(RefusalOf("normalizer", {{"type", "Fancy"}}),
              AllOf(HasSubstr("normalizer 'Fancy'"), HasSubstr("not known")));
  EXPECT_THAT(RefusalOf("pre_tokenizer", {{"type", "UnicodeScripts"}}),
              HasSubstr("pre_tokenizer 'UnicodeScripts' is not known"));
  EXPECT_THAT(RefusalOf("post_processor", {{"type", "Fancy"}}),
              HasSubstr("post_processor 'Fancy' is not known"));
  EXPECT_THAT(RefusalOf("decoder", {{"type", "CTC"}}), HasSubstr("decoder 'CTC' is not known"));
  EXPECT_THAT(Refusal(File({{"model", {{"type", "Fancy"}, {"vocab", {{"a", 0}}}}}})),
              HasSubstr("model 'Fancy' is not known"));
  const json inner = {{"type", "Sequence"},
                      {"normalizers", {{{"type", "NFC"}}, {{"type", "Fancy"}}}}};
  EXPECT_THAT(RefusalOf("normalizer", inner), HasSubstr("'Fancy' is not known"));
}

TEST(TokenizerJson, SaysWhatIsWrongWithAPart) {
  EXPECT_THAT(RefusalOf("normalizer", {{"type", "Strip"}}), HasSubstr("no 'strip_left'"));
  EXPECT_THAT(RefusalOf("normalizer", {{"type", "Prepend"}, {"prepend", 3}}),
              HasSubstr("'prepend' that is no text"));
  EXPECT_THAT(RefusalOf("normalizer", {{"type", "Precompiled"}, {"precompiled_charsmap", "#"}}),
              HasSubstr("no base64"));
  EXPECT_THAT(RefusalOf("normalizer", {{"type", "Precompiled"}, {"precompiled_charsmap", "AAAA"}}),
              HasSubstr("cut off"));
  EXPECT_THAT(RefusalOf("normalizer", {{"type", "Sequence"}, {"normalizers", 3}}),
              HasSubstr("no array"));
  EXPECT_THAT(RefusalOf("pre_tokenizer", {{"type", "Punctuation"}, {"behavior", "Never"}}),
              HasSubstr("none of Removed, Isolated"));
  EXPECT_THAT(RefusalOf("pre_tokenizer", {{"type", "Metaspace"}, {"replacement", "ab"}}),
              HasSubstr("not one character"));
  const json contradicts = {{"type", "Metaspace"},
                            {"replacement", "_"},
                            {"add_prefix_space", false},
                            {"prepend_scheme", "always"}};
  EXPECT_THAT(RefusalOf("pre_tokenizer", contradicts), HasSubstr("contradicts"));
  EXPECT_THAT(RefusalOf("post_processor", {{"type", "BertProcessing"}, {"sep", {"a", -1}}}),
              HasSubstr("'cls' that is no pair"));
  EXPECT_THAT(RefusalOf("added_tokens", {{{"content", "x"}}}), HasSubstr("no 'single_word'"));
}

TEST(TokenizerJson, HasTheTextJustOnceInItsTemplate) {
  const json text = {{"Sequence", {{"id", "A"}, {"type_id", 0}}}};
  const json other = {{"Sequence", {{"id", "B"}, {"type_id", 0}}}};
  const auto refusal = [](const json& single) {
    return RefusalOf(
        "post_processor",
        {{"type", "TemplateProcessing"}, {"single", single}, {"special_tokens", json::object()}});
  };
  EXPECT_EQ(refusal(json::array({text})), "");
  EXPECT_THAT(refusal(json::array()), HasSubstr("just once"));
  EXPECT_THAT(refusal(json::array({text, text})), HasSubstr("just once"));
  EXPECT_THAT(refusal(json::array({other})), HasSubstr("another text"));
  EXPECT_THAT(refusal(json::array({text, {{"SpecialToken", {{"id", "x"}, {"type_id", 0}}}}})),
              HasSubstr("not among its 'special_tokens'"));
}

// Returns how a file reads two texts: marks as their ids, texts as A and B, with types that count.
std::string PairBy(const json& post_processor) {
  const TempDir directory;
  WriteAll(directory.File("tokenizer.json"), File({{"post_processor", post_processor}}).dump());
  WriteAll(directory.File("tokenizer_config.json"), R"({"model_input_names": ["token_type_ids"]})");
  const auto tokenizer = LoadTokenizerJson(directory.File("tokenizer.json"));
  if (!tokenizer.ok()) return std::string(tokenizer.status().message());
  if (!(*tokenizer)->pair()) return "none";
  std::string form;
  for (const auto& [kind, mark, type] : (*tokenizer)->pair()->pieces) {
    form += kind == PairPiece::Kind::kMark    ? std::to_string(mark)
            : kind == PairPiece::Kind::kFirst ? "A"
                                              : "B";
    if (type != 0) form += ":" + std::to_string(type);
    form += " ";
  }
  return form;
}

json ProcessingOf(const char* type) {
  return {{"type", type}, {"cls", {"[CLS]", 7}}, {"sep", {"[SEP]", 8}}};
}

json TemplateOf(const json& pair) {
  const json text = {{"Sequence", {{"id", "A"}, {"type_id", 0}}}};
  const json tokens = {{"x", {{"id", "x"}, {"ids", {5, 6}}, {"tokens", {"y", "z"}}}}};
  return {{"type", "TemplateProcessing"},
          {"single", {text}},
          {"pair", pair},
          {"special_tokens", tokens}};
}

json SequenceOf(const std::vector<json>& parts) {
  return {{"type", "Sequence"}, {"processors", parts}};
}

const json kFirst = {{"Sequence", {{"id", "A"}, {"type_id", 0}}}};
const json kSecond = {{"Sequence", {{"id", "B"}, {"type_id", 2}}}};
const json kMarkOfTwo = {{"SpecialToken", {{"id", "x"}, {"type_id", 1}}}};

TEST(TokenizerJson, SaysHowTwoTextsAreReadTogether) {
  const json bytes = {{"type", "ByteLevel"}};
  EXPECT_EQ(PairBy(nullptr), "A B:1 ");
  EXPECT_EQ(PairBy(bytes), "A B:1 ");
  EXPECT_EQ(PairBy(ProcessingOf("BertProcessing")), "7 A 8 B:1 8:1 ");
  EXPECT_EQ(PairBy(ProcessingOf("RobertaProcessing")), "7 A 8 8 B 8 ");
  EXPECT_EQ(PairBy(TemplateOf({kFirst, kMarkOfTwo, kSecond})), "A 5:1 6:1 B:2 ");
  EXPECT_EQ(PairBy(TemplateOf({kSecond, kFirst})), "B:2 A ");
  EXPECT_EQ(PairBy(SequenceOf({bytes, ProcessingOf("BertProcessing")})), "7 A 8 B:1 8:1 ");
  EXPECT_EQ(PairBy(SequenceOf({TemplateOf({kFirst, kSecond}), bytes})), "A B:2 ");
  EXPECT_EQ(PairBy(SequenceOf({})), "A B:1 ");
}

TEST(TokenizerJson, MaySayNothingOfTwoTexts) {
  json single = TemplateOf(nullptr);
  single.erase("pair");
  EXPECT_EQ(PairBy(single), "none");
  EXPECT_EQ(PairBy(TemplateOf(json::array({kFirst}))), "none");
  EXPECT_EQ(PairBy(TemplateOf({kFirst, kSecond, kFirst})), "none");
  const json twice = TemplateOf({kFirst, kMarkOfTwo, kSecond});
  EXPECT_EQ(PairBy(SequenceOf({twice, ProcessingOf("BertProcessing")})), "none");
}

TEST(TokenizerJson, SaysWhatIsWrongWithATemplateOfTwoTexts) {
  const auto refusal = [](const json& piece) {
    return RefusalOf("post_processor", TemplateOf({kFirst, piece, kSecond}));
  };
  EXPECT_THAT(RefusalOf("post_processor", TemplateOf(nullptr)), HasSubstr("no 'pair'"));
  EXPECT_THAT(RefusalOf("post_processor", TemplateOf("$A $B")),
              HasSubstr("'TemplateProcessing' has 'pair' that are no array"));
  EXPECT_THAT(refusal({{"Text", {{"id", "A"}, {"type_id", 0}}}}),
              HasSubstr("has a 'pair' template with a piece that is neither"));
  EXPECT_THAT(refusal({{"Sequence", {{"id", "C"}, {"type_id", 0}}}}),
              HasSubstr("has a 'pair' template of another text"));
  EXPECT_THAT(refusal({{"Sequence", {{"id", "B"}}}}), HasSubstr("'type_id' that is no integer"));
  EXPECT_THAT(refusal({{"SpecialToken", {{"id", "y"}, {"type_id", 0}}}}),
              HasSubstr("not among its 'special_tokens'"));
}

TEST(TokenizerJson, SaysWhatIsWrongWithTheFile) {
  const auto refusal = [](const std::string& text) {
    return std::string(ParseTokenizerJson(text).status().message());
  };
  EXPECT_THAT(refusal(""), HasSubstr("it is not JSON"));
  EXPECT_THAT(refusal("[]"), HasSubstr("it is no JSON object"));
  EXPECT_THAT(refusal("{\"model\":"), HasSubstr("it is not JSON"));
  EXPECT_THAT(refusal("{} x"), HasSubstr("it is not JSON: a syntax error at byte 4"));
  EXPECT_THAT(refusal("{}"), HasSubstr("no 'model'"));
  EXPECT_THAT(Refusal(File({{"version", "2.0"}})), HasSubstr("expected 1.0"));
}

TEST(TokenizerJson, HoldsIdsAndTokensOfABoundedSize) {
  const auto words = [](const json& vocabulary) {
    return Refusal(
        File({{"model", {{"type", "WordLevel"}, {"unk_token", "a"}, {"vocab", vocabulary}}}}));
  };
  EXPECT_EQ(words({{"a", (1 << 20) - 1}}), "");
  EXPECT_THAT(words({{"a", 1 << 20}}), HasSubstr("expected 0 to 1048575"));
  EXPECT_THAT(words({{"a", -1}}), HasSubstr("has the id -1"));
  EXPECT_THAT(words({{"a", 1.5}}), HasSubstr("expected an integer"));
  EXPECT_EQ(words({{std::string(2048, 'a'), 0}}), "");
  EXPECT_THAT(words({{std::string(2049, 'a'), 0}}), HasSubstr("expected at most 2048"));
  const json added = {{"content", std::string(2049, 'a')},
                      {"single_word", false},
                      {"lstrip", false},
                      {"rstrip", false},
                      {"normalized", false},
                      {"special", false}};
  EXPECT_THAT(RefusalOf("added_tokens", json::array({added})), HasSubstr("more than 2048 bytes"));
  EXPECT_THAT(RefusalOf("added_tokens", json(std::vector<int>(65'537))),
              HasSubstr("at most 65536"));
}

TEST(TokenizerJson, HoldsSequencesOfABoundedLength) {
  json parts = json::array();
  for (int i = 0; i < 64; ++i) parts.push_back({{"type", "NFC"}});
  EXPECT_EQ(RefusalOf("normalizer", {{"type", "Sequence"}, {"normalizers", parts}}), "");
  const json two = {
      {"type", "Sequence"},
      {"normalizers", {{{"type", "Sequence"}, {"normalizers", parts}}, {{"type", "NFC"}}}}};
  EXPECT_THAT(RefusalOf("normalizer", two), HasSubstr("one of more than 64"));
  parts.push_back({{"type", "NFC"}});
  EXPECT_THAT(RefusalOf("normalizer", {{"type", "Sequence"}, {"normalizers", parts}}),
              HasSubstr("at most 64 parts"));
}

TEST(TokenizerJson, SaysWhatIsWrongWithAModel) {
  const auto refusal = [](const json& model) { return Refusal(File({{"model", model}})); };
  const json vocab = {{"a", 0}, {"b", 1}, {"ab", 2}};
  EXPECT_THAT(refusal({{"type", "BPE"}, {"vocab", vocab}, {"merges", {"a c"}}}),
              HasSubstr("merge of 'c', which is no token"));
  EXPECT_THAT(refusal({{"type", "BPE"}, {"vocab", vocab}, {"merges", {"b a"}}}),
              HasSubstr("makes 'ba', which is no token"));
  EXPECT_THAT(refusal({{"type", "BPE"}, {"vocab", vocab}, {"merges", {"a  b"}}}),
              HasSubstr("a space between"));
  EXPECT_THAT(
      refusal({{"type", "BPE"}, {"vocab", vocab}, {"merges", json::array()}, {"dropout", 0.1}}),
      HasSubstr("'dropout'"));
  EXPECT_EQ(
      refusal(
          {{"type", "BPE"}, {"vocab", vocab}, {"merges", json::array({json::array({"a", "b"})})}}),
      "");
  EXPECT_THAT(
      refusal(
          {{"type", "Unigram"}, {"vocab", json::array({json::array({"a", -1.0})})}, {"unk_id", 1}}),
      HasSubstr("'unk_id' that is none"));
  EXPECT_THAT(refusal({{"type", "Unigram"}, {"vocab", vocab}}), HasSubstr("tokens with scores"));
  EXPECT_THAT(refusal({{"type", "WordPiece"}, {"vocab", vocab}}), HasSubstr("no 'unk_token'"));
  EXPECT_THAT(refusal({{"type", "WordPiece"},
                       {"vocab", vocab},
                       {"unk_token", "a"},
                       {"continuing_subword_prefix", "##"},
                       {"max_input_chars_per_word", 10'001}}),
              HasSubstr("from 1 to 10000"));
}

TEST(TokenizerJson, RefusesATextWithoutATokenForWhatIsUnknown) {
  const auto tokenizer = *ParseTokenizerJson(
      File({{"model", {{"type", "WordLevel"}, {"unk_token", "?"}, {"vocab", {{"a", 0}}}}}}).dump());
  EXPECT_THAT(*tokenizer->Encode("a"), ElementsAre(0));
  EXPECT_THAT(tokenizer->Encode("b").status().message(), HasSubstr("none for what is unknown"));
}

TEST(TokenizerJson, TellsHowLongTextsAreToBeCut) {
  EXPECT_EQ((*ParseTokenizerJson(File().dump()))->truncation(), std::nullopt);
  const std::string cut_left =
      File({{"truncation",
             {{"max_length", 128}, {"direction", "Left"}, {"strategy", "LongestFirst"}}}})
          .dump();
  EXPECT_EQ((*ParseTokenizerJson(cut_left))->truncation(), Truncation::kLeft);
  const TempDir directory;
  WriteAll(directory.File("tokenizer.json"), cut_left);
  WriteAll(directory.File("tokenizer_config.json"), R"({"truncation_side": "right"})");
  EXPECT_EQ((*LoadTokenizerJson(directory.File("tokenizer.json")))->truncation(),
            Truncation::kRight);
}

TEST(TokenizerJson, IsOfABoundedFile) {
  const TempDir directory;
  const std::string path = directory.File("tokenizer.json");
  EXPECT_TRUE(absl::IsNotFound(LoadTokenizerJson(path).status()));
  WriteAll(path, "");
  std::filesystem::resize_file(path, uintmax_t{1} << 40);
  EXPECT_THAT(LoadTokenizerJson(path).status(), IsInvalid("is longer than"));
  std::filesystem::remove(path);
  ASSERT_EQ(::mkfifo(path.c_str(), 0600), 0);
  EXPECT_TRUE(absl::IsNotFound(LoadTokenizerJson(path).status()));
}

// A file that is not what it was loads or is refused, and texts never do harm.
TEST(TokenizerJson, SurvivesFilesThatWereChanged) {
  const unsigned seed = std::random_device()();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937 random(seed);
  const std::vector<std::string> names = TrainedNames();
  int loaded = 0;
  for (int i = 0; i < 600; ++i) {
    std::string text = ReadAll(DataFile("tokenizers/" + names[random() % names.size()] + ".json"));
    for (int changes = 1 + i % 3; changes > 0; --changes) {
      text[random() % std::min<size_t>(text.size(), 6000)] = static_cast<char>(' ' + random() % 95);
    }
    const auto tokenizer = ParseTokenizerJson(text);
    if (!tokenizer.ok()) {
      EXPECT_TRUE(absl::IsInvalidArgument(tokenizer.status()));
      continue;
    }
    ++loaded;
    const auto ids = (*tokenizer)->Encode("the server answers caf\xC3\xA9 \xEF\xB7\xBA [MASK]");
    if (ids.ok()) (void)(*tokenizer)->Decode(*ids);
  }
  EXPECT_GT(loaded, 0);
}

}  // namespace
}  // namespace linserve
