"""Checkpoints as training leaves them: what load() reads, and export() finds in it."""

import argparse
import contextlib
import io
import json
import re
import subprocess
import sys
import tempfile
import unittest
import warnings
from pathlib import Path

import python_package
import pytorch_lightning
import torch
from ema_pytorch import EMA
from linformer import LinformerLM
from linformer_pytorch import Linformer, LinformerEncDec, Padder
from performer_pytorch import Performer, PerformerLM
from safetensors.torch import load_file, save_file, save_model
from served import BIN

exporter = python_package.load("linserve_export")
LM = dict(num_tokens=50, dim=16, seq_len=20, depth=2, heads=2, k=4)
STACK = dict(input_size=20, channels=16, dim_k=4, dim_ff=8, depth=2)
PERFORMER_LM = dict(num_tokens=50, max_seq_len=20, dim=16, depth=1, heads=2, dim_head=8, rotary_position_emb=False,
                    attn_out_bias=True)
PERFORMER = dict(dim=16, depth=1, heads=2, dim_head=8, generalized_attention=True)
IDS = torch.randint(50, (2, 13))


class Trained(pytorch_lightning.LightningModule):
    def __init__(self):
        super().__init__()
        self.net = LinformerLM(**LM)
        self.probe = torch.nn.Linear(2, 2)

    def training_step(self, batch, _):
        return self.net(batch).square().mean()

    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters())


class Executed:
    """What a pickle may hold: something to be executed."""

    def __reduce__(self):
        return print, ("executed",)


class CheckpointsTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        self.model = LinformerLM(**LM)
        self.tensors = self.model.state_dict()

    def saved(self, value, name="weights.pt"):
        torch.save(value, self.folder / name)
        return self.folder / name

    def exported(self, checkpoint, model=LinformerLM, params=None, example=IDS, **options):
        exporter.export(model, params or LM, self.folder / "model", example, checkpoint=checkpoint, **options)
        return load_file(self.folder / "model/model.safetensors")

    def finds(self, checkpoint, wanted=None, **options):
        tensors, wanted = self.exported(checkpoint, **options), wanted or self.tensors
        self.assertEqual(set(tensors), set(wanted))
        for name, tensor in tensors.items():
            self.assertTrue(torch.equal(tensor, wanted[name]), name)

    def test_files_of_torch(self):
        self.finds(self.saved(self.tensors))
        self.finds(self.saved(self.tensors, "pytorch_model.bin"))
        self.finds(self.saved({"model_state_dict": {"module." + name: tensor for name, tensor in self.tensors.items()},
                               "epoch": 3, "loss": torch.tensor(1.0)}))
        self.finds(self.saved({"module": {"_forward_module.net._orig_mod." + name: tensor
                                          for name, tensor in self.tensors.items()}}, "mp_rank_00_model_states.pt"))
        self.finds(self.saved({name.replace("linformer.", "linformer._orig_mod._checkpoint_wrapped_module."): tensor
                               for name, tensor in self.tensors.items()}))

    def test_an_instance_takes_the_weights_and_keeps_its_wrapper(self):
        model = Linformer(**STACK)
        checkpoint = self.saved(Padder(model).state_dict())
        self.exported(checkpoint, Padder(Linformer(**STACK)), STACK, torch.randn(1, 11, 16))
        config = json.loads((self.folder / "model/config.json").read_text(encoding="utf-8"))
        self.assertEqual(config["wrapper"], {"type": "linformer_pytorch.Padder"})

    def test_lightning(self):
        warnings.simplefilter("ignore")
        module = Trained()
        trainer = pytorch_lightning.Trainer(max_steps=1, accelerator="cpu", logger=False,
                                            enable_progress_bar=False, enable_model_summary=False,
                                            default_root_dir=self.folder)
        trainer.fit(module, torch.utils.data.DataLoader(IDS, batch_size=2))
        trainer.save_checkpoint(self.folder / "last.ckpt")
        with contextlib.redirect_stdout(io.StringIO()) as printed:
            self.finds(self.folder / "last.ckpt", module.net.state_dict())
        self.assertIn("no such tensors: state_dict.probe.weight, state_dict.probe.bias\n", printed.getvalue())

    def test_shards(self):
        names = sorted(self.tensors)
        for kind, save in (("pytorch_model.bin", torch.save), ("model.safetensors", save_file)):
            parts = {f"part-{i}-{kind}": names[i::2] for i in range(2)}
            for file, held in parts.items():
                save({name: self.tensors[name] for name in held}, self.folder / file)
            index = self.folder / f"{kind}.index.json"
            index.write_text(json.dumps({"weight_map": {name: file for file, held in parts.items() for name in held}}),
                             encoding="utf-8")
            self.finds(index)
            self.finds(self.folder)
            index.unlink()
        with self.assertRaisesRegex(ValueError, "folder without an .*index.json"):
            exporter.load(self.folder)

    def test_what_save_model_has_left_out(self):
        model = Linformer(**STACK)
        save_model(model, self.folder / "tied.safetensors")
        tensors = self.exported(self.folder / "tied.safetensors", Linformer, STACK, torch.randn(1, 20, 16))
        self.assertEqual(sum(name.endswith(".E.weight") for name in tensors), 1)

    def test_one_of_several_models(self):
        ema = EMA(self.model, beta=0.5)
        with torch.no_grad():
            ema.ema_model.to_logits.bias.add_(1)
        checkpoint = self.saved(ema.state_dict())
        for part in ("", "other"):
            with self.assertRaisesRegex(ValueError, r"holds models under \['ema_model.', 'online_model.'\]"):
                self.exported(checkpoint, part=part)
        self.finds(checkpoint, ema.ema_model.state_dict(), part="ema_model")
        self.finds(checkpoint, part="online_model")
        # One model under two names is one.
        self.finds(self.saved({prefix + name: tensor for prefix in ("net.", "padder.net.")
                               for name, tensor in self.tensors.items()}))

    def test_nothing_is_executed(self):
        for value, held in ((self.model, "linformer.linformer.LinformerLM"),
                            ({"state_dict": self.tensors, "more": Executed()}, ".*print")):
            checkpoint = self.saved(value)
            with self.assertRaisesRegex(ValueError, f"weights.pt holds {held}, .*weights_only=False"), \
                 contextlib.redirect_stdout(io.StringIO()) as printed:
                self.exported(checkpoint)
            self.assertEqual(printed.getvalue(), "")
        (self.folder / "weights.pt").write_bytes(b"no checkpoint")
        with self.assertRaisesRegex(ValueError, "holds no tensors that torch can read"):
            exporter.load(self.folder / "weights.pt")

    def test_what_the_program_says_of_a_pickle(self):
        (self.folder / "config.json").write_text(json.dumps({"architecture": "linformer.LinformerLM", "params": LM}),
                                                 encoding="utf-8")
        whole = {"epoch": 3, "args": argparse.Namespace(arch="linformer"), "optimizer": {"state": {}}}
        for held in (self.tensors, *({**whole, key: self.tensors}
                                     for key in ("state_dict", "model_state_dict", "model", "module"))):
            line = self.line_for(self.saved(held, "checkpoint_best.pt"))
            self.runs(line, 0)
            self.assertEqual(set(load_file(self.folder / "model.safetensors")), set(self.tensors))
            (self.folder / "model.safetensors").unlink()
        line = self.line_for(self.saved({**whole, "weights": self.tensors}, "checkpoint_best.pt"))
        self.assertIn("['epoch', 'args', 'optimizer', 'weights']", self.runs(line, 1))
        self.assertFalse((self.folder / "model.safetensors").exists())

    def line_for(self, checkpoint):
        """What is to be pasted, as it is said where a checkpoint lies in the weights' place."""
        said = subprocess.run([BIN / "linserve", "inspect", "--model", checkpoint.parent], capture_output=True,
                              text=True, check=False).stderr
        return re.search("`(import .*)`", said)[1]

    def runs(self, line, code):
        done = subprocess.run([sys.executable, "-c", line], cwd=self.folder, capture_output=True, text=True,
                              check=False)
        self.assertEqual(done.returncode, code, done.stderr)
        return done.stderr

    def test_arguments_beside_the_weights(self):
        self.finds(self.saved({"args": argparse.Namespace(arch="linformer"), "model": self.tensors}))

    def test_what_is_not_the_models(self):
        with self.assertRaisesRegex(ValueError, r"2 tensors, such as \['a', 'b'\], are not the model's"):
            self.exported(self.saved({"a": torch.ones(2), "b": torch.ones(2)}))
        del self.tensors["to_logits.bias"]
        with self.assertRaisesRegex(ValueError, r"1 lack, such as \['to_logits.bias'\]"):
            self.exported(self.saved(self.tensors))
        with self.assertRaisesRegex(ValueError, "layers.1.* is not in it"):
            self.exported(self.saved(LinformerLM(**LM).state_dict()), params={**LM, "depth": 1})
        with self.assertRaisesRegex(ValueError, "LinformerLM is a class"):
            self.exported(None)

    def test_a_performers_counter_and_the_head_that_nobody_asks_for(self):
        model = PerformerLM(**PERFORMER_LM)
        wanted = {name: tensor for name, tensor in model.state_dict().items()
                  if not name.endswith("calls_since_last_redraw")}
        bare = {name: tensor for name, tensor in wanted.items() if "proj_updater" not in name}
        counted = {**bare, "performer.calls_since_last_redraw": torch.tensor(3)}  # as in scBERT
        about = dict(model=PerformerLM, params=PERFORMER_LM)
        with contextlib.redirect_stdout(io.StringIO()) as printed:
            self.finds(self.saved({"epoch": 1, "model_state_dict": counted}), bare, **about)
        self.assertNotIn("left behind", printed.getvalue())
        headless = {name: tensor for name, tensor in bare.items() if not name.startswith("to_out.")}
        tuned = {"module." + name: tensor for name, tensor in {**headless, "to_out.fc1.weight": torch.ones(3)}.items()}
        with self.assertRaisesRegex(ValueError, "2 lack, such as .*to_out.weight"):
            self.finds(self.saved(tuned), headless, **about)
        example = {"x": IDS, "return_encodings": True}
        with contextlib.redirect_stdout(io.StringIO()) as printed:
            self.finds(self.saved(tuned), headless, example=example, **about)
        self.assertIn("no such tensors: module.to_out.fc1.weight\n", printed.getvalue())
        model.to_out = torch.nn.Sequential(torch.nn.Linear(16, 3))
        exporter.export(model, PERFORMER_LM, self.folder / "tuned", example)
        self.assertEqual(json.loads((self.folder / "tuned/config.json").read_text())["call"],
                         {"return_encodings": True})
        example = self.folder / "tuned/example.safetensors"
        subprocess.run([BIN / "linserve", "run", "--model", self.folder / "tuned", "--input", example, "--compare",
                        example, "--tolerance", "1e-5"], capture_output=True, check=True)

    def test_a_performers_functions(self):
        nn = torch.nn
        served = {"relu": nn.ReLU(inplace=True), "gelu": nn.GELU(), "gelu_new": nn.GELU("tanh"), "silu": nn.SiLU(),
                  "sigmoid": nn.Sigmoid(), "tanh": nn.Tanh(), "elu": nn.ELU(), "leaky_relu": nn.LeakyReLU(),
                  "mish": nn.Mish(), "relu6": nn.ReLU6(), "exp": torch.exp, "linear": nn.Identity()}
        self.assertEqual(set(served), set(exporter.KERNELS))
        for name, kernel in served.items():
            self.assertEqual(self.kernel_of(kernel), name)
            subprocess.run([BIN / "linserve", "inspect", "--model", self.folder / "kernel"], capture_output=True,
                           check=True)
        for kernel in (nn.ELU(0.5), nn.LeakyReLU(0.2), nn.Softplus(), nn.Hardswish(), torch.square):
            with self.assertRaisesRegex(ValueError, "expected one that is served: relu, gelu, "):
                self.kernel_of(kernel)
        self.assertIsNone(self.kernel_of(nn.Softplus(), generalized_attention=False))

    def kernel_of(self, kernel, **more):
        params = {**PERFORMER, "kernel_fn": kernel, **more}
        exporter.export(Performer(**params), params, self.folder / "kernel", torch.randn(1, 9, 16))
        config = json.loads((self.folder / "kernel/config.json").read_text(encoding="utf-8"))
        return config["params"].get("kernel_fn")

    def test_e_and_f_that_no_checkpoint_holds(self):
        params = {**STACK, "method": "no_params"}
        with self.assertRaisesRegex(ValueError, r"heads.0.E.*no_params they are in no state_dict"):
            self.exported(self.saved(Linformer(**params).state_dict()), Linformer, params, torch.randn(1, 20, 16))

    def test_a_model_within_a_model(self):
        params = dict(enc_num_tokens=50, enc_input_size=20, enc_channels=16, dec_num_tokens=50, dec_input_size=20,
                      dec_channels=16)
        model = LinformerEncDec(**params)
        tensors = self.exported(self.saved({"net." + name: tensor for name, tensor in model.state_dict().items()}),
                                LinformerEncDec, params, {"x": torch.randint(50, (1, 20))})
        self.assertTrue(all(name.startswith(("encoder.", "decoder.")) for name in tensors))


if __name__ == "__main__":
    unittest.main(verbosity=2, buffer=True)
