// Runs a control plane of kcm for tests in Node.js, and holds its clock. It needs Node.js 20 or
// later, and nothing else.
//
//   import { start } from "./kcmtest.mjs";
//
//   const cp = await start({ bare: true });
//   ... any client, by cp.kubeconfig ...
//   await cp.stop();
//
// A control plane is a process of `kcm test-env --serve`, which ends with this process, however
// that ends. Methods reject with the words of the control plane.
import { spawn } from "node:child_process";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";

const VERSION = "v1";

// Starts a control plane. Options: `bare`, `controllers` (a list), `nodes`, `crds`, `seed`, `flags`
// (further ones of `kcm test-env`), `command` (by default KCM or kcm).
export async function start(options = {}) {
  const given = [
    ...(options.bare ? ["--bare"] : []),
    ...(options.controllers ? [`--controllers=${options.controllers.join(",")}`] : []),
    ...["nodes", "crds", "seed"]
      .filter((name) => options[name] !== undefined)
      .map((name) => `--${name}=${options[name]}`),
    ...(options.flags ?? []),
  ];
  const command = options.command ?? process.env.KCM ?? "kcm";
  const child = spawn(command, ["test-env", "--serve", ...given]);
  let errors = "";
  child.stderr.on("data", (text) => (errors += text));
  const ended = new Promise((resolve) => child.on("close", resolve));
  const addresses = await new Promise((resolve, reject) => {
    child.on("error", (error) =>
      reject(new Error(`${error.message}; kcm is installed by \`pip install kcm\``)),
    );
    createInterface(child.stdout).once("line", (line) => resolve(JSON.parse(line)));
    ended.then(() => reject(new Error(errors.trim() || `${command} has ended`)));
  });
  return new ControlPlane(addresses, child, ended);
}

class ControlPlane {
  #api;
  #token;
  #child;
  #ended;

  constructor(addresses, child, ended) {
    this.kubeconfig = addresses.KUBECONFIG;
    this.url = addresses.server;
    this.#api = `${addresses.KCM_TEST_API}/${VERSION}/`;
    this.#token = addresses.KCM_TEST_TOKEN;
    this.#child = child;
    this.#ended = ended;
    const post = (path, body) => this.request("POST", path, body);
    this.clock = {
      now: async () => new Date((await this.request("GET", "clock")).now),
      freeze: () => post("clock/freeze"),
      run: () => post("clock/run"),
      advance: (duration) => post("clock/advance", { duration }), // "1h30m", or seconds
      to: (time) => post("clock/to", { time: new Date(time).toISOString() }),
    };
    // Arguments are those of docs/testing-api.md: { verb: "update", error: 409, times: 3 }.
    const fault = (kind) => async (args) => {
      const { id } = await post(`faults/${kind}`, args);
      return {
        hits: async () => (await this.request("GET", `faults/${id}`)).hits,
        remove: async () => (await this.request("DELETE", `faults/${id}`)).hits,
      };
    };
    this.faults = {
      api: fault("api"),
      watches: fault("watches"),
      staleLists: fault("stale_lists"),
      webhook: fault("webhook"),
      clear: () => this.request("DELETE", "faults"),
    };
  }

  // Sends a request to the HTTP API, and returns the answer.
  async request(method, path, values = {}) {
    const reads = method === "GET";
    const query = reads ? `?${new URLSearchParams(values)}` : "";
    const response = await fetch(this.#api + path + query, {
      method,
      headers: { Authorization: `Bearer ${this.#token}` },
      body: reads ? undefined : JSON.stringify(values),
    });
    const answer = await response.json();
    if (!response.ok) throw new Error(answer.error);
    return answer;
  }

  // Waits until nothing is left to do now, and returns what is pending.
  settle() {
    return this.request("POST", "settle");
  }

  // Does something to a simulated node: stop, start, partition, full, not_ready, heal...
  node(name, action) {
    return this.request("POST", `nodes/${name}/${action}`);
  }

  // Does something to a pod on a simulated node: crash, oom, ready, not_ready, log, heal.
  pod(namespace, name, action, args) {
    return this.request("POST", `pods/${namespace}/${name}/${action}`, args);
  }

  // Returns the writes so far: { kind, name, namespace, since }.
  async history(query = {}) {
    return (await this.request("GET", "history", query)).writes;
  }

  // Returns why an object like "deployment/web" is as it is: `text`, `waits`, `refused`...
  explain(object, namespace = "default") {
    return this.request("GET", "explain", { object, namespace });
  }

  // Puts a line into the timeline, and returns the `since` of what follows.
  async note(text) {
    return (await this.request("POST", "notes", { text })).after;
  }

  // Runs the body of a test. If it fails, the error has the timeline and the path of the page.
  async watch(test, body) {
    const since = await this.note(`${test} begins`);
    try {
      return await body();
    } catch (error) {
      const folder = process.env.KCM_REPORT ?? join(tmpdir(), "kcm-reports");
      const { text } = await this.request("GET", "timeline", { since });
      const failure = String(error);
      const page = await this.request("POST", "pages", { folder, test, since, failure });
      error.message += `\ntimeline of the control plane\n${text}\n${page.text}`;
      throw error;
    } finally {
      await this.faults.clear();
    }
  }

  // Ends the control plane, and waits until nothing of it is left.
  async stop() {
    this.#child.stdin.end();
    await this.#ended;
  }
}
