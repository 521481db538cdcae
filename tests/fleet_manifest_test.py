#!/usr/bin/env python3
"""The manifests in docs/ and projects/: well-formed, every selector meets its template, every RuntimeClass, handler, port and probe that
one names is there, and nothing makes two pods share one core."""
import pathlib
import re
import sys

from talpa_test import SOURCE, Checks

try:
    import yaml
except ImportError:
    print("skipped: python3-yaml is not installed")
    sys.exit(77)

MANIFESTS = ["docs/fleet/classifier.yaml", "docs/remoteproc/kubernetes.yaml", "projects/imx93-npu-classifier/kubernetes.yaml"]
HANDLER = re.search(r'containerd\.runtimes\.(\w+)\]', (SOURCE / "docs/remoteproc/containerd-config.toml").read_text())[1]
ROUTES = re.findall(r'\{"GET", "(/\w+)"', (SOURCE / "src/webapp/app.cpp").read_text())


def templates(documents):
    return [(d, d["spec"]["template"]) for d in documents if d["kind"] in ("Deployment", "DaemonSet")]


def check_manifest(check, path):
    documents = [d for d in yaml.safe_load_all((SOURCE / path).read_text()) if d]
    for d in documents:
        check.that(d.get("apiVersion") and d.get("kind") and d["metadata"]["name"], f"{path}: {d}")
    classes = {d["metadata"]["name"]: d for d in documents if d["kind"] == "RuntimeClass"}
    check.that(all(c["handler"] == HANDLER for c in classes.values()) and classes, f"{path}: the handler of containerd's configuration")
    for d, template in templates(documents):
        name = f"{path}: {d['metadata']['name']}"
        labels, spec = template["metadata"]["labels"], template["spec"]
        check.that(d["spec"]["selector"]["matchLabels"].items() <= labels.items(), f"{name}: the selector meets the template")
        firmware = "runtimeClassName" in spec
        if firmware:
            check.that(spec["runtimeClassName"] in classes, f"{name}: its RuntimeClass")
            check.equal(template["metadata"]["annotations"], {"remoteproc.name": "imx-rproc"}, f"{name}: the core")
            update = d["spec"].get("updateStrategy", d["spec"].get("strategy", {}))
            check.that(update.get("type", "RollingUpdate") == "Recreate" or "maxSurge" not in update.get("rollingUpdate", {}), f"{name}: old firmware goes first")
        volumes = {v["name"] for v in spec.get("volumes", [])}
        for container in spec["containers"]:
            check.equal({m["name"] for m in container.get("volumeMounts", [])}, volumes, f"{name}: volumes")
            # No registry has it, and a kubelet asks one for `latest` each time unless it is told not to.
            if "." not in container["image"].split("/")[0]:
                check.equal(container.get("imagePullPolicy"), "IfNotPresent", f"{name}: an imported image")
            ports = {p.get("name"): p["containerPort"] for p in container.get("ports", [])}
            for kind in ("readinessProbe", "livenessProbe"):
                if kind in container:
                    get = container[kind]["httpGet"]
                    check.that(get["path"] in ROUTES, f"{name}: {get['path']} is no route of the web application")
                    check.equal(ports.get(get["port"], get["port"]), 3000, f"{name}: port of the {kind}")
            if not firmware:
                check.that(container.get("readinessProbe", {}).get("httpGet", {}).get("path") == "/readyz", f"{name}: ready when the runner answers")
    pods = [t["metadata"]["labels"] for _, t in templates(documents)]
    for d in documents:
        if d["kind"] in ("Service", "PodDisruptionBudget"):
            selector = d["spec"]["selector"] if d["kind"] == "Service" else d["spec"]["selector"]["matchLabels"]
            check.that(any(selector.items() <= labels.items() for labels in pods), f"{path}: {d['kind']} selects a pod")


def main():
    check = Checks()
    for path in MANIFESTS:
        check_manifest(check, path)
    check.that(pathlib.Path(SOURCE / "docs/fleet.md").read_text().count("fleet/classifier.yaml") > 0, "the page names the manifest")
    check.finish()


if __name__ == "__main__":
    main()
