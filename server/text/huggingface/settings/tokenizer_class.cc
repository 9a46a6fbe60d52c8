#include "text/huggingface/settings/tokenizer_class.h"

#include <array>
#include <nlohmann/json.hpp>
#include <string_view>
#include <utility>

namespace linserve {
namespace {

using nlohmann::json;
using Name = std::string_view;

// Lists the classes of transformers 5 (models/*/tokenization_*.py), with those that are built alike
// under another name.
constexpr std::array kClasses = {
    std::pair<Name, TokenizerClass>{"BertTokenizer", TokenizerClass::kBert},
    std::pair<Name, TokenizerClass>{"DistilBertTokenizer", TokenizerClass::kBert},
    std::pair<Name, TokenizerClass>{"ElectraTokenizer", TokenizerClass::kBert},
    std::pair<Name, TokenizerClass>{"ConvBertTokenizer", TokenizerClass::kBert},
    std::pair<Name, TokenizerClass>{"MobileBertTokenizer", TokenizerClass::kBert},
    std::pair<Name, TokenizerClass>{"SqueezeBertTokenizer", TokenizerClass::kBert},
    std::pair<Name, TokenizerClass>{"LayoutLMTokenizer", TokenizerClass::kBert},
    std::pair<Name, TokenizerClass>{"DPRContextEncoderTokenizer", TokenizerClass::kBert},
    std::pair<Name, TokenizerClass>{"DPRQuestionEncoderTokenizer", TokenizerClass::kBert},
    std::pair<Name, TokenizerClass>{"MPNetTokenizer", TokenizerClass::kMpnet},
    std::pair<Name, TokenizerClass>{"RobertaTokenizer", TokenizerClass::kRoberta},
    std::pair<Name, TokenizerClass>{"LongformerTokenizer", TokenizerClass::kRoberta},
    std::pair<Name, TokenizerClass>{"BartTokenizer", TokenizerClass::kRoberta},
    std::pair<Name, TokenizerClass>{"XLMRobertaTokenizer", TokenizerClass::kXlmRoberta},
    std::pair<Name, TokenizerClass>{"CamembertTokenizer", TokenizerClass::kCamembert}};

// Lists what models/auto/tokenization_auto.py says of the types of models that are served here.
constexpr std::array kModels = {std::pair<Name, Name>{"bert", "BertTokenizer"},
                                std::pair<Name, Name>{"distilbert", "BertTokenizer"},
                                std::pair<Name, Name>{"nomic_bert", "BertTokenizer"},
                                std::pair<Name, Name>{"mpnet", "MPNetTokenizer"},
                                std::pair<Name, Name>{"roberta", "RobertaTokenizer"},
                                std::pair<Name, Name>{"camembert", "CamembertTokenizer"},
                                std::pair<Name, Name>{"xlm-roberta", "XLMRobertaTokenizer"},
                                std::pair<Name, Name>{"gte", "XLMRobertaTokenizer"}};

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
  return model_type == "modernbert" || model_type == "nystromformer";
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
    case TokenizerClass::kMolformer:
      return {{"unk_token", "<unk>"},
              {"sep_token", "<eos>"},
              {"pad_token", "<pad>"},
              {"cls_token", "<bos>"},
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
