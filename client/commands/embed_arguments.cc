#include "client/commands/embed_arguments.h"

#include <string>
#include <vector>

namespace linserve {

void EmbedArguments::AddTo(CLI::App& embed) {
  AddInputOptions(embed);
  choice.AddTo(embed);
  AddOutputOptions(embed);
  AddSessionOptions(embed);
}

absl::Status EmbedArguments::Check() const {
  if (neighbours && Format() != InputFormat::kText) {
    return absl::InvalidArgumentError("--neighbours needs lines of text (--format text)");
  }
  if (neighbours && choice.pooling == "none") {
    return absl::InvalidArgumentError("--neighbours compares vectors: choose a --pooling");
  }
  if (neighbours && !output.empty()) {
    return absl::InvalidArgumentError(
        "--neighbours prints a table to standard output: leave --output out");
  }
  if (neighbours && choice.outputs.size() > 1) {
    return absl::InvalidArgumentError("--neighbours compares one output: give one --output-name");
  }
  const bool chunks = chunk_rows > 0;
  if (!chunks && !(restore + save).empty()) {
    return absl::InvalidArgumentError("--restore and --save are of sessions: give --chunk-rows");
  }
  if (chunks && choice.pooling != "none" && choice.pooling != "last") {
    return absl::InvalidArgumentError(
        "--chunk-rows gives the rows of each chunk: choose --pooling "
        "none, or last for the last row alone");
  }
  if (ResultFormat() != OutputFormat::kJsonLines && (output.empty() || output == "-")) {
    return absl::InvalidArgumentError("--output-format " + output_format +
                                      " needs --output FILE, which standard output is not");
  }
  return absl::OkStatus();
}

InputFormat EmbedArguments::Format() const {
  const auto named = InputFormatFromName(format);
  return named ? *named : InputFormatOfPath(file);
}

OutputFormat EmbedArguments::ResultFormat() const {
  if (const auto named = OutputFormatFromName(output_format)) return *named;
  if (output.ends_with(".npy")) return OutputFormat::kNpy;
  return output.ends_with(".safetensors") ? OutputFormat::kSafetensors : OutputFormat::kJsonLines;
}

void EmbedArguments::AddInputOptions(CLI::App& embed) {
  embed.add_option("FILE", file, "What to embed; - is standard input")->capture_default_str();
  embed
      .add_option("--format", format,
                  "What the file holds. text: each line is a text, whose bytes are token ids where "
                  "the model has no tokenizer; ids: each line is [id, ...] or "
                  "{\"id\": ..., \"x\": [id, ...]}; npy: one sequence, or many along a leading "
                  "axis; safetensors: each tensor is a sequence; auto: the file's extension says "
                  "which (.jsonl is ids), and any other is text")
      ->check(CLI::IsMember({"auto", "text", "ids", "npy", "safetensors"}))
      ->capture_default_str();
  embed.add_option("--token-offset", input.token_offset,
                   "Add this to every byte of a text where the model has no tokenizer, for models "
                   "with special tokens below the bytes");
  embed
      .add_flag("--truncate{right}", truncate,
                "Cut lines of text or ids that are longer than the model takes, on the right; "
                "--truncate=left keeps their ends, --truncate=none refuses them; without it, the "
                "model's option truncation says what becomes of texts")
      ->check(CLI::IsMember(
          std::vector<std::string>(kTruncationNames.begin(), kTruncationNames.end())));
  embed.add_option("--prompt-name", prompt_name,
                   "The model's prompt to put before each text, by its name (default: its default "
                   "one, if it has one)");
  embed.add_flag("--batched", input.batched,
                 "Read a safetensors file of a whole batch as the Python package has it: its "
                 "tensors are named input.<argument>, with input.lengths if they are padded");
}

void EmbedArguments::AddOutputOptions(CLI::App& embed) {
  embed.add_option("--output", output, "Where to write (default: standard output)");
  embed
      .add_option("--output-format", output_format,
                  "How results are written. jsonl: one object a sequence; npy: one array, in which "
                  "a failed sequence is a row of NaN; safetensors: one tensor a sequence, named by "
                  "its id; auto: the extension of --output says which, and any other is jsonl")
      ->check(CLI::IsMember({"auto", "jsonl", "npy", "safetensors"}))
      ->capture_default_str();
  embed.add_flag("--neighbours", neighbours,
                 "Print, in place of the results, a table of each text line's nearest other line");
  embed.add_option("--batch", batch, "The most sequences in one request")
      ->check(CLI::Range(1, 100000))
      ->capture_default_str();
  embed.add_option("--in-flight", in_flight, "How many requests are sent at a time")
      ->check(CLI::Range(1, 256))
      ->capture_default_str();
}

void EmbedArguments::AddSessionOptions(CLI::App& embed) {
  embed
      .add_option("--chunk-rows", chunk_rows,
                  "Send each sequence as a session, so many rows at a time: causal models read on "
                  "where the chunk before ended")
      ->check(CLI::Range(int64_t{1}, int64_t{1} << 40));
  embed.add_option(
      "--restore", restore,
      "With --chunk-rows: the file of a saved session, from which the sequence goes on");
  embed.add_option("--save", save,
                   "With --chunk-rows: where to save the session after the last row");
}

}  // namespace linserve
