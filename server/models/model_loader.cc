#include "models/model_loader.h"

#include <torch/headeronly/version.h>

#include <filesystem>
#include <fstream>
#include <functional>
#include <nlohmann/json.hpp>
#include <utility>

#include "attention/aten.h"
#include "attention/device_plugin.h"
#include "core/processors.h"
#include "core/safetensors.h"
#include "models/checkpoint.h"
#include "models/config_error.h"
#include "models/fingerprint.h"
#include "models/model_config.h"
#include "models/placement.h"
#include "models/registry.h"
#include "models/tensor_bridge.h"
#include "models/torch_model.h"
#include "telemetry/log.h"

namespace linserve {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

// Runs `function`, turning this layer's exceptions into a status that begins with `where`.
template <typename Result>
Result Caught(const std::string& where, const std::function<Result()>& function) {
  try {
    return function();
  } catch (const ConfigError& error) {
    return absl::InvalidArgumentError(where + ": " + error.what());
  } catch (const std::bad_alloc&) {
    return absl::ResourceExhaustedError(where + ": not enough memory for the weights");
  } catch (const c10::Error& error) {
    return absl::InternalError(where + ": " + error.what_without_backtrace());
  } catch (const std::exception& error) {
    return absl::InternalError(where + ": " + error.what());
  }
}

// A network built as config.json says, with the list of its parameters.
struct Built {
  std::unique_ptr<Network> network;
  ParameterList parameters;

  static Built From(const NetworkConfig& config) {
    Built built{MakeNetwork(config), {}};
    built.network->Declare(Scope(built.parameters));
    for (const Parameter& parameter : built.parameters) {
      if (!CheckedByteSize(DType::kF64, parameter.shape)) {
        throw ConfigError(config.architecture + ": the tensor " + parameter.name() + " would be " +
                          ToString(parameter.shape) + ", more than any memory holds");
      }
    }
    return built;
  }

  ModelInfo Describe(const std::string& architecture) const {
    ModelInfo info;
    info.architecture = architecture;
    info.signature = network->signature();
    for (const Parameter& parameter : parameters) {
      const int64_t elements = ElementCount(parameter.shape);
      if (parameter.kind == ParameterKind::kParameter) info.parameters += elements;
      info.bytes += elements * static_cast<int64_t>(ByteSize(DType::kF32));
    }
    info.layers = network->Layers();
    const SessionPlan sessions = network->Sessions();
    info.no_sessions = sessions.refusal;
    info.session_bytes = sessions.elements() * static_cast<int64_t>(ByteSize(DType::kF32));
    return info;
  }
};

bool HasFastBFloat16(const at::Device& device) {
  if (device.is_cpu()) return HasAmxBFloat16();
  return FindDevicePlugin(device.type())->has_bfloat16(device.index());
}

DType ComputeType(const std::string& dtype, const at::Device& device) {
  if (dtype == "bf16") return DType::kBF16;
  if (dtype == "f32") return DType::kF32;
  if (dtype == "auto") {
    if (HasFastBFloat16(device)) return DType::kBF16;
    return device.is_cpu() ? DType::kF32 : DType::kF16;
  }
  if (dtype != "f16") throw ConfigError("dtype \"" + dtype + "\" is none of f32, bf16, f16, auto");
  if (device.is_cpu()) {
    throw ConfigError("dtype \"f16\" is for GPUs; the CPU computes in f32 or bf16");
  }
  return DType::kF16;
}

at::Device ParseDevice(const std::string& name) {
  try {
    const at::Device device(name);
    if (device.is_cpu() || FindDevicePlugin(device.type()) != nullptr) return device;
  } catch (const c10::Error&) {
    // Said below.
  }
  throw ConfigError("device \"" + name + "\" is neither cpu nor one whose plug-in is open");
}

// What LibTorch would round to fewer digits than the type has, unless it is told not to.
void ComputeExactly() {
  at::Context& context = at::globalContext();
  context.setAllowTF32CuBLAS(false);
  context.setAllowTF32CuDNN(false);
  context.setAllowFP16ReductionCuBLAS(false);
  context.setAllowBF16ReductionCuBLAS(false);
}

std::string WeightsPath(const std::string& directory) { return directory + "/model.safetensors"; }

absl::StatusOr<std::unique_ptr<Model>> Load(const std::string& directory,
                                            const LoadOptions& options) {
  const Placement placement(ParseDevice(options.device));
  const Placement::Entered entered(placement);
  auto config = ReadModelConfig(directory);
  if (!config.ok()) return config.status();
  // Asked first: a thread's first question sets its number to what another thread set last.
  at::get_num_threads();
  at::set_num_threads(static_cast<int>(options.threads > 0 ? options.threads : Processors()));
  // Products of denormal numbers, which softmaxes are full of, take fifteen times as long. The
  // replica's other threads are made by this one and do the same.
  at::Context::setFlushDenormal(true);
  ComputeExactly();
  Built built = Built::From(config->network);
  ModelInfo info = built.Describe(config->network.architecture);
  if (options.accept) {
    if (absl::Status status = options.accept(info.signature); !status.ok()) return status;
  }
  auto file = ReadSafetensors(WeightsPath(directory));
  if (!file.ok()) return file.status();
  const AlignedCheckpoint checkpoint =
      AlignCheckpoint(built.parameters, file->tensors, config->aliases);
  if (!checkpoint.stripped_prefix.empty()) {
    Log(LogLevel::kInfo, "checkpoint prefix removed",
        {{"model", directory}, {"prefix", checkpoint.stripped_prefix}});
  }
  for (const std::string& warning : built.network->Notes().warnings) {
    Log(LogLevel::kWarning, warning, {{"model", directory}});
  }
  info.device = options.device;
  info.dtype = ComputeType(options.dtype, placement.device());
  info.bytes = info.bytes / static_cast<int64_t>(ByteSize(DType::kF32)) *
               static_cast<int64_t>(ByteSize(info.dtype));
  info.signature.allow_nonfinite = options.allow_nonfinite;
  info.fingerprint = FingerprintOf(config->network, info.dtype, checkpoint.tensors);
  LoadParameters(built.parameters, checkpoint, ToScalarType(info.dtype), placement.device());
  built.parameters.Prepare();
  built.network->Prepare();
  file->mapping.ReleasePages();  // most of it was copied into the form that is computed with
  return MakeTorchModel(std::move(built.network), std::move(info), placement);
}

absl::Status WriteRandomModel(const std::string& architecture, const std::string& params,
                              uint64_t seed, const std::string& directory,
                              const std::string& wrapper) {
  json arguments = json::parse(params, nullptr, /*allow_exceptions=*/false, true);
  if (!arguments.is_object()) {
    throw ConfigError("--params is not a JSON object: " + params +
                      "; write for example '{\"dim\": 64, \"seq_len\": 512, \"depth\": 2}'");
  }
  const json wrapped = json::parse(wrapper, nullptr, /*allow_exceptions=*/false, true);
  if (!wrapped.is_null() && !wrapped.is_object()) {
    throw ConfigError("--wrapper is not a JSON object: " + wrapper);
  }
  // What is trained anew should not depend on its neighbours.
  if (architecture == "linear_multihead_attention.LinearMultiheadAttention") {
    arguments.emplace("projection_layout", "corrected");
  }
  Built built =
      Built::From({.architecture = architecture, .params = arguments, .wrapper = wrapped});
  if (fs::exists(directory + "/config.json") || fs::exists(WeightsPath(directory))) {
    return absl::AlreadyExistsError(directory + " holds a model already; choose another directory");
  }
  fs::create_directories(directory);
  InitParameters(built.parameters, seed);
  TensorMap tensors;
  for (const Parameter& parameter : built.parameters) {
    tensors[parameter.name()] = FromAten(*parameter.slot);
  }
  absl::Status written = WriteSafetensors(WeightsPath(directory), tensors, {{"format", "pt"}});
  if (!written.ok()) return written;
  std::ofstream config(directory + "/config.json");
  json document = {{"architecture", architecture}, {"params", arguments}};
  if (!wrapped.is_null()) document["wrapper"] = wrapped;
  config << document.dump(2) << "\n";
  config.close();
  if (!config) return absl::UnknownError("cannot write " + directory + "/config.json");
  return absl::OkStatus();
}

// The length that the cost is told for: the longest.
int64_t TypicalLength(const Signature& signature) {
  if (const int64_t longest = LongestFor(signature, Item(), 'n'); longest > 0) return longest;
  return signature.limits.empty() ? 512 : signature.limits[0].longest;
}

absl::StatusOr<ModelReport> Inspect(const std::string& directory) {
  auto config = ReadModelConfig(directory);
  if (!config.ok()) return config.status();
  Built built = Built::From(config->network);
  ModelReport report;
  report.info = built.Describe(config->network.architecture);
  for (const Parameter& parameter : built.parameters) {
    report.parameters.push_back({parameter.name(), parameter.shape});
  }
  NetworkNotes notes = built.network->Notes();
  report.facts = std::move(notes.facts);
  report.warnings = std::move(notes.warnings);
  report.length = TypicalLength(report.info.signature);
  report.flops_per_token = built.network->Flops(report.length) / static_cast<double>(report.length);
  auto file = ReadSafetensors(WeightsPath(directory));
  if (!file.ok()) return file.status();
  const AlignedCheckpoint checkpoint =
      AlignCheckpoint(built.parameters, file->tensors, config->aliases);
  report.stripped_prefix = checkpoint.stripped_prefix;
  report.difference = checkpoint.difference.ToString();
  return report;
}

}  // namespace

absl::StatusOr<std::unique_ptr<Model>> LoadModel(const std::string& directory,
                                                 const LoadOptions& options) {
  return Caught<absl::StatusOr<std::unique_ptr<Model>>>(directory,
                                                        [&] { return Load(directory, options); });
}

ModelFactory ReplicasOf(const std::string& directory, LoadOptions options,
                        std::vector<std::string> devices) {
  return [directory, options = std::move(options), devices = std::move(devices)](int64_t replica) {
    LoadOptions own = options;
    own.device = devices[static_cast<size_t>(replica) % devices.size()];
    return LoadModel(directory, own);
  };
}

absl::Status InitModel(const std::string& architecture, const std::string& params, uint64_t seed,
                       const std::string& directory, const std::string& wrapper) {
  return Caught<absl::Status>(
      "init", [&] { return WriteRandomModel(architecture, params, seed, directory, wrapper); });
}

absl::StatusOr<ModelReport> InspectModel(const std::string& directory) {
  return Caught<absl::StatusOr<ModelReport>>(directory, [&] { return Inspect(directory); });
}

std::vector<std::string> Architectures() { return KnownArchitectures(); }

std::string TorchVersion() { return TORCH_VERSION; }

}  // namespace linserve
