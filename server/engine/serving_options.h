#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/options/options.h"
#include "core/sequence/batch.h"
#include "core/sequence/pooling.h"
#include "core/sequence/truncation.h"
#include "core/strings/late_interaction.h"
#include "core/strings/static_settings.h"
#include "engine/engine.h"

namespace linserve {

// Says how a model shares out the processors, or the devices besides the CPU.
struct ReplicaPlan {
  int64_t replicas = 1;
  int64_t threads = 1;          // threads that each replica has at most
  bool shared = false;          // replicas share the weights and the processors
  int64_t apart = 1;            // replicas that compute without taking each other's processors
  int64_t batch_tokens = 0;     // tokens that a batch has room for
  int64_t batch_sequences = 0;  // sequences that it has room for
  int64_t long_rows = 0;        // rows from which on a sequence may be long for others
  std::string reason;           // for the log
};

// Explains --device in every command that computes.
inline constexpr const char* kDeviceHelp =
    "Where models compute: cpu; cuda:N, or several such as cuda:0,cuda:1; cuda: all GPUs; auto: "
    "all "
    "GPUs, or the CPU where there is none";

// Says where models compute.
struct DeviceOptions {
  std::string device = "auto";
  int64_t max_device_bytes = 0;  // of each GPU; 0: all that is free
  int64_t processors = 0;        // number to plan for; 0: those that the process may use

  void Bind(OptionTable& table);
};

// Says how a model is served. These are the defaults of the whole server, which the "serving"
// object of a model's config.json may override option by option.
struct ServingOptions {
  // "zeros" where the model's wrapper computes that, else what the model is fastest with.
  std::string padding = "auto";
  std::string padding_because;  // for the log; empty: an option says so
  std::vector<int64_t> buckets;
  std::string dtype = "default";  // f32 on the CPU, auto on GPUs
  Pooling pooling = Pooling::kNone;
  bool normalize = false;
  Truncation truncation = Truncation::kNone;
  int64_t max_text_tokens = 0;  // 0: as many as the model takes
  // What says so, as in "max_seq_length in sentence_bert_config.json".
  std::string text_limit_origin = "max_text_tokens";
  // Says that the tokenizer's files may say another truncation.
  bool tokenizer_truncates = false;
  std::vector<int64_t> dimensions;
  int64_t max_batch_tokens = 0;     // 0: as many as the device is fast with
  int64_t max_batch_sequences = 0;  // 0: as many as the device is fast with
  std::chrono::nanoseconds max_batch_delay{0};
  QueueLimits queue{};
  int64_t replicas = 0;
  int64_t threads = 0;
  int64_t cache_bytes = EngineOptions().cache_bytes;
  int64_t max_session_bytes = 0;  // of the model's sessions; 0: as many as there is room for
  std::chrono::nanoseconds session_idle = SessionLimits().max_idle;
  bool warmup = EngineOptions().warmup;
  bool allow_nonfinite = false;
  bool add_bos = false;
  bool add_eos = false;
  std::map<std::string, std::string> prompts{};
  std::string default_prompt{};  // a name in `prompts`; "": none
  std::string pair_template{};   // in which pairs of texts are written; "": none
  // How a late-interaction model reads texts, which its folder alone says; nullopt: it is none.
  std::optional<LateInteraction> late_interaction{};
  // How a static model reads them, which is its folder's to say, too; nullopt: it is none.
  std::optional<StaticSettings> static_settings{};

  void Bind(OptionTable& table);
  EngineOptions ForEngine(const ReplicaPlan& plan) const;

  // Fills in what is not configured: a replica on each of `devices`, or if that is 0, some by
  // the number of processors. Without `processors` they are those that this process may use.
  ReplicaPlan Replicas(int64_t devices) const;
  ReplicaPlan Replicas(int64_t devices, int64_t processors) const;
};

}  // namespace linserve
