import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { examineStore } from '../../../bin/doctor-store.ts'
import t from '../../support/harness/index.ts'
import { s3Server } from '../../support/object-store.ts'
import { bodyOf } from '../../support/web.ts'

// The check of the recordings' object store by `strowger doctor`, against a real S3 server.

t.test('reports a working store and leaves no probe in it', async t => {
  const server = await s3Server(t)
  t.match(await examineStore(server.config), { ok: true, what: /recordings can be kept in http.*recordings-bucket/ })
  t.same(server.keys(), [])
})

t.test('reports each fault of a store with the variable that fixes it', async t => {
  const server = await s3Server(t)
  const { config } = server
  const wrong_key = await examineStore({ ...config, secret_key: 'another' })
  t.match(wrong_key, { ok: false, mend: /writing failed .*SignatureDoesNotMatch.*STROWGER_S3_SECRET_KEY/ })
  t.notMatch(JSON.stringify(wrong_key), 'another', 'the finding does not contain the key')
  const no_bucket = await examineStore({ ...config, bucket: 'nowhere' })
  t.match(no_bucket, { ok: false, mend: /NoSuchBucket.*STROWGER_S3_BUCKET/ })
  await server.stop()
  t.match(await examineStore(config), { ok: false, mend: /STROWGER_S3_ENDPOINT/ })
})

t.test('names the missing permission of a key that may write but not delete', async t => {
  const objects = new Map<string, Buffer>()
  const server = createServer(async (request, response) => {
    const body = await bodyOf(request)
    if (body === null) return
    if (request.method === 'PUT') objects.set(request.url ?? '', body)
    if (request.method === 'DELETE') response.writeHead(403).end('<Error><Code>AccessDenied</Code></Error>')
    else response.writeHead(request.method === 'GET' ? 206 : 200).end(objects.get(request.url ?? ''))
  })
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  t.teardown(() => server.close().closeAllConnections())
  const { port } = server.address() as AddressInfo
  const config = { bucket: 'b', region: 'us-east-1', access_key: 'k', secret_key: 's' }
  t.match(await examineStore({ ...config, endpoint: `http://127.0.0.1:${port}` }), {
    ok: false,
    mend: /deleting failed .*AccessDenied.*s3:DeleteObject/,
  })
})
