"""Checkpoints as training leaves them: what load() reads, and export() finds in it."""

import contextlib
import io
import json
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
from safetensors.torch import load_file, save_file, save_model

exporter = python_package.load("linserve_export")
LM = dict(num_tokens=50, dim=16, seq_len=20, depth=2, heads=2, k=4)
STACK = dict(input_size=20, channels=16, dim_k=4, dim_ff=8, depth=2)
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
