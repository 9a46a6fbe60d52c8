#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <fstream>
#include <iterator>
#include <map>
#include <vector>

#include "client/commands/commands.h"
#include "client/commands/target.h"
#include "client/library/embedding_client.h"
#include "core/files/pem.h"
#include "core/options/command_line.h"
#include "core/sequence/pooling.h"
#include "core/system/loopback.h"
#include "core/system/standard_output.h"
#include "core/system/version.h"
#include "core/threads/lock_cycles.h"

namespace linserve {

namespace {

// Returns the text of a file; "" if there is no path.
std::string TextOf(const std::string& path) {
  if (path.empty()) return "";
  std::ifstream file(path);
  std::string text{std::istreambuf_iterator<char>(file), {}};
  if (file && !text.empty()) return text;
  throw CLI::ValidationError("cannot read " + path + ", or it is empty");
}

// Returns the token as it can stand in a header. gRPC ends a process that sends another.
std::string TokenOf(std::string text, const std::string& source) {
  while (text.ends_with('\n') || text.ends_with('\r')) text.pop_back();
  const auto printable = [](char c) { return c >= ' ' && c <= '~'; };
  if (std::all_of(text.begin(), text.end(), printable)) return text;
  throw CLI::ValidationError("the token in " + source + " is not one line of printable ASCII");
}

// Refuses files with which gRPC would only say that it cannot connect.
void CheckPem(const GlobalOptions& files, const TlsOptions& texts) {
  const auto expect = [](bool holds, const std::string& file, const std::string& what) {
    if (!holds) throw std::invalid_argument(file + " holds no " + what + " in PEM" + PemFault());
  };
  if (!texts.authority.empty()) {
    expect(!CertificatesIn(texts.authority).empty(), "--tls-ca " + files.tls_ca, "certificate");
  }
  if (texts.certificate.empty()) return;
  const auto certificates = CertificatesIn(texts.certificate);
  expect(!certificates.empty(), "--tls-certificate " + files.tls_certificate, "certificate");
  const PrivateKey key = PrivateKeyIn(texts.private_key);
  expect(key != nullptr, "--tls-key " + files.tls_key, "private key without a password");
  if (BelongTogether(certificates[0], key)) return;
  throw std::invalid_argument("--tls-key " + files.tls_key +
                              " is not the key of --tls-certificate " + files.tls_certificate);
}

}  // namespace

void GlobalOptions::AddTo(CLI::App& app) {
  app.add_option("--target", target,
                 "The server: HOST:PORT, dns:///NAME:PORT, unix:PATH, ipv4:ADDRESS:PORT,...")
      ->envname("LINSERVE_GRPC_ADDRESS")
      ->check(CLI::Validator(TargetFault, ""))
      ->capture_default_str();
  app.add_flag("--balance", balance,
               "Spread calls over all addresses of the target that say they serve, and try calls "
               "again that a server refuses while it drains");
  app.add_option(
         "--timeout", timeout_s,
         "Seconds for one call, its retries included; for a sequence that is sent in chunks, "
         "seconds without any progress")
      ->check(CLI::Range(0.001, 1e6))
      ->capture_default_str();
  app.add_option("--protocol", protocol,
                 "What the server speaks. linserve: its own protocol; oip: the Open Inference "
                 "Protocol, which other servers speak, too")
      ->check(CLI::IsMember({"linserve", "oip"}))
      ->capture_default_str();
  app.add_option("--vocabulary", vocabulary,
                 "How many token ids a model on another server has, which does not tell")
      ->check(CLI::Range(1, 1 << 30))
      ->capture_default_str();
  app.add_option("--token-file", token_file,
                 "File with the token that the server asks for; the variable LINSERVE_TOKEN may "
                 "hold the token itself")
      ->check(CLI::ExistingFile);
  app.add_flag("--tls", tls, "Speak TLS; the --tls-... options mean this, too");
  app.add_option("--tls-ca", tls_ca,
                 "PEM file of the authority that signed the server's certificate (default: the "
                 "machine's authorities)")
      ->check(CLI::ExistingFile);
  app.add_option("--tls-certificate", tls_certificate, "PEM file of the certificate to show")
      ->check(CLI::ExistingFile);
  app.add_option("--tls-key", tls_key, "PEM file of the certificate's private key")
      ->check(CLI::ExistingFile);
  app.add_option("--tls-server-name", tls_server_name,
                 "Name that the server's certificate is for, if it is not the target's");
}

ClientOptions GlobalOptions::ToClientOptions() const {
  ClientOptions options;
  options.target = target;
  options.balance = balance;
  options.timeout = std::chrono::milliseconds(std::llround(timeout_s * 1000));
  options.protocol =
      ProtocolFromName(protocol).value_or(Protocol::kLinserve);  // checked when parsed
  options.vocabulary = vocabulary;
  if (tls_certificate.empty() != tls_key.empty()) {
    throw std::invalid_argument(
        "--tls-certificate and --tls-key belong together: give both or neither");
  }
  options.tls = {
      .enabled = tls || !tls_ca.empty() || !tls_certificate.empty() || !tls_server_name.empty(),
      .authority = TextOf(tls_ca),
      .certificate = TextOf(tls_certificate),
      .private_key = TextOf(tls_key),
      .server_name = tls_server_name};
  CheckPem(*this, options.tls);
  const char* token = std::getenv("LINSERVE_TOKEN");  // NOLINT(concurrency-mt-unsafe): at start
  options.token = token_file.empty() && token != nullptr ? TokenOf(token, "LINSERVE_TOKEN")
                                                         : TokenOf(TextOf(token_file), token_file);
  if (!options.token.empty() && !options.tls.enabled && !IsLoopbackTarget(target)) {
    std::fprintf(stderr,
                 "linserve-client: warning: the token is sent to %s in plain text; use --tls\n",
                 target.c_str());
  }
  return options;
}

int FailWith(const absl::Status& status) {
  std::fprintf(stderr, "linserve-client: %s\n", status.ToString().c_str());
  return EXIT_FAILURE;
}

void ModelChoice::AddModelOptions(CLI::App& app) {
  app.add_option("--model", model, "Name of the model; needed if the server has several");
  app.add_option("--version", version, "Version of the model (default: the latest)");
}

void ModelChoice::AddTo(CLI::App& app) {
  AddModelOptions(app);
  AddResultOptions(app);
  app.add_option("--priority", priority,
                 "Which of the waiting sequences go first: those of 1 do, those of 3 go last")
      ->check(CLI::Range(1, 3))
      ->capture_default_str();
}

void ModelChoice::AddResultOptions(CLI::App& app) {
  app.add_option(
         "--output-name", outputs,
         "Output of the model, as `models` lists them (default: the first); may be repeated")
      ->allow_extra_args(false);
  app.add_option("--pooling", pooling,
                 "How the rows of a sequence become one vector (default: as the model is served, "
                 "or else mean)")
      ->check(CLI::IsMember(std::vector<std::string>(kPoolingNames.begin(), kPoolingNames.end())));
  app.add_flag("--normalize,!--no-normalize", normalize,
               "Divide each resulting vector by its 2-norm, or do not (default: as the model is "
               "served)");
  app.add_option("--dtype", dtype,
                 "Type of the results on the wire and in files; i8 is on the wire only, with a "
                 "scale a row, and files have f32 then")
      ->check(CLI::IsMember({"f32", "f16", "bf16", "i8"}))
      ->capture_default_str();
}

OutputOptions ModelChoice::ToOutputOptions(const ModelDescription& of_model) const {
  OutputOptions options;
  options.outputs = outputs;
  const auto served = PoolingFromName(of_model.pooling).value_or(Pooling::kNone);
  options.pooling = served == Pooling::kNone ? Pooling::kMean : served;
  if (!pooling.empty()) options.pooling = *PoolingFromName(pooling);  // checked when parsed
  const bool by_default = of_model.normalize && options.pooling != Pooling::kNone;
  options.normalize = normalize.value_or(by_default);
  const std::map<std::string, DType> dtypes = {
      {"f32", DType::kF32}, {"f16", DType::kF16}, {"bf16", DType::kBF16}, {"i8", DType::kI8}};
  options.dtype = dtypes.at(dtype);
  return options;
}

namespace {

int Main(int argc, char** argv) {
  CLI::App app("The client of a linserve server: files to embeddings, and a load generator.");
  app.footer(
      "Examples:\n"
      "  linserve-client health\n"
      "  linserve-client models --target gpu-host:8500\n"
      "  linserve-client embed sentences.txt > embeddings.jsonl\n"
      "  linserve-client load --rate 200 --duration 30\n"
      "  linserve-client models --tls-ca ca.pem --token-file token.txt\n"
      "`linserve-client SUBCOMMAND --help` shows the options of each.");
  app.set_version_flag("--version",
                       std::string("linserve-client ") + kVersion + " (" + kCommit + ")");
  app.require_subcommand(1);
  app.fallthrough();
  GlobalOptions globals;
  globals.AddTo(app);
  ChosenCommand chosen;
  AddEmbedCommand(app, globals, chosen);
  AddGenerateCommand(app, globals, chosen);
  AddSearchCommand(app, globals, chosen);
  AddCompareCommand(app, globals, chosen);
  AddLoadCommand(app, globals, chosen);
  AddModelsCommand(app, globals, chosen);
  AddHealthCommand(app, globals, chosen);
  AddNullServerCommand(app, chosen);
  if (const auto code = ParseCommandLine(app, argc, argv)) return *code;
  return chosen();
}

}  // namespace
}  // namespace linserve

int main(int argc, char** argv) {
  linserve::OverlookLockCycles();
  linserve::QuietGrpc();
  try {
    return linserve::FinishOutput("linserve-client", linserve::Main(argc, argv));
  } catch (const std::exception& error) {
    std::fprintf(stderr, "linserve-client: %s\n", error.what());
    return EXIT_FAILURE;
  }
}
