#include "models/config/sentence_modules.h"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <optional>
#include <string_view>

#include "core/strings/quote.h"
#include "models/config/config_error.h"
#include "models/config/folder_file.h"
#include "models/config/params.h"

namespace linserve {
namespace {

using nlohmann::json;

// Is a way of pooling in the names of sentence-transformers: that of versions up to 5, which are
// flags, and that of later ones.
struct PoolingMode {
  const char* flag;
  std::string_view name;
  std::optional<Pooling> pooling;  // none: it is not computed here
};

constexpr std::array kPoolingModes = {
    PoolingMode{"pooling_mode_mean_tokens", "mean", Pooling::kMean},
    PoolingMode{"pooling_mode_cls_token", "cls", Pooling::kCls},
    PoolingMode{"pooling_mode_max_tokens", "max", Pooling::kMax},
    PoolingMode{"pooling_mode_lasttoken", "lasttoken", Pooling::kLast},
    PoolingMode{"pooling_mode_mean_sqrt_len_tokens", "mean_sqrt_len_tokens", std::nullopt},
    PoolingMode{"pooling_mode_weightedmean_tokens", "weightedmean", std::nullopt},
};
constexpr const PoolingMode& kMean = kPoolingModes[0];

// Returns the ways of pooling that a module's config names; the mean where it names none. Flags
// count only where there is no list.
std::vector<const PoolingMode*> ModesOf(const json& config) {
  json named = config.value("pooling_mode", json());
  if (named.is_string()) named = json::array({named});
  std::vector<const PoolingMode*> modes;
  for (const PoolingMode& mode : kPoolingModes) {
    const bool is_named = std::find(named.begin(), named.end(), mode.name) != named.end();
    if (named.is_null() ? config.value(mode.flag, json()) == true : is_named) {
      modes.push_back(&mode);
    }
  }
  if (named.is_null()) {
    if (modes.empty()) modes.push_back(&kMean);
  } else if (modes.size() != named.size()) {
    modes.clear();  // one of the names is not known
  }
  return modes;
}

// Reads what a Pooling module does. `prompted` says whether texts may have prompts before them.
void ReadPooling(const json& config, const std::string& file, bool prompted,
                 SentenceModules& sentence) {
  Params params(config, file);
  for (const char* key : {"word_embedding_dimension", "embedding_dimension", "pooling_mode"}) {
    params.Ignore(key);
  }
  for (const PoolingMode& mode : kPoolingModes) params.Ignore(mode.flag);
  sentence.leaves_out_prompts = !params.Flag("include_prompt", true) && prompted;
  params.RefuseUnknown();
  const auto modes = ModesOf(config);
  if (modes.size() == 1 && modes[0]->pooling) {
    sentence.pooling = *modes[0]->pooling;
    return;
  }
  std::string names;
  for (const PoolingMode* mode : modes)
    names += (names.empty() ? "" : " and ") + std::string(mode->name);
  throw ConfigError(file + " pools by " + (names.empty() ? "nothing that is known" : names) +
                    ", expected one of cls, mean, max and lasttoken");
}

// Says what a module takes and gives: a text's vector, or its rows.
constexpr const char* kVector = "sentence_embedding";
constexpr const char* kRows = "token_embeddings";

void Takes(const char* what, Params& params) {
  for (const char* key : {"module_input_name", "module_output_name"}) {
    params.Choice(key, what, {what});
  }
}

DenseModule DenseOf(const json& config, const std::string& path, const std::string& file,
                    const char* taken) {
  Params params(config, file);
  DenseModule dense{.path = path,
                    .inputs = params.Positive("in_features"),
                    .outputs = params.Positive("out_features"),
                    .biased = params.Flag("bias", true)};
  Takes(taken, params);
  dense.residual = params.Flag("use_residual", false);
  const std::string activation =
      params.Choice("activation_function", "torch.nn.modules.activation.Tanh",
                    {"torch.nn.modules.activation.Tanh", "torch.nn.modules.activation.ReLU",
                     "torch.nn.modules.activation.GELU", "torch.nn.modules.activation.SiLU",
                     "torch.nn.modules.activation.Sigmoid", "torch.nn.modules.activation.Mish",
                     "torch.nn.modules.activation.ReLU6", "torch.nn.modules.linear.Identity"});
  params.RefuseUnknown();
  dense.activation = activation.substr(activation.rfind('.') + 1);
  return dense;
}

SpladeModule SpladeOf(const json& config, const std::string& file) {
  Params params(config, file);
  SpladeModule splade;
  splade.strategy = params.Choice("pooling_strategy", "max", {"max", "sum"});
  splade.activation = params.Choice("activation_function", "relu", {"relu", "log1p_relu"});
  // The network knows its vocabulary, and folds logits in blocks of its own.
  for (const char* key : {"embedding_dimension", "word_embedding_dimension", "chunk_size"}) {
    params.Ignore(key);
  }
  params.RefuseUnknown();
  return splade;
}

RowsModule RowsOf(const json& config, const std::string& file) {
  Params params(config, file);
  for (const char* key : {"skiplist_words", "skiplist_tasks", "keep_only_token_ids"}) {
    params.Ignore(key);
  }
  params.RefuseUnknown();
  if (!config.value("keep_only_token_ids", json()).empty()) {
    params.Fail("keep_only_token_ids", "null: rows are left out by skiplist_words alone");
  }
  RowsModule rows;
  if (params.Has("skiplist_words")) {
    rows.skipped = TextsOf(config["skiplist_words"], file, "skiplist_words");
  }
  if (params.Has("skiplist_tasks")) {
    json tasks = config["skiplist_tasks"];
    if (tasks.is_string()) tasks = json::array({tasks});
    const auto named = TextsOf(tasks, file, "skiplist_tasks");
    const auto has = [&](const char* task) {
      return std::find(named.begin(), named.end(), task) != named.end();
    };
    rows.in_queries = has("query");
    rows.in_documents = has("document");
  }
  return rows;
}

json AnswersOf(const json& config, const std::string& file) {
  Params params(config, file);
  params.Choice("module_input_name", "causal_logits", {"causal_logits"});
  json answers = json::object();
  answers[kTrueToken] = params.NotNegative(kTrueToken, 0);
  if (!params.Has(kTrueToken)) params.Fail(kTrueToken, "a token's id");
  if (params.Has(kFalseToken)) answers[kFalseToken] = params.NotNegative(kFalseToken, 0);
  params.Ignore(kFalseToken);
  params.RefuseUnknown();
  return answers;
}

// Names a class of PyLate, which computes what sentence-transformers' own does.
constexpr std::string_view kPylateDense = "pylate.models.Dense.Dense";

// Is one entry of modules.json.
struct Entry {
  std::string kind;  // the last word of its type, such as "Pooling"
  std::string path;  // of its folder in that of the model
};

Entry EntryOf(const json& module) {
  const auto text = [&module](const char* key) {
    const json value = module.is_object() ? module.value(key, json()) : json();
    return value.is_string() ? value.get<std::string>() : std::string();
  };
  const std::string type = text("type");
  if (!type.starts_with("sentence_transformers.") && type != kPylateDense) {
    throw ConfigError("modules.json: a module of type " + Quoted(type) +
                      " is code of the folder's own, which is not run; expected one of "
                      "sentence_transformers'");
  }
  Entry entry{type.substr(type.rfind('.') + 1), text("path")};
  if (entry.path.find('/') == std::string::npos && entry.path != "..") return entry;
  throw ConfigError("modules.json: the path " + Quoted(entry.path) +
                    " is not that of a folder in the model's");
}

// Reads the config.json of a module and calls `use` with it and its path.
template <typename Use>
void WithConfig(const std::string& directory, const Entry& entry, const Use& use) {
  const std::string file = entry.path + "/config.json";
  const json config = FolderFile(directory, file);
  // Folders of modules without settings are empty, and git holds no empty folders.
  if (config.is_null() && entry.kind == "Normalize") return;
  if (config.is_null()) {
    throw ConfigError(file + " is not there, which modules.json names as that of a " + entry.kind +
                      ": download the whole folder, its subfolders, too");
  }
  if (!config.is_object()) {
    throw ConfigError(file + ": expected an object of JSON that says what the " + entry.kind +
                      " does which modules.json names");
  }
  use(config, file);
}

void CheckPath(const Entry& transformer) {
  if (transformer.path.empty()) return;
  throw ConfigError("modules.json: the " + transformer.kind + "'s files are in " +
                    Quoted(transformer.path) +
                    "; move them beside modules.json, and make the module's path \"\"");
}

void CheckNormalize(const std::string& directory, const Entry& entry) {
  WithConfig(directory, entry, [](const json& config, const std::string& file) {
    Params params(config, file);
    Takes(kVector, params);
    params.RefuseUnknown();
  });
}

// Rows are normalized only where the module's file says so.
void CheckNormalizeOfRows(const json& config, const std::string& file) {
  Params params(config, file);
  if (!params.Has("module_input_name")) params.Fail("module_input_name", Quoted(kRows));
  Takes(kRows, params);
  params.RefuseUnknown();
}

// Reads modules.json; null if there is none.
json ModulesOf(const std::string& directory) {
  constexpr size_t kMostModules = 16;
  json modules = FolderFile(directory, "modules.json");
  if (modules.is_null() || (modules.is_array() && modules.size() <= kMostModules)) return modules;
  throw ConfigError("modules.json: expected a list of at most " + std::to_string(kMostModules) +
                    " modules");
}

}  // namespace

std::vector<std::string> TextsOf(const json& list, const std::string& file, const char* key) {
  const bool is_list =
      list.is_array() &&
      std::all_of(list.begin(), list.end(), [](const json& one) { return one.is_string(); });
  if (is_list) return list.get<std::vector<std::string>>();
  throw ConfigError(file + ": " + Quoted(key) + " is no list of texts");
}

RowModules ReadRowModules(const std::string& directory) {
  RowModules found;
  SentenceModules& sentence = found.sentence;
  sentence.pooling = Pooling::kNone;
  sentence.each_row = true;
  for (const json& module : ModulesOf(directory)) {
    const Entry entry = EntryOf(module);
    if (entry.kind == "Transformer") {
      CheckPath(entry);
    } else if (entry.kind == "Dense" && !sentence.normalize) {
      WithConfig(directory, entry, [&](const json& config, const std::string& file) {
        sentence.dense.push_back(DenseOf(config, entry.path, file, kRows));
      });
    } else if (entry.kind == "MultiVectorMask") {
      WithConfig(directory, entry, [&](const json& config, const std::string& file) {
        found.rows = RowsOf(config, file);
      });
    } else if (entry.kind == "Normalize") {
      WithConfig(directory, entry, [&](const json& config, const std::string& file) {
        CheckNormalizeOfRows(config, file);
        sentence.normalize = true;
      });
    } else {
      throw ConfigError("modules.json: a module of type " + Quoted(entry.kind) +
                        " is not computed there, in a late-interaction model; those that are: "
                        "Transformer, Dense before Normalize, Normalize and MultiVectorMask");
    }
  }
  return found;
}

SentenceModules ReadSentenceModules(const std::string& directory, bool prompted) {
  SentenceModules found;
  const json modules = ModulesOf(directory);
  if (modules.is_null()) return found;
  bool pooled = false;
  bool of_logits = false;  // the Transformer gives those of a masked language model
  for (const json& module : modules) {
    const Entry entry = EntryOf(module);
    if (entry.kind == "StaticEmbedding" && &module == &modules.front()) {
      found.table = entry.path == "." ? "" : entry.path;
      pooled = true;
    } else if ((entry.kind == "Transformer" || entry.kind == "MLMTransformer") && !found.table) {
      CheckPath(entry);
      of_logits = entry.kind == "MLMTransformer";
    } else if (entry.kind == "SpladePooling" && !pooled && !found.splade) {
      WithConfig(directory, entry, [&](const json& config, const std::string& file) {
        found.splade = SpladeOf(config, file);
      });
    } else if (entry.kind == "LogitScore" && !pooled && modules.size() == 2) {
      WithConfig(directory, entry, [&](const json& config, const std::string& file) {
        found.answers = AnswersOf(config, file);
      });
    } else if (found.splade) {
      throw ConfigError("modules.json: a module of type " + Quoted(entry.kind) +
                        " is not computed behind SpladePooling, which is to be the last one");
    } else if (entry.kind == "Normalize" && pooled) {
      if (!entry.path.empty()) CheckNormalize(directory, entry);
      found.normalize = true;
    } else if (entry.kind == "Pooling" && !found.table) {
      WithConfig(directory, entry, [&](const json& config, const std::string& file) {
        ReadPooling(config, file, prompted, found);
      });
      pooled = true;
    } else if (entry.kind == "Dropout" && pooled) {
      continue;  // it leaves out nothing but in training
    } else if (entry.kind == "Dense" && pooled && !found.normalize) {
      WithConfig(directory, entry, [&](const json& config, const std::string& file) {
        found.dense.push_back(DenseOf(config, entry.path, file, kVector));
      });
    } else {
      throw ConfigError("modules.json: a module of type " + Quoted(entry.kind) +
                        " is not computed there; those that are: Transformer, Pooling, Dense "
                        "between Pooling and Normalize, Normalize behind Pooling, or "
                        "MLMTransformer and SpladePooling, or Transformer and LogitScore; and "
                        "StaticEmbedding in the place of Transformer and Pooling");
    }
  }
  if (of_logits && !found.splade) {
    throw ConfigError("modules.json: a MLMTransformer's logits are pooled by SpladePooling alone");
  }
  return found;
}

}  // namespace linserve
