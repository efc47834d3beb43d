"""An operator written with kopf, which knows nothing of kcm:

    pip install kopf kubernetes
    kubectl apply -f crd.yaml
    kopf run operator.py --all-namespaces

Each Greeting gets a ConfigMap with its text; the Greeting's status says what was written.
"""

import kopf
import kubernetes


@kopf.on.startup()
def connect(settings, **_):
    settings.persistence.finalizer = "greetings.example.com/farewell"
    settings.posting.enabled = False
    kubernetes.config.load_kube_config()


@kopf.on.create("greetings.example.com")
@kopf.on.update("greetings.example.com")
@kopf.on.resume("greetings.example.com")
def greet(body, spec, name, namespace, **_):
    text = f"{spec['word']}, {spec['to']}!"
    config_map = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": name},
        "data": {"text": text},
    }
    kopf.adopt(config_map, owner=body)
    core = kubernetes.client.CoreV1Api()
    try:
        core.create_namespaced_config_map(namespace, config_map)
    except kubernetes.client.ApiException as error:
        if error.status != 409:
            raise
        core.patch_namespaced_config_map(name, namespace, {"data": {"text": text}})
    return {"text": text}


@kopf.on.field("greetings.example.com", field="spec.to")
def said(new, patch, **_):
    patch.status["said"] = f"greeted {new}"


@kopf.on.delete("greetings.example.com")
def farewell(name, namespace, **_):
    core = kubernetes.client.CoreV1Api()
    note = {"metadata": {"name": f"{name}-farewell"}, "data": {"text": "Goodbye!"}}
    core.create_namespaced_config_map(namespace, note)
