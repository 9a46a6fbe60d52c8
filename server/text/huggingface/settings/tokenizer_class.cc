#include "text/huggingface/settings/tokenizer_class.h"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <string_view>

namespace linserve {
namespace {

using nlohmann::json;
using Name = std::string_view;

struct NamedClass {
  Name name;
  TokenizerClass kind;
};

// Lists the classes of transformers 5 (models/*/tokenization_*.py), with those that are built alike
// under another name.
constexpr auto kClasses = std::to_array<NamedClass>({
    {"BertTokenizer", TokenizerClass::kBert},
    {"DistilBertTokenizer", TokenizerClass::kBert},
    {"ElectraTokenizer", TokenizerClass::kBert},
    {"ConvBertTokenizer", TokenizerClass::kBert},
    {"MobileBertTokenizer", TokenizerClass::kBert},
    {"SqueezeBertTokenizer", TokenizerClass::kBert},
    {"LayoutLMTokenizer", TokenizerClass::kBert},
    {"LxmertTokenizer", TokenizerClass::kBert},
    {"DPRContextEncoderTokenizer", TokenizerClass::kBert},
    {"DPRQuestionEncoderTokenizer", TokenizerClass::kBert},
    {"DPRReaderTokenizer", TokenizerClass::kBert},
    {"MPNetTokenizer", TokenizerClass::kMpnet},
    {"RobertaTokenizer", TokenizerClass::kRoberta},
    {"LongformerTokenizer", TokenizerClass::kRoberta},
    {"BartTokenizer", TokenizerClass::kRoberta},
    {"LEDTokenizer", TokenizerClass::kRoberta},
    {"MvpTokenizer", TokenizerClass::kRoberta},
    {"XLMRobertaTokenizer", TokenizerClass::kXlmRoberta},
    {"CamembertTokenizer", TokenizerClass::kCamembert},
    {"DebertaV2Tokenizer", TokenizerClass::kDebertaV2},
    {"T5Tokenizer", TokenizerClass::kT5},
    {"BigBirdTokenizer", TokenizerClass::kBigBird},
});

struct NamedModels {
  Name type;
  Name tokenizer;
};

// Lists what models/auto/tokenization_auto.py says of the types of models that are served here.
constexpr auto kModels = std::to_array<NamedModels>({
    {"bert", "BertTokenizer"},
    {"distilbert", "BertTokenizer"},
    {"nomic_bert", "BertTokenizer"},
    {"electra", "BertTokenizer"},
    {"mpnet", "MPNetTokenizer"},
    {"roberta", "RobertaTokenizer"},
    {"longformer", "RobertaTokenizer"},
    {"big_bird", "BigBirdTokenizer"},
    {"camembert", "CamembertTokenizer"},
    {"xlm-roberta", "XLMRobertaTokenizer"},
    {"gte", "XLMRobertaTokenizer"},
    {"deberta", "DebertaTokenizer"},
    {"deberta-v2", "DebertaV2Tokenizer"},
    {"t5", "T5Tokenizer"},
    {"mt5", "T5Tokenizer"},
    {"esm", "EsmTokenizer"},
    {"ernie", "BertTokenizer"},
    {"megatron-bert", "BertTokenizer"},
    {"data2vec-text", "RobertaTokenizer"},
    {"roberta-prelayernorm", "RobertaTokenizer"},
    {"jina_embeddings_v3", "XLMRobertaTokenizer"},
    {"roformer", "RoFormerTokenizer"},
});

}  // namespace

TokenizerClass ClassNamed(const std::string& name) {
  for (const auto& [known, kind] : kClasses) {
    if (name == known) return kind;
  }
  return TokenizerClass::kNone;
}

std::string ClassOfModels(const std::string& model_type) {
  for (const auto& [type, name] : kModels) {
    if (model_type == type) return std::string(name);
  }
  return "";
}

bool KeepsFile(const std::string& model_type) {
  return model_type == "modernbert" || model_type == "nystromformer" || model_type == "umt5" ||
         model_type == "xlm-roberta-xl";
}

bool TakesTypes(TokenizerClass kind, const std::string& name) {
  // These are taken as their files are, and have `token_type_ids` among their model_input_names.
  constexpr auto kOthers = std::to_array<std::string_view>({"DebertaTokenizer", "FNetTokenizer"});
  if (kind == TokenizerClass::kDebertaV2) return true;
  if (kind == TokenizerClass::kBert) {
    return name != "DistilBertTokenizer" && name != "DPRReaderTokenizer";
  }
  return kind == TokenizerClass::kNone &&
         std::find(kOthers.begin(), kOthers.end(), name) != kOthers.end();
}

json UsualMarks(TokenizerClass kind) {
  switch (kind) {
    case TokenizerClass::kNone:
      return json::object();
    case TokenizerClass::kBert:
      return {{"unk_token", "[UNK]"},
              {"sep_token", "[SEP]"},
              {"pad_token", "[PAD]"},
              {"cls_token", "[CLS]"},
              {"mask_token", "[MASK]"}};
    case TokenizerClass::kDebertaV2:
      return {{"bos_token", "[CLS]"},  {"eos_token", "[SEP]"}, {"unk_token", "[UNK]"},
              {"sep_token", "[SEP]"},  {"pad_token", "[PAD]"}, {"cls_token", "[CLS]"},
              {"mask_token", "[MASK]"}};
    case TokenizerClass::kT5:
      return {{"eos_token", "</s>"}, {"unk_token", "<unk>"}, {"pad_token", "<pad>"}};
    case TokenizerClass::kBigBird:
      return {{"bos_token", "<s>"},    {"eos_token", "</s>"},  {"unk_token", "<unk>"},
              {"sep_token", "[SEP]"},  {"pad_token", "<pad>"}, {"cls_token", "[CLS]"},
              {"mask_token", "[MASK]"}};
    case TokenizerClass::kMolformer:
      return {{"unk_token", "<unk>"},
              {"sep_token", "<eos>"},
              {"pad_token", "<pad>"},
              {"cls_token", "<bos>"},
              {"mask_token", "<mask>"}};
    case TokenizerClass::kEsm:
      return {{"eos_token", "<eos>"},
              {"unk_token", "<unk>"},
              {"pad_token", "<pad>"},
              {"cls_token", "<cls>"},
              {"mask_token", "<mask>"}};
    default:
      break;
  }
  return {{"bos_token", "<s>"},
          {"eos_token", "</s>"},
          {"unk_token", kind == TokenizerClass::kMpnet ? "[UNK]" : "<unk>"},
          {"sep_token", "</s>"},
          {"pad_token", "<pad>"},
          {"cls_token", "<s>"},
          {"mask_token", "<mask>"}};
}

}  // namespace linserve
