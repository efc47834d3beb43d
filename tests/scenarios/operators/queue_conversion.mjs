// The conversion webhook of Queues: `spec.workers` of v1 is `spec.pool.size` of v2.

import { readFileSync } from 'node:fs';
import { createServer } from 'node:https';

function convert(queue, apiVersion) {
  if (queue.apiVersion === apiVersion) return queue;
  const { workers, pool, ...others } = queue.spec ?? {};
  const spec = apiVersion.endsWith('/v2')
    ? { ...others, pool: { size: workers } }
    : { ...others, workers: pool?.size };
  return { ...queue, apiVersion, spec };
}

function answer({ apiVersion, kind, request }) {
  const { uid, desiredAPIVersion, objects } = request;
  const convertedObjects = objects.map((one) => convert(one, desiredAPIVersion));
  return { apiVersion, kind, response: { uid, convertedObjects, result: { status: 'Success' } } };
}

// Serves on a port of this machine, and returns once it does.
export function serveConversion(port, folder, say) {
  const key = readFileSync(`${folder}/127.0.0.1.key`);
  const cert = readFileSync(`${folder}/127.0.0.1.crt`);
  const server = createServer({ key, cert }, async (request, response) => {
    const parts = [];
    for await (const part of request) parts.push(part);
    const review = JSON.parse(Buffer.concat(parts));
    response.setHeader('content-type', 'application/json');
    response.end(JSON.stringify(answer(review)));
  });
  return new Promise((done) => server.listen(port, '127.0.0.1', () => {
    say('converts on', port);
    done();
  }));
}
