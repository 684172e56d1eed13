import { randomBytes } from 'node:crypto'
import { existsSync, mkdirSync, readFileSync, unlinkSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { dirname, join } from 'node:path'
import { recordingFiles, recordingSealing, recordingUpload } from '../../../../control/reconcilers/recordings.ts'
import { type Clock, systemClock } from '../../../../core/runtime/clock.ts'
import { newId } from '../../../../core/runtime/ids.ts'
import { createLog } from '../../../../core/runtime/log.ts'
import { createObjectStore, type ObjectStore } from '../../../../core/runtime/object-store.ts'
import { StoreError, s3Document } from '../../../../core/runtime/s3-requests.ts'
import { insertRecording, updateRecording } from '../../../../core/state/calls/recordings.ts'
import { type ControlPlane, controlPlane } from '../../../support/control-plane.ts'
import t, { type Test } from '../../../support/harness/index.ts'
import { type S3Server, s3Server } from '../../../support/object-store.ts'

// Recordings in an object store: a real S3 server behind a check of request signatures.

const log = createLog('control', { log_level: 'fatal' })

function store(t: Test, s3: S3Server, changes: Partial<S3Server['config']> = {}): ObjectStore {
  const made = createObjectStore({ ...s3.config, ...changes }, log)
  t.teardown(() => made.close())
  return made
}

t.test('single-part and multipart uploads can be read from any byte, and removed', async t => {
  const s3 = await s3Server(t)
  const objects = store(t, s3)
  const path = join(t.testdir(), 'file')
  for (const [bytes, key] of [
    [0, 'empty'],
    [300_000, 'a/b c+ü/one.wav'],
    [17 * 1024 * 1024 + 5, 'a/parts.wav'],
  ] as const) {
    const written = randomBytes(bytes)
    writeFileSync(path, written)
    await objects.put(key, path)
    const source = objects.source(key)
    for (const [at, length] of [
      [0, 40],
      [Math.max(0, bytes - 1000), 1000],
      [130_000, 70_000],
    ] as const)
      if (at + length <= bytes) t.same(await source.read(at, length), written.subarray(at, at + length), `${key} ${at}`)
    await t.rejects(source.read(Math.max(0, bytes - 10), 11), StoreError, 'reading past the end fails')
  }
  t.same(s3.keys().length, 3)
  for (const key of ['empty', 'a/b c+ü/one.wav', 'a/parts.wav']) await objects.remove(key)
  await objects.remove('never/there')
  t.same(s3.keys(), [])
})

t.test("a StoreError has the store's status and code, and a null status when the store is unreachable", async t => {
  const s3 = await s3Server(t)
  const path = join(t.testdir({ file: 'content' }), 'file')
  await t.rejects(store(t, s3, { secret_key: 'wrong' }).put('x', path), {
    status: 403,
    message: /SignatureDoesNotMatch/,
  })
  await t.rejects(store(t, s3, { bucket: 'other' }).put('x', path), { status: 404, message: /NoSuchBucket/ })
  await t.rejects(store(t, s3).source('missing').read(0, 10), { name: 'StoreError', status: 404 })
  await t.rejects(store(t, s3).put('x', join(t.testdirName, 'no-file')), { code: 'ENOENT' })
  await s3.stop()
  await t.rejects(store(t, s3).put('x', path), { name: 'StoreError', status: null })
})

t.test(
  'a multipart upload whose completion fails in a 200 answer is rejected, and aborted by its whole upload id',
  async t => {
    const asked: string[] = []
    const ns = 'xmlns="http://s3.amazonaws.com/doc/2006-03-01/"'
    const server = createServer(async (request, response) => {
      const { method = '', url = '' } = request
      asked.push(`${method} ${url}`)
      for await (const _ of request);
      if (method === 'POST' && url.endsWith('?uploads='))
        response.end(
          `<InitiateMultipartUploadResult ${ns}><UploadId>a&amp;b</UploadId></InitiateMultipartUploadResult>`,
        )
      else if (method === 'POST')
        response.end(`  \n<?xml version="1.0"?><Error ${ns}><Code>InternalError</Code><Message>x</Message></Error>`)
      else response.setHeader('etag', '"tag"').end()
    })
    await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
    t.teardown(() => new Promise(resolve => server.close(resolve).closeAllConnections()))
    const endpoint = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
    const config = { endpoint, bucket: 'b', region: 'us-east-1', access_key: 'k', secret_key: 's' }
    const objects = createObjectStore(config, log)
    t.teardown(() => objects.close())
    const path = join(t.testdir(), 'file')
    writeFileSync(path, Buffer.alloc(8 * 1024 * 1024 + 1))
    await t.rejects(objects.put('key', path), { name: 'StoreError', message: /200 InternalError/ })
    t.same(asked, [
      'POST /b/key?uploads=',
      'PUT /b/key?partNumber=1&uploadId=a%26b',
      'PUT /b/key?partNumber=2&uploadId=a%26b',
      'POST /b/key?uploadId=a%26b',
      'DELETE /b/key?uploadId=a%26b',
    ])
  },
)

t.test('an XML answer of the store is parsed to its root and the text fields of the root', async t => {
  const text = '<Error><Code><![CDATA[No]]>Such</Code><More><Code>Inner</Code></More></Error>'
  t.same(s3Document(text), { root: 'Error', fields: { Code: 'NoSuch' } })
  for (const other of ['', 'Bad Gateway', '<html><br></html>', '<Error><Code>cut'])
    t.equal(s3Document(other), null, `${other} is not a document`)
})

async function recorded(w: ControlPlane) {
  const sid = newId.recording()
  const file = `recordings/2026-11-21/${sid}.wav`
  const path = join(w.settings.data_dir, file)
  const audio = randomBytes(200_000)
  mkdirSync(dirname(path), { recursive: true })
  writeFileSync(path, audio)
  const row = { sid, call_sid: newId.call(), project_id: w.demo.project_id, source: 'RecordVerb', file, channels: 1 }
  await insertRecording(w.state.db, { ...row, track: 'inbound', expires_at: null }, Date.now())
  const end = { status: 'completed', duration_ms: 9000, bytes: audio.length, sha256: 'cd'.repeat(32) } as const
  await updateRecording(w.state.db, sid, end, Date.now())
  return { sid, file, audio, path }
}

const fileOf = async (w: ControlPlane, sid: string): Promise<string> =>
  (await w.state.db.selectFrom('recording').select('file').where('sid', '=', sid).executeTakeFirstOrThrow()).file

t.test('a finished recording moves to the store encrypted, and downloads unchanged', async t => {
  const s3 = await s3Server(t)
  const w = await controlPlane(t, { s3: s3.config })
  const { sid, file, audio, path } = await recorded(w)
  const url = `${w.base_url}/2010-04-01/Accounts/${w.demo.account_sid}/Recordings/${sid}.wav`
  const authorization = `Basic ${Buffer.from(`${w.demo.account_sid}:${w.demo.auth_token}`).toString('base64')}`
  const download = async (range?: string) => {
    const answer = await fetch(url, { headers: { authorization, ...(range === undefined ? {} : { range }) } })
    return { status: answer.status, bytes: Buffer.from(await answer.arrayBuffer()), headers: answer.headers }
  }
  const before = await download()
  await recordingSealing.run(w)
  const sealed = readFileSync(`${path}.sealed`)
  await recordingUpload().run(w)
  t.equal(await fileOf(w, sid), `s3:${file}.sealed`)
  t.same(s3.keys(), [`${file}.sealed`])
  t.notOk(existsSync(`${path}.sealed`), 'no local file remains')
  const head = await w.objects?.source(`${file}.sealed`).read(0, sealed.length)
  t.same(head, sealed, 'the object is encrypted')
  const after = await download()
  t.same(after.bytes, audio)
  for (const name of ['etag', 'content-length', 'last-modified', 'content-type'])
    t.equal(after.headers.get(name), before.headers.get(name), name)
  const part = await download('bytes=65530-131080')
  t.equal(part.status, 206)
  t.same(part.bytes, audio.subarray(65_530, 131_081))
  t.equal((await download('bytes=200000-')).status, 416)
  const managed = await w.ask('GET', `/v1/recordings/${sid}.wav`)
  t.equal(managed.status, 200, '/v1 serves it too')

  await s3.stop()
  t.match(
    await w.voice('GET', `/Recordings/${sid}.wav`),
    { status: 503, body: { code: 20503 } },
    'the download fails while the store is down',
  )
  await w.state.db.updateTable('recording').set({ status: 'deleted' }).where('sid', '=', sid).execute()
  await recordingFiles.run(w)
  t.equal(await fileOf(w, sid), `s3:${file}.sealed`, 'the row keeps the key until the object is deleted')
  await s3.start()
  await recordingFiles.run(w)
  t.same(s3.keys(), [])
  t.equal(await fileOf(w, sid), '')
})

t.test('recordings stay on disk while the store is down, and move when it is back', async t => {
  const s3 = await s3Server(t)
  let now_ms = 1_000_000
  const clock: Clock = { ...systemClock, monotonic_ms: () => now_ms }
  const w = await controlPlane(t, { s3: s3.config })
  const services = { ...w, clock }
  const first = await recorded(w)
  await recordingSealing.run(w)
  const upload = recordingUpload()
  await s3.stop()
  await upload.run(services)
  t.equal(await fileOf(w, first.sid), `${first.file}.sealed`)
  t.equal((await w.voice('GET', `/Recordings/${first.sid}.wav`)).status, 200, 'served from disk')
  await s3.start()
  await upload.run(services)
  t.same(s3.keys(), [], 'the upload is not retried at once')
  now_ms += 5_000
  await upload.run(services)
  t.same(s3.keys(), [`${first.file}.sealed`])

  const [lost, second] = [await recorded(w), await recorded(w)]
  await recordingSealing.run(w)
  for (const name of [`${lost.path}.sealed`, lost.path]) if (existsSync(name)) unlinkSync(name)
  await upload.run(services)
  t.equal(await fileOf(w, second.sid), `s3:${second.file}.sealed`, 'a missing file does not block the others')
})
