// How a test in Node.js uses kcmtest.mjs: `node --test`, with kcm on the PATH.
import assert from "node:assert/strict";
import { readFile, readdir, mkdtemp } from "node:fs/promises";
import { request } from "node:https";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";

import { start } from "./kcmtest.mjs";

let cp;
before(async () => (cp = await start()));
after(() => cp.stop());

// Asks the API server with the token of the kubeconfig. A project has a client library for it.
async function ask(method, path, body) {
  const token = /token: (\S+)/.exec(await readFile(cp.kubeconfig, "utf8"))[1];
  const headers = { Authorization: `Bearer ${token}`, "User-Agent": "my-operator" };
  if (body) headers["Content-Type"] = "application/json";
  return new Promise((resolve, reject) => {
    const asked = request(cp.url + path, { method, headers, rejectUnauthorized: false }, (answer) => {
      let text = "";
      answer.on("data", (part) => (text += part));
      answer.on("end", () => resolve({ code: answer.statusCode, body: JSON.parse(text) }));
    });
    asked.on("error", reject);
    asked.end(body && JSON.stringify(body));
  });
}

const report = {
  metadata: { name: "report" },
  spec: {
    schedule: "0 3 * * *",
    jobTemplate: {
      spec: {
        template: {
          spec: { restartPolicy: "Never", containers: [{ name: "main", image: "busybox" }] },
        },
      },
    },
  },
};

test("a night passes in a second", async () => {
  await cp.clock.freeze();
  const created = await ask("POST", "/apis/batch/v1/namespaces/default/cronjobs", report);
  assert.equal(created.code, 201);
  const begin = await cp.clock.now();
  const rest = await cp.clock.advance("24h");
  assert.ok(new Date(rest.at) - begin >= 24 * 3600 * 1000);
  const jobs = await ask("GET", "/apis/batch/v1/namespaces/default/jobs");
  assert.equal(jobs.body.items.length, 1);
  assert.ok((await cp.settle()).pending.length > 0);
  assert.match((await cp.explain("cronjob/report")).text, /cronjob\/report/);
  await cp.clock.run();
});

test("a fault strikes once", async () => {
  const args = { verb: "create", resource: "configmaps", error: 503, times: 1, for: "my-operator" };
  const fault = await cp.faults.api(args);
  const path = "/api/v1/namespaces/default/configmaps";
  assert.equal((await ask("POST", path, { metadata: { name: "mine" } })).code, 503);
  assert.equal((await ask("POST", path, { metadata: { name: "mine" } })).code, 201);
  assert.equal(await fault.hits(), 1);
  const [write] = await cp.history({ kind: "configmap", name: "mine" });
  assert.equal(write.agent, "my-operator");
  await assert.rejects(cp.faults.api({ verb: "get", error: 409 }), /never answers get with 409/);
});

test("a failed test has the timeline and a page", async () => {
  process.env.KCM_REPORT = await mkdtemp(join(tmpdir(), "kcm-page-"));
  const failed = cp.watch("my test", async () => {
    await ask("POST", "/api/v1/namespaces/default/configmaps", { metadata: { name: "seen" } });
    assert.fail("as wanted");
  });
  await assert.rejects(failed, /as wanted[^]*configmaps\/seen[^]*kcm-page-/);
  assert.equal((await readdir(process.env.KCM_REPORT)).length, 1);
});
