"""Volumes as mounts of containers: in memory, in part, of a group, and shared with the node."""

from __future__ import annotations

from kcm.testing.waiting import PATIENCE, until
from tests.containers import images
from tests.containers.cluster import Cluster, Json, shell, status_of

WAIT = "while true; do sleep 1; done"


def mount(name: str, path: str, **more: object) -> Json:
    return {"name": name, "mountPath": path, **more}


def find_waiting(pod: Json) -> Json:
    """Returns why the main container waits, {} if it does not."""
    statuses = pod["status"].get("containerStatuses", ())
    waiting: Json = status_of(pod)["state"].get("waiting", {}) if statuses else {}
    return waiting


def output(node: Cluster, name: str) -> list[str]:
    """Waits until a pod is done; returns the lines of its main container."""
    node.wait_until_done(name)
    return node.run("logs", name, "-c", "main").splitlines()


def test_a_volume_in_memory_is_as_large_as_it_says(node: Cluster) -> None:
    node.create(
        "memory",
        shell(
            "grep ' /memory ' /proc/mounts | cut -d' ' -f3; stat -c %a /memory; "
            "df -k /memory | tail -1 | tr -s ' ' | cut -d' ' -f2; "
            "head -c 9m /dev/zero > /memory/x 2>/dev/null || echo full",
            volumeMounts=[mount("memory", "/memory")],
        ),
        volumes=[{"name": "memory", "emptyDir": {"medium": "Memory", "sizeLimit": "8Mi"}}],
        restartPolicy="Never",
    )
    assert output(node, "memory") == ["tmpfs", "777", "8192", "full"]
    node.delete("memory")


def test_an_image_is_a_volume_where_the_runtime_can_mount_it(node: Cluster) -> None:
    node.create(
        "of-image",
        shell("ls /data/busybox", volumeMounts=[mount("data", "/data", subPath="bin")]),
        volumes=[{"name": "data", "image": {"reference": images.NOBODY}}],
        restartPolicy="Never",
    )
    pod = node.wait_for(
        "of-image",
        lambda pod: find_waiting(pod).get("message") or pod["status"]["phase"] == "Succeeded",
    )
    if old := find_waiting(pod):
        assert old["reason"] == "CreateContainerConfigError"
        assert "image volumes need containerd 2.1, and this node has " in old["message"]
    else:
        assert output(node, "of-image") == ["/data/busybox"]
    node.delete("of-image")


def test_an_image_is_pulled_with_what_a_plugin_of_the_node_says(node: Cluster) -> None:
    with node.registry() as image:
        node.create("by-plugin", shell("echo pulled") | {"image": image}, restartPolicy="Never")
        assert output(node, "by-plugin") == ["pulled"]
    node.delete("by-plugin")


def test_volumes_belong_to_the_group_of_their_pod(node: Cluster) -> None:
    node.run("create", "secret", "generic", "word", "--from-literal=pass=1234")
    node.create(
        "group",
        shell(
            "stat -c '%g %a' /disk; touch /disk/x; stat -c %g /disk/x; "
            "stat -Lc '%g %a' /word/pass; cat /word/pass; echo; "
            "touch /word/new 2>/dev/null || echo unwritable",
            securityContext={"runAsUser": 1000, "runAsGroup": 1000},
            volumeMounts=[mount("disk", "/disk"), mount("word", "/word")],
        ),
        securityContext={"fsGroup": 3000},
        volumes=[
            {"name": "disk", "emptyDir": {}},
            {"name": "word", "secret": {"secretName": "word", "defaultMode": 0o400}},
        ],
        restartPolicy="Never",
    )
    assert output(node, "group") == ["3000 2777", "3000", "3000 440", "1234", "unwritable"]
    node.delete("group")


def test_a_pod_has_users_of_its_own_where_the_runtime_gives_them(node: Cluster) -> None:
    node.run("create", "secret", "generic", "key", "--from-literal=key=5678")
    node.create(
        "own-users",
        shell(
            "id -u; tr -s ' ' < /proc/self/uid_map | cut -d' ' -f4; "
            "stat -Lc %u /disk /memory /key/key; cat /key/key; echo; touch /memory/x /disk/x; "
            "while ! [ -e /disk/end ]; do sleep 0.1; done",
            volumeMounts=[mount("disk", "/disk"), mount("memory", "/memory"), mount("key", "/key")],
        ),
        hostUsers=False,
        volumes=[
            {"name": "disk", "emptyDir": {}},
            {"name": "memory", "emptyDir": {"medium": "Memory"}},
            {"name": "key", "secret": {"secretName": "key"}},
        ],
        restartPolicy="Never",
    )
    says = ("get", "events", "--field-selector=involvedObject.name=own-users", "-o",
            "jsonpath={.items[*].message}")  # fmt: skip
    refusal = "can't set `spec.hostUsers: false`, runtime does not support user namespaces"
    pod = node.wait_for(
        "own-users",
        lambda pod: pod["status"]["phase"] != "Pending" or refusal in node.run(*says),
    )
    if pod["status"]["phase"] != "Pending":
        volumes = node.kubelet_root / "pods" / pod["metadata"]["uid"] / "volumes"
        file = volumes / "kubernetes.io~empty-dir" / "disk" / "x"
        until(file.exists, "the file of the pod", PATIENCE)
        assert file.stat().st_uid == 0  # a volume's files belong to whom they would without
        file.with_name("end").touch()
        assert output(node, "own-users") == ["0", "65536", "0", "0", "0", "5678"]
    node.delete("own-users")


def test_a_part_of_a_volume_is_bound_as_it_is_at_the_containers_start(node: Cluster) -> None:
    node.run("create", "configmap", "page", "--from-literal=index.html=old")
    node.create(
        "part",
        shell(
            "cat /index.html; echo; ls /made; while ! [ -e /end ]; do sleep 0.1; done",
            volumeMounts=[
                mount("page", "/index.html", subPath="index.html"),
                mount("disk", "/made", subPath="a/b"),
            ],
        ),
        initContainers=[shell("mkdir -p /d/a/b; touch /d/a/b/here", "first",
                              volumeMounts=[mount("disk", "/d")])],
        volumes=[{"name": "page", "configMap": {"name": "page"}}, {"name": "disk", "emptyDir": {}}],
    )  # fmt: skip
    node.wait_until_ready("part")
    assert node.run("logs", "part", "-c", "main").split() == ["old", "here"]
    node.run("patch", "configmap", "page", "-p", '{"data": {"index.html": "new"}}')
    volume = node.kubelet_root / "pods" / node.pod("part")["metadata"]["uid"] / "volumes"
    file = volume / "kubernetes.io~configmap" / "page" / "index.html"
    until(lambda: file.read_text() == "new", "the volume's own file", PATIENCE)
    assert node.run("exec", "part", "--", "cat", "/index.html") == "old"
    node.run("exec", "part", "--", "touch", "/end")
    node.wait_for("part", lambda pod: status_of(pod)["restartCount"] > 0)
    node.wait_for("part", lambda _: node.run("logs", "part").split() == ["new", "here"])
    node.delete("part")


def test_a_link_leads_no_part_of_a_volume_out_of_it(node: Cluster) -> None:
    (node.folder / "host" / "link").symlink_to("/etc")
    node.create(
        "escape",
        shell("ls /out", volumeMounts=[mount("host", "/out", subPath="link")]),
        volumes=[{"name": "host", "hostPath": {"path": str(node.folder / "host")}}],
    )
    pod = node.wait_for("escape", lambda pod: find_waiting(pod).get("message"))
    waiting = find_waiting(pod)
    assert waiting["reason"] == "CreateContainerConfigError"
    assert "leads out of" in waiting["message"]
    node.delete("escape")


def test_mounts_come_through_where_the_pod_says_so(node: Cluster) -> None:
    node.create(
        "mounts",
        shell(
            "while ! [ -e /host/inner/mark ]; do sleep 0.1; done; echo seen",
            volumeMounts=[mount("host", "/host", mountPropagation="HostToContainer")],
        ),
        shell(
            "while ! [ -e /host/made ]; do sleep 0.1; done; ls /host/inner",
            "apart",
            volumeMounts=[mount("host", "/host")],
        ),
        shell(
            "mkdir /host/inner; mount -t tmpfs x /host/inner; touch /host/inner/mark /host/made; "
            "sleep 1; umount /host/inner",
            "mounter",
            securityContext={"privileged": True},
            volumeMounts=[mount("host", "/host", mountPropagation="Bidirectional")],
        ),
        volumes=[{"name": "host", "hostPath": {"path": str(node.folder / "host")}}],
        restartPolicy="Never",
    )
    assert output(node, "mounts") == ["seen"]
    assert node.run("logs", "mounts", "-c", "apart") == ""
    node.delete("mounts")


def test_the_end_of_a_pod_takes_no_mount_of_the_node_away(node: Cluster) -> None:
    inner = node.folder / "host" / "sub" / "inner"
    node.machine.run(["mkdir", "-p", str(inner)])
    node.machine.run(["mount", "-t", "tmpfs", "of-the-node", str(inner)])
    node.machine.run(["touch", str(inner / "file")])
    node.create(
        "guest",
        shell("ls /sub/inner; " + WAIT, volumeMounts=[mount("host", "/sub", subPath="sub")]),
        volumes=[{"name": "host", "hostPath": {"path": str(node.folder / "host")}}],
    )
    node.wait_until_ready("guest")
    until(lambda: node.run("logs", "guest") == "file\n", "the output", PATIENCE)
    node.delete("guest")
    assert node.machine.run(["ls", str(inner)]) == "file\n"
    node.machine.run(["umount", str(inner)])
