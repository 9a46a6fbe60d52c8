#include "models/config/hugging_face_config.h"

#include <algorithm>
#include <array>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "core/files/sentence_files.h"
#include "core/json/json_text.h"
#include "core/strings/quote.h"
#include "models/config/config_error.h"
#include "models/config/folder_file.h"
#include "models/config/late_interaction_folder.h"
#include "models/config/lm_head_folder.h"
#include "models/config/own_code.h"
#include "models/config/sentence_modules.h"

namespace linserve {
namespace {

using nlohmann::json;

struct ModelType {
  std::string_view name;
  const char* encoder;
};

constexpr std::array kModelTypes = {
    ModelType{"bert", "transformers.BertModel"},
    ModelType{"roberta", "transformers.RobertaModel"},
    ModelType{"camembert", "transformers.RobertaModel"},
    ModelType{"xlm-roberta", "transformers.XLMRobertaModel"},
    ModelType{"distilbert", "transformers.DistilBertModel"},
    ModelType{"mpnet", "transformers.MPNetModel"},
    ModelType{"modernbert", "transformers.ModernBertModel"},
    ModelType{"nystromformer", "transformers.NystromformerModel"},
    ModelType{"nomic_bert", "transformers.NomicBertModel"},
    ModelType{"gte", "transformers.GteModel"},
    ModelType{"new", "transformers.GteModel"},
    ModelType{"electra", "transformers.ElectraModel"},
    ModelType{"albert", "transformers.AlbertModel"},
    ModelType{"deberta", "transformers.DebertaModel"},
    ModelType{"deberta-v2", "transformers.DebertaV2Model"},
    ModelType{"longformer", "transformers.LongformerModel"},
    ModelType{"big_bird", "transformers.BigBirdModel"},
    ModelType{"esm", "transformers.EsmModel"},
    ModelType{"ernie", "transformers.ErnieModel"},
    ModelType{"data2vec-text", "transformers.Data2VecTextModel"},
    ModelType{"roberta-prelayernorm", "transformers.RobertaPreLayerNormModel"},
    ModelType{"xlm-roberta-xl", "transformers.XLMRobertaXLModel"},
    ModelType{"megatron-bert", "transformers.MegatronBertModel"},
    ModelType{"roformer", "transformers.RoFormerModel"},
    ModelType{"jina_embeddings_v3", "transformers.JinaEmbeddingsV3Model"},
    ModelType{"llama", "transformers.LlamaModel"},
    ModelType{"mistral", "transformers.MistralModel"},
    ModelType{"qwen2", "transformers.Qwen2Model"},
    ModelType{"qwen3", "transformers.Qwen3Model"},
    ModelType{"gemma", "transformers.GemmaModel"},
    ModelType{"gemma2", "transformers.Gemma2Model"},
    ModelType{"gemma3_text", "transformers.Gemma3TextModel"},
    ModelType{"phi3", "transformers.Phi3Model"},
    ModelType{"granite", "transformers.GraniteModel"},
    ModelType{"smollm3", "transformers.SmolLM3Model"},
    ModelType{"olmo2", "transformers.Olmo2Model"},
    ModelType{"ministral", "transformers.MinistralModel"},
    ModelType{"lfm2", "transformers.Lfm2Model"},
    ModelType{"eurobert", "transformers.EuroBertModel"},
    ModelType{"t5", "transformers.T5EncoderModel"},
    ModelType{"mt5", "transformers.MT5EncoderModel"},
    ModelType{"umt5", "transformers.UMT5EncoderModel"},
    ModelType{"molformer", "molformer.MolformerModel"},
};

std::string EncoderOf(const json& model_type) {
  std::string known;
  for (const ModelType& type : kModelTypes) {
    if (model_type == type.name) return type.encoder;
    known += (known.empty() ? "" : ", ") + std::string(type.name);
  }
  throw ConfigError(
      "config.json: model_type " +
      Quoted(model_type.is_string() ? model_type.get<std::string>() : model_type.dump()) +
      " is not served; those of Hugging Face folders that are: " + known);
}

// Says whether the folder is one of JinaBERT, whose code of its own calls itself a BERT, too.
bool IsJinaBert(const json& document) {
  return document.value("model_type", json()) == "bert" &&
         document.value("position_embedding_type", json()) == "alibi";
}

// Returns the member of an object; null if it is no object or has none of this name.
json MemberOf(const json& object, const char* key) {
  return object.is_object() ? object.value(key, json()) : json();
}

// Returns the limit that a file tells; nullopt where it tells none, for which some write 10^30.
std::optional<int64_t> LimitOf(const json& tokens) {
  constexpr double kNone = 1 << 30;
  if (!tokens.is_number() || tokens.get<double>() < 1 || tokens.get<double>() >= kNone) {
    return std::nullopt;
  }
  return static_cast<int64_t>(tokens.get<double>());
}

// Refuses members that change what another file says, while that is read, but for `followed`.
void RefuseChanges(const json& settings, const std::string& name,
                   const std::vector<const char*>& members, const char* file,
                   const char* followed = "") {
  for (const char* key : members) {
    json changes = MemberOf(settings, key);
    if (changes.is_object()) {
      changes.erase("trust_remote_code");
      changes.erase("chat_template");  // no chat template is run here
      changes.erase(followed);
    }
    if (changes.empty()) continue;
    throw ConfigError(name + ": " + Quoted(key) + " changes " + file +
                      " while it is read, which is not done here; write into " + file +
                      " what it says");
  }
}

// Holds a file of the folder: an object, or null if there is none.
struct Settings {
  std::string file;
  json members;
};

// Reads the settings of sentence-transformers' Transformer.
Settings TransformerSettings(const std::string& directory) {
  for (const std::string name : kTransformerSettings) {
    const json settings = FolderFile(directory, name);
    if (!settings.is_object() || settings.empty()) continue;
    RefuseChanges(settings, name, {"config_args", "config_kwargs"}, "config.json");
    RefuseChanges(settings, name, {"tokenizer_args", "processor_kwargs", "processing_kwargs"},
                  "tokenizer_config.json", "model_max_length");
    return {name, settings};
  }
  return {};
}

constexpr std::string_view kClassifier = "ForSequenceClassification";

// Says whether the folder is that of a classifier or re-ranker. With modules.json it is that of an
// encoder, whatever it was before, unless sentence-transformers wrote it for a re-ranker.
bool IsClassifier(const json& document, const std::string& directory) {
  const json classes = document.value("architectures", json());
  const auto classifies = [](const json& name) {
    return name.is_string() && name.get_ref<const std::string&>().ends_with(kClassifier);
  };
  if (std::none_of(classes.begin(), classes.end(), classifies)) return false;
  const json modules = FolderFile(directory, "modules.json");
  if (modules.is_null()) return true;
  const json task = MemberOf(TransformerSettings(directory).members, "transformer_task");
  return modules.size() == 1 && task == "sequence-classification";
}

// Says whether sentence-transformers takes the last token for the text's vector where no module
// says otherwise: other rows of such a model have not read the whole text.
bool IsCausalLm(const json& document) {
  const json classes = document.value("architectures", json());
  const bool generates = classes.is_array() && !classes.empty() && classes[0].is_string() &&
                         classes[0].get_ref<const std::string&>().ends_with("ForCausalLM");
  return generates && document.value("is_causal", json()) != false;
}

// Returns the class of the classifier with this encoder: BertForSequenceClassification.
std::string ClassifierOf(std::string encoder) {
  encoder.resize(std::min(encoder.rfind("Model"), encoder.rfind("EncoderModel")));
  return encoder.append(kClassifier);
}

// Says how many tokens of a text are kept, and which member of which file says so.
struct TextLimit {
  int64_t tokens = 0;
  std::string origin;
};

std::optional<TextLimit> LimitOf(const Settings& settings, const char* key,
                                 const char* object = nullptr) {
  const json& members = settings.members;
  const auto tokens = LimitOf(MemberOf(object ? MemberOf(members, object) : members, key));
  if (!tokens) return std::nullopt;
  return TextLimit{*tokens, std::string(key) + " in " + settings.file};
}

// Returns the limit of sentence-transformers' own file; nullopt if that says nothing.
std::optional<TextLimit> LimitOfTexts(const Settings& settings) {
  auto limit = LimitOf(settings, "model_max_length", "processor_kwargs");
  if (!limit) limit = LimitOf(settings, "model_max_length", "tokenizer_args");
  return limit ? limit : LimitOf(settings, kTextsUpTo);
}

// Returns the limit of the tokenizer, which holds where nothing else is said.
std::optional<TextLimit> LimitOfTokenizer(const std::string& directory) {
  const std::string file = "tokenizer_config.json";
  const Settings settings = {file, FolderFile(directory, file)};
  const auto limit = LimitOf(settings, "model_max_length");
  return limit ? limit : LimitOf(settings, "max_len");
}

// Adds the prompts that requests may name, and the one for those that name none.
void AddPrompts(const std::string& directory, json& serving) {
  constexpr const char* kFile = "config_sentence_transformers.json";
  const json sentences = FolderFile(directory, kFile);
  if (const json cut = MemberOf(sentences, "truncate_dim"); !cut.is_null()) {
    throw ConfigError(std::string(kFile) + ": truncate_dim " + JsonText(cut) +
                      " cuts every vector, which is not done here; remove it, and have requests "
                      "ask for `dimensions`, which the option \"dimensions\" allows");
  }
  json prompts = MemberOf(sentences, "prompts");
  if (!prompts.is_object()) prompts = json::object();
  json texts = json::object();
  for (const auto& [name, prompt] : prompts.items()) {
    if (prompt.is_null()) continue;  // no text stands before texts
    if (!prompt.is_string()) {
      throw ConfigError(std::string(kFile) + ": the prompt " + Quoted(name) + " is no text");
    }
    texts[name] = prompt;
  }
  if (!texts.empty()) serving["prompts"] = texts;
  const json usual = MemberOf(sentences, "default_prompt_name");
  if (usual.is_null()) return;
  if (!usual.is_string() || !prompts.contains(usual.get<std::string>())) {
    throw ConfigError(std::string(kFile) + ": default_prompt_name is " + JsonText(usual) +
                      ", expected a name in its prompts");
  }
  if (texts.contains(usual.get<std::string>())) serving["default_prompt"] = usual;
}

// Returns what config.json itself says of how the model is served, as linserve's own may.
json OwnServing(const json& document) {
  json own = MemberOf(document, "serving");
  if (own.is_null()) return json::object();
  if (own.is_object()) return own;
  throw ConfigError(
      "config.json: \"serving\" must be an object, as in "
      "\"serving\": {\"pooling\": \"cls\"}");
}

// Says how rows and texts are served, by all files of the folder. What its config.json has in
// `own` counts over what the others say.
void AddServing(const std::optional<TextLimit>& limit, const json& own, ModelConfig& config) {
  SentenceModules& sentence = config.network.sentence;
  config.serving["pooling"] = Name(sentence.pooling);
  config.serving["truncation"] = "right";
  if (sentence.normalize && !sentence.each_row) config.serving["normalize"] = true;
  if (limit) {
    config.serving["max_text_tokens"] = limit->tokens;
    config.text_limit_origin = limit->origin;
  }
  config.serving.update(own);
  config.tokenizer_truncates = !own.contains("truncation");
  if (own.contains("max_text_tokens")) config.text_limit_origin.clear();
  // Dense modules come behind the pooling, so that the network has it.
  const json named = MemberOf(own, "pooling");
  const auto pooling = PoolingFromName(named.is_string() ? named.get<std::string>() : "");
  if (pooling && *pooling != Pooling::kNone) sentence.pooling = *pooling;
}

// The tensors of modules have files of their own.
void NameApart(ModelConfig& config) {
  for (const DenseModule& dense : config.network.sentence.dense) {
    config.names.apart.push_back(dense.Tensors() + ".");
  }
}

// Says whether there is a prompt that may stand before texts.
bool HasPrompts(const json& serving) {
  const json prompts = MemberOf(serving, "prompts");
  return std::any_of(prompts.begin(), prompts.end(), [](const json& one) {
    return !one.is_string() || !one.get_ref<const std::string&>().empty();
  });
}

// Vectors of a model that was trained so may be cut to these widths.
void AddDimensions(const json& document, json& serving) {
  const json widths = MemberOf(document, "matryoshka_dimensions");
  if (widths.is_array()) serving["dimensions"] = widths;
}

ModelConfig StaticConfig(const json& document, const std::string& directory) {
  ModelConfig config;
  config.network.foreign = true;
  config.names.others_are_left_out = true;
  json own = document.is_null() ? json::object() : OwnServing(document);
  AddDimensions(document, config.serving);
  AddPrompts(directory, config.serving);
  ReadStaticFolder(document, directory, own, config);
  NameApart(config);
  AddServing(std::nullopt, own, config);
  if (config.static_settings->as_model2vec) config.tokenizer_truncates = false;  // at the right
  return config;
}

}  // namespace

bool IsHuggingFaceConfig(const json& document) {
  return document.is_object() && document.contains("model_type") &&
         !document.contains("architecture");
}

ModelConfig HuggingFaceConfig(const json& document, const std::string& directory) {
  RefuseAdapter(directory);
  if (IsStaticFolder(document, directory)) return StaticConfig(document, directory);
  ModelConfig config;
  config.warnings = WarningsOfAdapters(directory);
  config.network.architecture =
      IsJinaBert(document) ? "jina_bert.JinaBertModel" : EncoderOf(document["model_type"]);
  const bool classifies = IsClassifier(document, directory);
  if (classifies) {
    config.network.architecture = ClassifierOf(std::move(config.network.architecture));
  }
  config.network.params = document;
  config.network.foreign = true;
  config.names.others_are_left_out = true;
  config.network.params.erase("serving");
  if (!classifies) AddDimensions(document, config.serving);
  json own = OwnServing(document);
  AddPrompts(directory, config.serving);
  const bool prompted = HasPrompts(own.contains("prompts") ? own : config.serving);
  const Settings transformer = TransformerSettings(directory);
  if (IsLateInteraction(document, directory)) {
    ReadLateInteraction(document, transformer.members, directory, config);
    // A request tells by a prompt's name what its text is, so that each task keeps one.
    if (const json prompts = MemberOf(own, "prompts"); prompts.is_object()) {
      own["prompts"] = config.serving["prompts"];
      own["prompts"].update(prompts);
    }
  } else {
    config.network.sentence = ReadSentenceModules(directory, prompted);
  }
  if (IsCausalLm(document) && !FolderHas(directory, "modules.json")) {
    config.network.sentence.pooling = Pooling::kLast;
  }
  ReadSparseEncoder(transformer.members, own, config);
  ReadAnswers(transformer.members, directory, own, config);
  RefuseOwnCode(document, config.network.architecture);
  NameApart(config);
  auto limit = LimitOfTexts(transformer);
  const char* said = limit ? kTextsUpTo : kTokensUpTo;
  if (!limit) limit = LimitOfTokenizer(directory);
  for (const char* key : {kTextsUpTo, kTokensUpTo}) config.network.params.erase(key);
  if (limit) config.network.params[said] = limit->tokens;
  AddServing(limit, own, config);
  return config;
}

int64_t LongestWithoutTable(Params& params, const char* key, int64_t fallback) {
  return std::max(params.Positive(key, fallback), params.Positive(kTextsUpTo, 1));
}

}  // namespace linserve
