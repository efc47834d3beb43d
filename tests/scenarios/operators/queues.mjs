// An operator on the Kubernetes client for Node.js: a Queue gets a Deployment of workers.
//
//     node queues.mjs IDENTITY
//
// Several may run; the one that holds the Lease acts. Informers list and watch, and start again
// when a watch fails. KCM_CLIENTS_DIR has the library in its node_modules.
//
// With CONVERSION_PORT, it is the second release: it speaks v2, where `workers` is `pool.size`, and
// converts Queues between the versions, with the certificate in the folder CERTIFICATES.

import { createRequire } from 'node:module';
import { pathToFileURL } from 'node:url';
import { serveConversion } from './queue_conversion.mjs';

const from = createRequire(`${process.env.KCM_CLIENTS_DIR}/node_modules/`);
const k8s = await import(pathToFileURL(from.resolve('@kubernetes/client-node')));

const me = process.argv[2];
const port = process.env.CONVERSION_PORT;
const version = port ? 'v2' : 'v1';
const workersOf = ({ spec }) => (port ? spec.pool?.size : spec.workers);
const LEASE = { apiVersion: 'coordination.k8s.io/v1', kind: 'Lease', name: 'queues', namespace: 'default' };
const FINALIZER = 'queues.example.com/drain';
const SECONDS = 2; // after which the Lease of a leader that is gone may be taken

const config = new k8s.KubeConfig();
config.loadFromDefault();
const objects = k8s.KubernetesObjectApi.makeApiClient(config);
const queues = config.makeApiClient(k8s.CustomObjectsApi);
const apps = config.makeApiClient(k8s.AppsV1Api);
const coordination = config.makeApiClient(k8s.CoordinationV1Api);

const say = (...words) => console.log(new Date().toISOString(), me, ...words);
const key = (object) => `${object.metadata.namespace}/${object.metadata.name}`;

// --- leader election: the library has none

let leads = false;

function holds(lease) {
  const renewed = new Date(lease.spec.renewTime ?? 0).getTime();
  return lease.spec.holderIdentity === me || Date.now() - renewed > SECONDS * 1000;
}

async function elect() {
  const { name, namespace } = LEASE;
  const spec = { holderIdentity: me, leaseDurationSeconds: SECONDS, renewTime: new k8s.V1MicroTime() };
  try {
    const lease = await coordination.readNamespacedLease({ name, namespace });
    if (holds(lease)) {
      lease.spec = { ...lease.spec, ...spec };
      await coordination.replaceNamespacedLease({ name, namespace, body: lease }); // or a conflict
    }
    return lease.spec.holderIdentity === me;
  } catch (error) {
    if (error.code === 404) {
      await coordination.createNamespacedLease({ namespace, body: { metadata: { name }, spec } });
      return true;
    }
    throw error;
  }
}

async function campaign() {
  let now = false;
  try {
    now = await elect();
  } catch (error) {
    say('no lease:', error.code ?? error.message);
  }
  if (now !== leads) say(now ? 'leads' : 'follows');
  leads = now;
  if (leads) await syncAll();
  setTimeout(campaign, 300);
}

// --- what the leader does

async function sync(queue) {
  if (queue.metadata.deletionTimestamp) return release(queue);
  if (!queue.metadata.finalizers?.includes(FINALIZER)) {
    const finalizers = [...(queue.metadata.finalizers ?? []), FINALIZER];
    const { apiVersion, kind, metadata: { name, namespace } } = queue;
    await objects.patch({ apiVersion, kind, metadata: { name, namespace, finalizers } }, undefined,
      undefined, undefined, undefined, k8s.PatchStrategy.MergePatch);
  }
  const deployment = deployments.get(queue.metadata.name, queue.metadata.namespace);
  if (deployment?.spec.replicas !== workersOf(queue)) await apply(queue);
  const status = { ready: deployment?.status?.readyReplicas ?? 0, by: me };
  if (status.ready !== queue.status?.ready || status.by !== queue.status?.by) await report(queue, status);
}

function apply(queue) {
  const labels = { queue: queue.metadata.name };
  const { apiVersion, kind, metadata: { name, namespace, uid } } = queue;
  const child = {
    apiVersion: 'apps/v1',
    kind: 'Deployment',
    metadata: { name, namespace, labels, ownerReferences: [{ apiVersion, kind, name, uid, controller: true }] },
    spec: {
      replicas: workersOf(queue),
      selector: { matchLabels: labels },
      template: { metadata: { labels }, spec: { containers: [{ name: 'worker', image: 'worker:1' }] } },
    },
  };
  return objects.patch(child, undefined, undefined, 'queues', true, k8s.PatchStrategy.ServerSideApply);
}

function report(queue, status) {
  return queues.patchNamespacedCustomObjectStatus(
    { group: 'example.com', version, plural: 'queues', namespace: queue.metadata.namespace,
      name: queue.metadata.name, body: { status } },
    k8s.setHeaderOptions('Content-Type', k8s.PatchStrategy.MergePatch),
  );
}

function release(queue) {
  const at = queue.metadata.finalizers?.indexOf(FINALIZER) ?? -1;
  if (at < 0) return undefined;
  const path = `/metadata/finalizers/${at}`;
  return queues.patchNamespacedCustomObject(
    { group: 'example.com', version, plural: 'queues', namespace: queue.metadata.namespace,
      name: queue.metadata.name, body: [{ op: 'test', path, value: FINALIZER }, { op: 'remove', path }] },
    k8s.setHeaderOptions('Content-Type', k8s.PatchStrategy.JsonPatch),
  );
}

// One sync of an object at a time; what changes meanwhile is seen by the next round.
const busy = new Set();

async function trySync(queue) {
  if (!leads || busy.has(key(queue))) return;
  busy.add(key(queue));
  try {
    await sync(queue);
  } catch (error) {
    say('failed:', key(queue), error.code ?? error.message);
  } finally {
    busy.delete(key(queue));
  }
}

const syncAll = () => Promise.all(informer.list().map(trySync));

// --- informers

function inform(path, list, changed) {
  const made = k8s.makeInformer(config, path, list);
  for (const event of ['add', 'update', 'delete']) made.on(event, changed);
  made.on('error', (error) => {
    say('watch failed:', path, error.code ?? error.message);
    setTimeout(() => made.start().catch((again) => made_again(made, again)), 300);
  });
  return made;
}

function made_again(made, error) {
  say('list failed:', error.code ?? error.message);
  setTimeout(() => made.start().catch((again) => made_again(made, again)), 300);
}

const deployments = inform('/apis/apps/v1/deployments', () => apps.listDeploymentForAllNamespaces(),
  (deployment) => {
    const owner = informer.get(deployment.metadata.name, deployment.metadata.namespace);
    if (owner) trySync(owner);
  });
const informer = inform(`/apis/example.com/${version}/queues`,
  () => queues.listClusterCustomObject({ group: 'example.com', version, plural: 'queues' }), trySync);

if (port) await serveConversion(port, process.env.CERTIFICATES, say);
await deployments.start();
await informer.start();
say('started');
campaign();
