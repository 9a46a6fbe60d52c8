#include "engine/serving_options.h"

#include <algorithm>
#include <chrono>

#include "core/sequence/pooling.h"
#include "core/system/processors.h"

namespace linserve {
namespace {

constexpr int64_t kTokensPerThread = 2048;
constexpr int64_t kTokensPerDevice = 65536;
constexpr int64_t kSequencesPerBatch = 256;
// With so many rows for each thread, threads compute one sequence as fast as one sequence each.
constexpr int64_t kRowsPerThread = 256;
// What comes while a batch is computed begins beside it. More replicas would share the processors
// without being faster together, until each has more threads than a short sequence has work for.
constexpr int64_t kFewestReplicas = 2;
constexpr int64_t kThreadsPerReplica = 8;
constexpr int64_t kMostReplicas = 16;  // where nobody asked for a number

}  // namespace

void DeviceOptions::Bind(OptionTable& table) {
  table.Text("device", device, kDeviceHelp);
  table.Bytes("max_device_bytes", max_device_bytes, 0, int64_t{1} << 50,
              "How much of each GPU's memory models may take, weights and batches; 0: all that is "
              "free");
  table.Integer(
      "processors", processors, 0, 4096,
      "How many processors to plan replicas and threads for; 0: those that the process may "
      "use, by its affinity and its control group");
}

void ServingOptions::Bind(OptionTable& table) {
  constexpr int64_t kMany = int64_t{1} << 40;
  table.Section(
      "The rest may also stand in the \"serving\" object of a model's config.json, for that model");
  std::vector<std::string> paddings = {kPaddingNames.begin(), kPaddingNames.end()};
  paddings.insert(paddings.begin(), "auto");
  table.Choice("padding", padding, paddings,
               "How ragged sequences become a batch: packed computes no padding, bucket pads to "
               "the next bucket, fixed to seq_len, zeros as the Python packages do; auto is zeros "
               "for a model whose wrapper is linformer_pytorch.Padder, bucket on a GPU that has no "
               "kernels for the model's attention or type, else packed");
  table.Integers("buckets", buckets, 1, kMany,
                 "Lengths that padding=bucket pads to; none: 16, 24, 32, 48, 64, 96 and so on");
  table.Choice(
      "dtype", dtype, {"default", "f32", "bf16", "int8", "f16", "auto", "auto:int8"},
      "What the model multiplies in; default is f32 on CPUs and auto on GPUs, whose kernels are "
      "for 16 bits; int8 on CPUs only, f16 on GPUs only. On the CPU, auto measures the model's "
      "products in f32 and bf16 at its start and takes the faster one, auto:int8 in int8, too. On "
      "a GPU, auto is bf16 where there are tensor cores for it, else f16");
  table.Choice("pooling", pooling, {kPoolingNames.begin(), kPoolingNames.end()},
               "What requests get that ask for no pooling in particular");
  table.Flag("normalize", normalize,
             "Give pooled vectors the length one for requests that do not say");
  table.Choice("truncation", truncation, {kTruncationNames.begin(), kTruncationNames.end()},
               "What becomes of a text with more tokens than it may have, where its request does "
               "not say: none: it is refused; left, right: its first or last tokens are dropped");
  table.Integer("max_text_tokens", max_text_tokens, 0, kMany,
                "How many tokens a text may have before it is truncated or refused; 0: as many as "
                "the model takes");
  table.Integers("dimensions", dimensions, 1, kMany,
                 "Widths to which requests may have vectors cut, and normalized again, since the "
                 "model was trained for it (Matryoshka); none: its own width only");
  table.Integer(
      "max_batch_tokens", max_batch_tokens, 0, kMany,
      "How many rows a batch may have, padding included; a longer sequence is computed alone; 0: " +
          std::to_string(kTokensPerThread) +
          " for each processor that a replica has while all compute, with more of which no "
          "product gets faster; " +
          std::to_string(kTokensPerDevice) + " on a GPU");
  table.Integer("max_batch_sequences", max_batch_sequences, 0, kMostSequencesPerBatch,
                "How many sequences a batch may hold; 0: " + std::to_string(kSequencesPerBatch) +
                    ", on a GPU " + std::to_string(kMostSequencesPerBatch));
  table.Duration("max_batch_delay_ms", max_batch_delay, 0, 60000,
                 "How long a sequence waits for company while a worker is free; 0: never");
  table.Integer("max_queue_sequences", queue.max_sequences, 1, kMany,
                "How many sequences may wait; more are refused with RESOURCE_EXHAUSTED");
  table.Live();
  table.Integer("max_queue_tokens", queue.max_tokens, 1, kMany, "How many tokens may wait");
  table.Live();
  table.Bytes("max_queue_bytes", queue.max_bytes, 1, kMany, "How many bytes of input may wait");
  table.Live();
  table.Integer("replicas", replicas, 0, 256,
                "How many batches are computed at a time. On the CPU they share the weights and "
                "the processors; 0: two, on many processors one for every " +
                    std::to_string(kThreadsPerReplica) +
                    ", or one if threads is given. On GPUs each has a copy of the model; 0: one "
                    "for each GPU");
  table.Integer("threads", threads, 0, 1024,
                "How many threads compute one batch at most; 0: all processors, less those that "
                "compute others");
  table.Bytes(
      "cache_bytes", cache_bytes, 0, kMany,
      "How many bytes of results to keep, so that identical sequences are computed once; 0: none");
  table.Bytes(
      "max_session_bytes", max_session_bytes, 0, kMany,
      "How many bytes the states of sessions may take, of all models together, or where it stands "
      "in a model's config.json of that model; where there is no room for a new one, the one that "
      "was not used for longest is evicted; 0: as the memory plan has it");
  table.Duration("session_idle_seconds", session_idle, 0.001, 1e9,
                 "How long a session is kept after its last chunk");
  table.Flag("warmup", warmup,
             "Run the shortest and the longest sequence before the model is ready, and a batch, of "
             "65536 rows at most, on a GPU also smaller ones; each is given up after five seconds");
  table.Flag("allow_nonfinite", allow_nonfinite,
             "Accept NaN and Inf in float inputs, and in weights");
  table.Flag("add_bos", add_bos,
             "Begin the tokens of each text with the tokenizer's mark of a beginning, as models "
             "expect that were trained so");
  table.Flag("add_eos", add_eos, "End the tokens of each text with the tokenizer's mark of an end");
  table.Texts(
      "prompts", prompts,
      "Texts by name; the one that a request names as prompt_name is put before each of its "
      "texts");
  table.Text("default_prompt", default_prompt,
             "The name of the prompt that stands before the texts of requests that name none; "
             "none: nothing does");
  table.Text(
      "pair_template", pair_template,
      "The text in which a re-ranker's pairs are written, with {query} and {document} in it and, "
      "for the prompt, {prompt}; none: as the tokenizer joins two texts");
}

ReplicaPlan ServingOptions::Replicas(int64_t devices) const {
  return Replicas(devices, Processors());
}

ReplicaPlan ServingOptions::Replicas(int64_t devices, int64_t processors) const {
  ReplicaPlan plan{.replicas = replicas,
                   .threads = threads,
                   .batch_tokens = max_batch_tokens,
                   .batch_sequences = max_batch_sequences,
                   .long_rows = 0,
                   .reason = "as configured"};
  if (max_batch_sequences == 0) {
    plan.batch_sequences = devices > 0 ? kMostSequencesPerBatch : kSequencesPerBatch;
  }
  if (devices > 0) {
    if (replicas == 0) plan.replicas = devices;
    if (replicas == 0) plan.reason = "devices: " + std::to_string(devices) + ", a replica for each";
    if (threads == 0) plan.threads = 1;  // the thread has little to do but to ask for what follows
    if (max_batch_tokens == 0) plan.batch_tokens = kTokensPerDevice;
    plan.long_rows = plan.batch_tokens;  // nothing overtakes what a device was asked for
    return plan;
  }
  plan.shared = true;
  if (threads == 0) {
    plan.threads = processors;
    plan.reason = "processors: " + std::to_string(processors) + ", shared by the replicas";
  }
  if (replicas == 0) {
    plan.replicas = std::clamp(processors / kThreadsPerReplica, kFewestReplicas, kMostReplicas);
    if (threads > 0 || processors == 1) plan.replicas = 1;
  }
  plan.apart = std::clamp<int64_t>(processors / plan.threads, 1, plan.replicas);
  // While all compute; one alone is faster still.
  const int64_t own = threads > 0 ? threads : std::max<int64_t>(1, processors / plan.replicas);
  if (max_batch_tokens == 0) plan.batch_tokens = kTokensPerThread * own;
  plan.long_rows = std::min(kRowsPerThread * plan.threads, plan.batch_tokens);
  return plan;
}

EngineOptions ServingOptions::ForEngine(const ReplicaPlan& plan) const {
  EngineOptions options;
  const auto* const name = std::find(kPaddingNames.begin(), kPaddingNames.end(), padding);
  if (name != kPaddingNames.end()) options.padding = Padding(name - kPaddingNames.begin());
  options.buckets = buckets;
  options.policy.max_tokens = plan.batch_tokens;
  options.policy.max_sequences = plan.batch_sequences;
  options.policy.max_delay = max_batch_delay;
  options.policy.long_rows = plan.long_rows;
  options.limits = queue;
  if (max_session_bytes > 0) options.sessions.max_bytes = max_session_bytes;
  options.sessions.max_idle = session_idle;
  options.replicas = plan.replicas;
  options.shared = plan.shared;
  options.apart = plan.apart;
  options.cache_bytes = cache_bytes;
  options.warmup = warmup;
  return options;
}

}  // namespace linserve
