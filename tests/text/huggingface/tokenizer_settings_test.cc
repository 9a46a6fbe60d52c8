// Settings beside a tokenizer's file, and the older files, count as in transformers 5.24.0;
// tests/system/packages/tokenizer_settings_test.py compares more of them with that package.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "text/huggingface/json_tokenizer.h"
#include "text/huggingface/tokenizers.h"
#include "text/text_encoding.h"

namespace linserve {
namespace {

using nlohmann::json;
using ::testing::ElementsAre;
using Ids = std::vector<int64_t>;

// Holds a folder with a tokenizer.json of a model, which makes ids of texts by the files beside it.
class TokenizerSettingsTest : public ::testing::Test {
 protected:
  void WriteTokenizer(const json& model, const json& changes = json::object()) const {
    json file = {{"version", "1.0"}, {"model", model}};
    file.update(changes);
    WriteAll(directory_.File("tokenizer.json"), file.dump());
  }

  void Configure(const json& config) const {
    WriteAll(directory_.File("tokenizer_config.json"), config.dump());
  }

  auto Load() const { return LoadTokenizerJson(directory_.File("tokenizer.json")); }

  Ids IdsOf(const std::string& text) const {
    const auto tokenizer = Load();
    EXPECT_TRUE(tokenizer.ok()) << tokenizer.status();
    return tokenizer.ok() ? *(*tokenizer)->Encode(text) : Ids();
  }

  const TempDir directory_;
};

const json kPieces = {{"type", "WordPiece"},
                      {"unk_token", "?"},
                      {"continuing_subword_prefix", "##"},
                      {"max_input_chars_per_word", 100},
                      {"vocab",
                       {{"[CLS]", 0},
                        {"[SEP]", 1},
                        {"Ab", 2},
                        {"ab", 3},
                        {"\u00e4", 4},
                        {"a", 5},
                        {"[UNK]", 6},
                        {"?", 7}}}};

TEST_F(TokenizerSettingsTest, OfAClassReplaceWhatTheFileSays) {
  WriteTokenizer(kPieces, {{"pre_tokenizer", {{"type", "Whitespace"}}}});
  EXPECT_THAT(IdsOf("Ab \u00c4"), ElementsAre(2, 7));
  Configure({{"tokenizer_class", "PreTrainedTokenizerFast"}});
  EXPECT_THAT(IdsOf("Ab \u00c4"), ElementsAre(2, 7));
  Configure({{"tokenizer_class", "BertTokenizerFast"}});
  EXPECT_THAT(IdsOf("Ab \u00c4"), ElementsAre(0, 3, 5, 1));
  Configure({{"tokenizer_class", "BertTokenizer"}, {"strip_accents", false}});
  EXPECT_THAT(IdsOf("Ab \u00c4"), ElementsAre(0, 3, 4, 1));
  Configure({{"tokenizer_class", "BertTokenizer"}, {"do_lower_case", false}});
  EXPECT_THAT(IdsOf("Ab \u00c4"), ElementsAre(0, 2, 6, 1));
}

TEST_F(TokenizerSettingsTest, NameNoClassWhereTheModelsTypeDoes) {
  WriteTokenizer(kPieces);
  WriteAll(directory_.File("config.json"), R"({"model_type": "bert"})");
  EXPECT_THAT(IdsOf("Ab"), ElementsAre(0, 3, 1));
  WriteAll(directory_.File("config.json"), R"({"model_type": "modernbert"})");
  EXPECT_THAT(IdsOf("Ab"), ElementsAre(2));
  Configure({{"tokenizer_class", "BertTokenizer"}});
  EXPECT_THAT(IdsOf("Ab"), ElementsAre(2));
}

TEST_F(TokenizerSettingsTest, LowerTextsFirstWhereSentenceTransformersDoes) {
  WriteTokenizer(kPieces);
  WriteAll(directory_.File("sentence_roberta_config.json"), R"({"do_lower_case": true})");
  EXPECT_THAT(IdsOf("AB"), ElementsAre(3));
  WriteAll(directory_.File("sentence_bert_config.json"), R"({"do_lower_case": false})");
  EXPECT_THAT(IdsOf("AB"), ElementsAre(7));
  WriteAll(directory_.File("sentence_bert_config.json"), "{}");
  EXPECT_THAT(IdsOf("AB"), ElementsAre(3));
}

TEST_F(TokenizerSettingsTest, OfAClassWithAnotherModelAreRefused) {
  WriteTokenizer(kPieces);
  Configure({{"tokenizer_class", "RobertaTokenizer"}});
  EXPECT_THAT(Load().status(), IsInvalid("its model is a WordPiece, but the folder's files make it "
                                         "a RobertaTokenizer, whose model is a BPE"));
  Configure({{"tokenizer_class", "XLMRobertaTokenizer"}});
  EXPECT_THAT(Load().status(), IsInvalid("whose model is a Unigram"));
  Configure({{"tokenizer_class", "DebertaV2TokenizerFast"}});
  EXPECT_THAT(Load().status(), IsInvalid("a DebertaV2Tokenizer, whose model is a Unigram"));
}

TEST_F(TokenizerSettingsTest, OfDebertaV2SayHowTextsAreNormalisedAndSplit) {
  const std::string space = "\u2581";
  json vocabulary = json::array();
  for (const char* mark : {"[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"}) {
    vocabulary.push_back(json::array({mark, 0.0}));
  }
  for (const auto& [piece, score] : std::initializer_list<std::pair<std::string, double>>{
           {space + "ab", -1}, {"ab", -1.5}, {",", -2}, {space + ",", -1}, {space, -3}}) {
    vocabulary.push_back(json::array({piece, score}));
  }
  WriteTokenizer({{"type", "Unigram"}, {"unk_id", 0}, {"vocab", vocabulary}},
                 {{"normalizer", {{"type", "NFD"}}}});
  WriteAll(directory_.File("config.json"), R"({"model_type": "deberta-v2"})");
  Configure({{"do_lower_case", true}});
  EXPECT_THAT(IdsOf("AB \n ab,  "), ElementsAre(2, 5, 5, 7, 3));
  Configure({{"split_by_punct", true}});
  EXPECT_THAT(IdsOf("ab,[MASK]"), ElementsAre(2, 5, 8, 4, 3));
  Configure({{"add_prefix_space", false}});
  EXPECT_THAT(IdsOf("A ab"), ElementsAre(2, 9, 1, 5, 3));
  Configure({{"unk_token", "ab"}, {"unk_id", "x"}});
  EXPECT_THAT(Load().status(), IsInvalid("'unk_id' is no integer"));
}

TEST_F(TokenizerSettingsTest, OfBigBirdKeepLineBreaksAndHaveTwoKindsOfMarks) {
  const std::string space = "\u2581";
  json vocabulary = json::array();
  for (const char* mark : {"<pad>", "</s>", "<s>", "<unk>", "[SEP]", "[MASK]", "[CLS]"}) {
    vocabulary.push_back(json::array({mark, 0.0}));
  }
  for (const std::string& piece : {space + "ab", std::string("ab"), std::string("\n"), space}) {
    vocabulary.push_back(json::array({piece, -1.0}));
  }
  WriteTokenizer({{"type", "Unigram"}, {"unk_id", 0}, {"vocab", vocabulary}},
                 {{"normalizer", {{"type", "Lowercase"}}}});
  WriteAll(directory_.File("config.json"), R"({"model_type": "big_bird"})");
  Configure(json::object());
  EXPECT_THAT(IdsOf("ab\nab   ab"), ElementsAre(6, 7, 9, 8, 7, 4));
  EXPECT_THAT(IdsOf("AB"), ElementsAre(6, 10, 3, 4));
  Configure({{"add_prefix_space", false}});
  EXPECT_THAT(IdsOf("ab"), ElementsAre(6, 8, 4));
}

// Returns the ids and the types of two texts.
std::pair<Ids, Ids> PairOf(const Tokenizer& tokenizer) {
  TextEncoding encoding(tokenizer, "ab", "a", Truncation::kNone, 0);
  while (!encoding.done()) {
    size_t budget = 1;
    EXPECT_TRUE(encoding.Advance(budget).ok());
  }
  EXPECT_TRUE(encoding.Finish().ok());
  return {encoding.ids(), encoding.types()};
}

TEST_F(TokenizerSettingsTest, OfT5PutAMarkBehindTextsAlone) {
  const std::string space = "\u2581";
  json vocabulary = json::array();
  for (const auto& [piece, score] : std::initializer_list<std::pair<std::string, double>>{
           {"<pad>", 0}, {"</s>", 0}, {"<unk>", 0}, {space + "ab", -1}, {space, -3}, {"a", -2}}) {
    vocabulary.push_back(json::array({piece, score}));
  }
  WriteTokenizer({{"type", "Unigram"}, {"unk_id", 0}, {"vocab", vocabulary}},
                 {{"normalizer", {{"type", "Lowercase"}}}});
  WriteAll(directory_.File("config.json"), R"({"model_type": "t5"})");
  EXPECT_THAT(IdsOf(" ab \n AB "), ElementsAre(3, 4, 2, 1));
  EXPECT_THAT(IdsOf(""), ElementsAre(1));
  EXPECT_EQ(PairOf(**Load()), std::pair(Ids({3, 1, 4, 5, 1}), Ids()));
  // Gaps are marked by tokens that the file need not have.
  EXPECT_THAT(IdsOf("<extra_id_1>ab"), ElementsAre(7, 3, 1));
  Configure({{"extra_ids", 1}, {"eos_token", "<pad>"}});
  EXPECT_THAT(IdsOf("<extra_id_0>ab"), ElementsAre(6, 3, 0));
  WriteAll(directory_.File("config.json"), R"({"model_type": "umt5"})");
  Configure({{"tokenizer_class", "T5Tokenizer"}});
  EXPECT_THAT(IdsOf("AB"), ElementsAre(5, 0));
}

TEST_F(TokenizerSettingsTest, AddTokensAndTakeThemOutOfTexts) {
  WriteTokenizer(kPieces, {{"pre_tokenizer", {{"type", "Whitespace"}}}});
  EXPECT_THAT(IdsOf("ab <new> [CLS]"), ElementsAre(3, 7, 7, 7, 7, 7, 7));
  Configure({{"extra_special_tokens", {"<new>"}}, {"cls_token", "[CLS]"}});
  EXPECT_THAT(IdsOf("ab <new> [CLS]"), ElementsAre(3, 8, 0));
  Configure({{"cls_token", "[CLS]"}, {"split_special_tokens", true}});
  EXPECT_THAT(IdsOf("ab [CLS]"), ElementsAre(3, 7, 7, 7));
  Configure({{"added_tokens_decoder",
              {{"11", {{"content", "<b>"}}}, {"9", {{"content", "<a>"}, {"lstrip", true}}}}}});
  EXPECT_THAT(IdsOf("<a> <b>"), ElementsAre(8, 9));
  Configure(json::object());
  WriteAll(directory_.File("added_tokens.json"), R"({"<b>": 9, "<a>": 8})");
  EXPECT_THAT(IdsOf("<a> <b>"), ElementsAre(8, 9));
  WriteAll(directory_.File("special_tokens_map.json"),
           R"({"additional_special_tokens": ["<c>"], "cls_token": {"content": "[CLS]"}})");
  EXPECT_THAT(IdsOf("<c> [CLS]"), ElementsAre(10, 0));
}

TEST_F(TokenizerSettingsTest, ThatAreNoneAreRefused) {
  WriteTokenizer(kPieces);
  Configure({{"added_tokens_decoder", {{"x", {{"content", "<a>"}}}}}});
  EXPECT_THAT(Load().status(), IsInvalid("has the id 'x', expected an integer"));
  Configure({{"added_tokens_decoder", json::array()}});
  EXPECT_THAT(Load().status(), IsInvalid("'added_tokens_decoder' is no object"));
  Configure({{"cls_token", 7}});
  EXPECT_THAT(Load().status(), IsInvalid("neither a text nor an object"));
  Configure({{"tokenizer_class", "BertTokenizer"}, {"do_lower_case", 1}});
  EXPECT_THAT(Load().status(), IsInvalid("'do_lower_case' is no bool"));
  Configure(json::object());
  WriteAll(directory_.File("added_tokens.json"), R"({"<b>": "9"})");
  EXPECT_THAT(Load().status(), IsInvalid("the id of '<b>' is no integer"));
}

TEST_F(TokenizerSettingsTest, ThatWantTypesOfTokensAreRefused) {
  const json text = {{"Sequence", {{"id", "A"}, {"type_id", 1}}}};
  WriteTokenizer(
      kPieces,
      {{"post_processor",
        {{"type", "TemplateProcessing"}, {"single", {text}}, {"special_tokens", json::object()}}}});
  EXPECT_THAT(IdsOf("ab"), ElementsAre(3));
  Configure({{"model_input_names", {"input_ids", "token_type_ids"}}});
  EXPECT_THAT(Load().status(), IsInvalid("a 'type_id' other than 0"));
}

TEST_F(TokenizerSettingsTest, OfAClassSayHowTwoTextsAreReadTogether) {
  WriteTokenizer(kPieces);
  const auto pair_by = [this](const json& config) {
    Configure(config);
    return PairOf(**Load());
  };
  const Ids once = {0, 3, 1, 5, 1};
  const Ids twice = {0, 3, 1, 1, 5, 1};
  const Ids types = {0, 0, 0, 1, 1};
  EXPECT_EQ(pair_by({{"tokenizer_class", "BertTokenizer"}}), std::pair(once, types));
  EXPECT_EQ(pair_by({{"tokenizer_class", "DistilBertTokenizerFast"}}), std::pair(once, Ids()));
  EXPECT_EQ(pair_by({{"tokenizer_class", "DistilBertTokenizer"},
                     {"model_input_names", {"input_ids", "token_type_ids"}}}),
            std::pair(once, types));
  EXPECT_EQ(pair_by({{"tokenizer_class", "BertTokenizer"}, {"model_input_names", {"input_ids"}}}),
            std::pair(once, Ids()));
  EXPECT_EQ(pair_by({{"tokenizer_class", "MPNetTokenizer"},
                     {"model_input_names", {"input_ids", "token_type_ids"}},
                     {"cls_token", "[CLS]"},
                     {"sep_token", "[SEP]"}}),
            std::pair(twice, Ids()));
}

TEST_F(TokenizerSettingsTest, GiveTwoTextsTypesWhereTransformersDoes) {
  WriteTokenizer(kPieces);
  const auto types_by = [this](const json& config) {
    Configure(config);
    return PairOf(**Load()).second;
  };
  EXPECT_EQ(types_by(json::object()), Ids());
  EXPECT_EQ(types_by({{"tokenizer_class", "PreTrainedTokenizerFast"}}), Ids());
  EXPECT_EQ(types_by({{"tokenizer_class", "FNetTokenizerFast"}}), (Ids{0, 1}));
  EXPECT_EQ(types_by({{"model_input_names", {"token_type_ids"}}}), (Ids{0, 1}));
  WriteAll(directory_.File("config.json"), R"({"model_type": "modernbert"})");
  EXPECT_EQ(types_by({{"tokenizer_class", "FNetTokenizerFast"}}), Ids());
}

class BertVocabulary : public ::testing::Test {
 protected:
  const TempDir directory_;
  const std::string path_ = directory_.File("vocab.txt");
};

TEST_F(BertVocabulary, MakesABertTokenizer) {
  WriteAll(path_, "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\nhello\nworld\n##s\n!\ncafe\n");
  const auto tokenizer = LoadVocabularyLines(path_);
  ASSERT_TRUE(tokenizer.ok()) << tokenizer.status();
  EXPECT_EQ((*tokenizer)->file(), "vocab.txt");
  EXPECT_EQ((*tokenizer)->vocabulary(), 10);
  const std::vector<int64_t> ids = *(*tokenizer)->Encode("Hello, worlds! Caf\xC3\xA9 [MASK]");
  EXPECT_THAT(ids, ElementsAre(2, 5, 1, 6, 7, 8, 9, 4, 3));
  EXPECT_EQ(*(*tokenizer)->Decode(ids), "hello worlds! cafe");
  EXPECT_THAT(*(*tokenizer)->Encode(""), ElementsAre(2, 3));
}

TEST_F(BertVocabulary, FollowsItsConfiguration) {
  WriteAll(path_, "[UNK]\n<s>\n</s>\nhello\nHello\n");
  WriteAll(directory_.File("tokenizer_config.json"),
           R"({"do_lower_case": false, "cls_token": "<s>", "sep_token": {"content": "</s>"}})");
  EXPECT_THAT(*(*LoadVocabularyLines(path_))->Encode("Hello hello"), ElementsAre(1, 4, 3, 2));
  WriteAll(directory_.File("tokenizer_config.json"), R"({"do_lower_case": 1})");
  EXPECT_THAT(LoadVocabularyLines(path_).status(), IsInvalid("'do_lower_case' is no bool"));
}

TEST_F(BertVocabulary, MakesAnMpnetTokenizerWithMarksOfItsOwn) {
  WriteAll(path_, "<s>\n</s>\n[UNK]\nhello\n[CLS]\n[SEP]\n");
  EXPECT_THAT(*(*LoadVocabularyLines(path_))->Encode("hello"), ElementsAre(4, 3, 5));
  WriteAll(directory_.File("tokenizer_config.json"), R"({"tokenizer_class": "MPNetTokenizer"})");
  EXPECT_THAT(*(*LoadVocabularyLines(path_))->Encode("hello"), ElementsAre(0, 3, 1));
}

TEST_F(BertVocabulary, OfAnotherTokenizerIsRefusedByItsName) {
  WriteAll(path_, "[UNK]\n[CLS]\n[SEP]\nhello\n");
  WriteAll(directory_.File("config.json"), R"({"tokenizer_class": "BertJapaneseTokenizer"})");
  EXPECT_THAT(LoadVocabularyLines(path_).status(), IsInvalid("is a BertJapaneseTokenizer"));
}

TEST_F(BertVocabulary, SaysWhatIsWrong) {
  EXPECT_TRUE(absl::IsNotFound(LoadVocabularyLines(path_).status()));
  WriteAll(directory_.File("tokenizer_config.json"), R"({"cls_token": null})");
  WriteAll(path_, "hello\n");
  EXPECT_THAT(LoadVocabularyLines(path_).status(), IsInvalid("names no cls_token"));
  WriteAll(path_, std::string((1 << 20) + 1, '\n'));
  EXPECT_THAT(LoadVocabularyLines(path_).status(), IsInvalid("more than 1048576 tokens"));
  WriteAll(path_, "[CLS]\n[SEP]\n\xFF\n");
  EXPECT_THAT(LoadVocabularyLines(path_).status(), IsInvalid("not UTF-8"));
}

class EsmVocabulary : public TokenizerSettingsTest {
 protected:
  EsmVocabulary() {
    WriteAll(path_, "<cls>\n<pad>\n<eos>\n<unk>\nL\nA\nLA\n-\n<mask>");
    WriteAll(directory_.File("config.json"), R"({"model_type": "esm"})");
  }

  const std::string path_ = directory_.File("vocab.txt");
};

TEST_F(EsmVocabulary, FindsItsTokensWhereverTheyStandAndNothingElse) {
  const auto tokenizer = LoadVocabularyLines(path_);
  ASSERT_TRUE(tokenizer.ok()) << tokenizer.status();
  const auto ids = [&](const char* text) { return *(*tokenizer)->Encode(text); };
  EXPECT_THAT(ids("ALAL"), ElementsAre(0, 5, 6, 4, 2));
  EXPECT_THAT(ids("l xyz A<mask>q-\n"), ElementsAre(0, 3, 3, 5, 8, 3, 7, 2));
  EXPECT_THAT(ids("x\x1cy<x\xC2\x85z>"), ElementsAre(0, 3, 3, 3, 2));
  EXPECT_THAT(ids(""), ElementsAre(0, 2));
  EXPECT_EQ(*(*tokenizer)->Decode(ids("A LA<mask>-")), "A LA -");
  EXPECT_EQ(PairOf(**tokenizer).second, Ids());
}

TEST_F(EsmVocabulary, FollowsItsConfiguration) {
  Configure({{"tokenizer_class", "EsmTokenizer"}, {"cls_token", "<x>"}, {"eos_token", "A"}});
  EXPECT_THAT(*(*LoadVocabularyLines(path_))->Encode("L<x>"), ElementsAre(9, 4, 9, 5));
  Configure({{"split_special_tokens", true}});
  EXPECT_THAT(LoadVocabularyLines(path_).status(), IsInvalid("'split_special_tokens' is true"));
  Configure({{"mask_token", {{"content", "<mask>"}, {"single_word", true}}}});
  EXPECT_THAT(LoadVocabularyLines(path_).status(), IsInvalid("'<mask>' is a single_word"));
}

TEST_F(TokenizerSettingsTest, OfRoFormerAreAsIfThereWereNoTokenizer) {
  WriteTokenizer(kPieces);
  WriteAll(directory_.File("vocab.txt"), "[CLS]\n[SEP]\n[UNK]\n");
  WriteAll(directory_.File("config.json"), R"({"model_type": "roformer"})");
  EXPECT_TRUE(absl::IsNotFound(Load().status()));
  EXPECT_TRUE(absl::IsNotFound(LoadVocabularyLines(directory_.File("vocab.txt")).status()));
  Configure({{"tokenizer_class", "PreTrainedTokenizerFast"}});
  EXPECT_TRUE(Load().ok());
}

class RobertaVocabulary : public TokenizerSettingsTest {
 protected:
  RobertaVocabulary() {
    Configure({{"tokenizer_class", "RobertaTokenizer"}});
    WriteAll(path_,
             R"({"<s>": 0, "</s>": 1, "a": 2, "b": 3, "ab": 4, "\u0120": 5, "\u0120ab": 6})");
    WriteAll(directory_.File("merges.txt"), "#version: 0.2\na b\n\u0120 ab\n");
  }

  const std::string path_ = directory_.File("vocab.json");
};

TEST_F(RobertaVocabulary, MakesARobertaTokenizerWithItsMerges) {
  const auto tokenizer = LoadVocabularyObject(path_);
  ASSERT_TRUE(tokenizer.ok()) << tokenizer.status();
  EXPECT_THAT(*(*tokenizer)->Encode("ab ab</s>"), ElementsAre(0, 4, 6, 1, 1));
  EXPECT_EQ(*(*tokenizer)->Decode({0, 4, 6, 1}), "ab ab");
  Configure({{"tokenizer_class", "RobertaTokenizer"}, {"add_prefix_space", true}});
  EXPECT_THAT(*(*LoadVocabularyObject(path_))->Encode("ab"), ElementsAre(0, 6, 1));
}

TEST_F(RobertaVocabulary, SaysWhatIsWrongWithItsMerges) {
  WriteAll(directory_.File("merges.txt"), "#version: 0.2\r\na b\r\n");
  EXPECT_TRUE(LoadVocabularyObject(path_).ok()) << "lines may end as on Windows";
  WriteAll(directory_.File("merges.txt"), "a\n");
  EXPECT_THAT(LoadVocabularyObject(path_).status(), IsInvalid("has the merge 'a'"));
  WriteAll(directory_.File("merges.txt"), "a c\n");
  EXPECT_THAT(LoadVocabularyObject(path_).status(), IsInvalid("a merge of 'c', which is no token"));
  std::filesystem::remove(directory_.File("merges.txt"));
  EXPECT_FALSE(LoadVocabularyObject(path_).ok());
}

// tests/data/molformer/make_tokenizer.py has made what the package gives.
TEST(MolformerVocabulary, GivesTheIdsOfThePackage) {
  const std::string folder = DataFile("molformer/tokenizer");
  const auto encoded = nlohmann::json::parse(ReadAll(folder + "/encoded.json"));
  const auto slow = LoadVocabularyObject(folder + "/vocab.json");
  const auto fast = LoadTokenizerJson(folder + "/tokenizer.json");
  ASSERT_TRUE(slow.ok()) << slow.status();
  ASSERT_TRUE(fast.ok()) << fast.status();
  EXPECT_EQ((*slow)->vocabulary(), (*fast)->vocabulary());
  for (size_t i = 0; i < encoded["texts"].size(); ++i) {
    const std::string text = encoded["texts"][i];
    SCOPED_TRACE(testing::PrintToString(text));
    EXPECT_EQ(*(*slow)->Encode(text), encoded["slow"][i].get<std::vector<int64_t>>());
    EXPECT_EQ(*(*fast)->Encode(text), encoded["fast"][i].get<std::vector<int64_t>>());
    EXPECT_EQ(*(*slow)->Decode(*(*slow)->Encode(text)), encoded["decoded"][i].get<std::string>());
  }
}

TEST(MolformerVocabulary, IsThereOnlyWhereTheConfigurationNamesItsTokenizer) {
  const TempDir directory;
  const std::string path = directory.File("vocab.json");
  const auto configure = [&](const std::string& config) {
    WriteAll(directory.File("tokenizer_config.json"), config);
    return LoadVocabularyObject(path);
  };
  EXPECT_TRUE(absl::IsNotFound(LoadVocabularyObject(path).status()));
  WriteAll(path, R"({"C": 0, "<s>": 1, "</s>": 2, "?": 3})");
  EXPECT_TRUE(absl::IsNotFound(LoadVocabularyObject(path).status()));
  EXPECT_TRUE(absl::IsNotFound(configure(R"({"tokenizer_class": "GPT2Tokenizer"})").status()));
  const auto tokenizer =
      configure(R"({"tokenizer_class": "MolformerTokenizerFast", "cls_token": "<s>",
                    "sep_token": {"content": "</s>"}, "unk_token": "?"})");
  ASSERT_TRUE(tokenizer.ok()) << tokenizer.status();
  EXPECT_THAT(*(*tokenizer)->Encode("CN C"), ElementsAre(1, 0, 3, 0, 2));
  WriteAll(path, "[]");
  EXPECT_THAT(configure(R"({"tokenizer_class": "MolformerTokenizer"})").status(),
              IsInvalid("no object of tokens"));
}

}  // namespace
}  // namespace linserve
