#!/usr/bin/env python3
"""Stands in for programs that the pages name and a test cannot run: checks what can be known of their arguments.

What it is called as says which program is meant. What was applied or built is kept in the file DOCS_STATE.
"""

import json
import os
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path

ROOT, BIN, STATE = (Path(os.environ[name]) for name in ("DOCS_ROOT", "DOCS_BIN", "DOCS_STATE"))
# As JSON: kind, namespace and name of each object, as tests/system/deploy reads manifests.
RENDER = """
import json, sys
from manifests import render
print(json.dumps([[document["kind"].lower(), document["metadata"].get("namespace", ""), document["metadata"]["name"]]
                  for document in render(sys.argv[1])]))
"""
KINDS = {"hpa": "horizontalpodautoscaler"}


def check(holds, why):
    if not holds:
        sys.exit(f"{Path(sys.argv[0]).name}: {why}")


def known():
    return json.loads(STATE.read_text(encoding="utf-8")) if STATE.exists() else []


def keep(things):
    STATE.write_text(json.dumps(things), encoding="utf-8")


def render(directory):
    """The objects of a kustomization; None where what renders it is not installed."""
    check(Path(directory, "kustomization.yaml").is_file(), f"{directory} is no kustomization")
    python = ROOT / ".venv-deploy/bin/python"
    if not python.exists():
        return None
    done = subprocess.run([python, "-c", RENDER, os.path.realpath(directory)], capture_output=True, text=True,
                          env={**os.environ, "PYTHONPATH": str(ROOT / "tests/system/deploy")})
    check(done.returncode == 0, done.stderr)
    return json.loads(done.stdout)


def in_a_pod(command):
    """Beside a server of the bundled model, as the pod of overlays/try has one."""
    server = subprocess.Popen([BIN / "linserve", "serve", "--model-repository", ROOT / "deploy/models"],
                              stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        health = [BIN / "linserve-client", "health"]
        while subprocess.run(health, stdin=subprocess.DEVNULL, capture_output=True).returncode:
            check(server.poll() is None, "the server of the pod did not start")
            time.sleep(0.05)
        check(subprocess.run([BIN / command[0], *command[1:]]).returncode == 0, "the command failed")
    finally:
        server.terminate()
        server.wait()


def kubectl(arguments):
    """A cluster that has what was applied to it, and no pods that run."""
    namespace = ""
    if arguments[0] == "-n":
        namespace, arguments = arguments[1], arguments[2:]
    verb, *rest = arguments

    def find(kind, name):
        # Without what renders manifests nothing is known of any object.
        there = not known() or [KINDS.get(kind, kind), namespace, name] in known()
        check(there, f"there is no {kind}/{name} in the namespace {namespace}")
    if verb in ("apply", "delete") and rest[0] == "-k":
        objects = render(rest[1]) or []
        if verb == "delete":
            check(all(one in known() for one in objects), f"{rest[1]} was not applied")
        keep([one for one in known() if one not in objects] + (objects if verb == "apply" else []))
    elif verb == "get" and rest[0] == "--raw":
        metric = rest[1].rsplit("/", 1)[1]
        check(metric in (ROOT / "deploy/monitoring/prometheus-adapter.yaml").read_text(encoding="utf-8"),
              f"the adapter gives no {metric}")
    elif verb == "delete":
        find(*rest)
    elif verb == "cp":
        check(Path(rest[0]).exists(), f"there is no {rest[0]}")
        find("pod", rest[1].split(":")[0])
    elif verb in ("rollout", "wait", "port-forward", "exec"):
        name = next(word for word in rest if not word.startswith("-") and word != "status")
        find(*(name.split("/") if "/" in name else ("pod", name)))
        command = rest[rest.index("--") + 1:] if "--" in rest else []
        if command and command[0] == "linserve-client":
            in_a_pod(command)
    else:
        check(False, f"'{verb}' is not known here")


def docker(arguments):
    """Images have the stages of Dockerfile; what one is run with must be options of the server."""
    verb, *rest = arguments
    text = (ROOT / "Dockerfile").read_text(encoding="utf-8")
    values = {}
    while rest and rest[0].startswith("-"):
        name = rest.pop(0)
        if name not in ("--rm", "--read-only", "--gpus=all"):
            values.setdefault(name, []).append(rest.pop(0))
    if verb == "compose":
        check(Path(values["-f"][0]).is_file(), f"there is no {values['-f'][0]}")
        return check(rest[0] == "up" and set(rest[1:]) <= {"--build", "--wait"}, f"{rest} is not known here")
    if verb == "build":
        check(rest == ["."], "the context is the clone")
        check(f" AS {values['--target'][0]}\n" in text, f"no stage {values['--target'][0]}")
        for argument in values.get("--build-arg", ()):
            check(f"ARG {argument.split('=')[0]}" in text, f"no argument {argument}")
        return keep(known() + [values["-t"][0]])
    check(verb == "run" and rest[0] in known(), f"no image {rest[0]}")
    mounted = [volume.split(":") for volume in values.get("-v", ())]
    options = rest[1:] or ["serve"]
    for host, inside, *_ in mounted:
        options = [host if option == inside else option for option in options]
    variables = dict(value.split("=", 1) for value in values.get("-e", ()))
    done = subprocess.run([BIN / "linserve", *options, "--print-config"], stdout=subprocess.DEVNULL,
                          env={"PATH": os.environ["PATH"], "LINSERVE_DEFAULTS": str(ROOT / "deploy/container.json"),
                               **variables})
    check(done.returncode == 0, f"the server takes no {options}")


def helm(arguments):
    """Values files are there; of a chart that is ours, values.schema.json says which values there are."""
    for option, value in zip(arguments, arguments[1:]):
        if option == "-f":
            check(Path(value).is_file(), f"there is no {value}")
    for chart in (Path(argument) for argument in arguments if Path(argument, "Chart.yaml").is_file()):
        schema = json.loads((chart / "values.schema.json").read_text(encoding="utf-8"))
        for option, value in zip(arguments, arguments[1:]):
            place = schema
            for name in value.split("=")[0].split(".") if option in ("--set", "--set-json") else ():
                check(name in place["properties"], f"{chart} has no value {value}")
                place = place["properties"][name]


def prometheus(arguments):
    """Its own check of the configuration, where that is installed."""
    path = arguments[0].removeprefix("--config.file=")
    check(Path(path).is_file(), f"there is no {path}")
    if shutil.which("promtool"):
        check(subprocess.run(["promtool", "check", "config", path]).returncode == 0, "the configuration is faulty")


def perf_analyzer(arguments):
    """tests/system/clients runs it itself, with these options."""
    text = (ROOT / "tests/system/clients/perf_analyzer_test.py").read_text(encoding="utf-8")
    for option in arguments:
        check(not option.startswith("-") or f'"{option}"' in text, f"{option} is not tried in perf_analyzer_test.py")


def pip(arguments):
    """Installs what is of this repository; all else must be among what the pages' Python was installed with."""
    there = "".join((ROOT / "tests/system" / folder / "requirements.txt").read_text(encoding="utf-8")
                    for folder in ("clients", "packages"))
    packages = arguments[1:]
    if packages[0] == "--extra-index-url":
        packages = packages[2:]
    for package in packages:
        name = re.sub(r"\[.*", "", package)
        if Path(name, "pyproject.toml").is_file():
            sys.path.append(str(ROOT / "tests/system/clients"))
            import python_package
            python_package.install(os.environ["DOCS_INSTALLED"])
        else:
            check(re.search(f"^{name}==", there, re.MULTILINE), f"{name} is not installed for this test")


def described(arguments):
    """A script of the repository: its own help, or else its head, must know the arguments."""
    script, *rest = arguments
    if script.startswith("build/"):
        layer = Path(script).name.removesuffix("_tests")
        return check((ROOT / "tests" / layer).is_dir(), f"there are no tests of {layer}")
    check(os.access(script, os.X_OK), f"{script} cannot be run")
    text = Path(script).read_text(encoding="utf-8")
    if not re.search("^# usage: ", text, re.MULTILINE):
        done = subprocess.run([script, "--help"], capture_output=True, text=True,
                              env={**os.environ, "LINSERVE_TEST_BIN": str(BIN)})
        check(done.returncode == 0, done.stderr)
        text += done.stdout
    for word in rest:
        if word.startswith("#"):
            break
        if re.fullmatch(r"--[\w-]+(=.*)?|[a-z_]+", word):
            check(word.split("=")[0] in text, f"{script} knows no {word}")


globals()[Path(sys.argv[0]).name](sys.argv[1:])
