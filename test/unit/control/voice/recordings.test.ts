import { execFileSync } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { basename, join } from 'node:path'
import { recordingFiles, recordingRetention, recordingSealing } from '../../../../control/reconcilers/recordings.ts'
import { iso } from '../../../../core/runtime/clock.ts'
import { newId } from '../../../../core/runtime/ids.ts'
import { fileSource, openSealed, sealFile } from '../../../../core/runtime/sealed-file.ts'
import { acceptRecordingConsent } from '../../../../core/state/calls/recording-consent.ts'
import { openRecording } from '../../../../core/state/calls/recording-file.ts'
import { hasRoomForRecording, storedBytes } from '../../../../core/state/calls/recording-storage.ts'
import { insertRecording, updateRecording } from '../../../../core/state/calls/recordings.ts'
import { putSandboxCarrier } from '../../../../core/state/configuration/bootstrap.ts'
import { insertPolicy } from '../../../../core/state/configuration/policies.ts'
import { type ControlPlane, controlPlane, freshKey } from '../../../support/control-plane.ts'
import t from '../../../support/harness/index.ts'
import { afterEachTransaction } from '../../../support/transactions.ts'
import { until } from '../../../support/wait.ts'

const KEY = Buffer.alloc(32, 1)

/** The files that this process has open. */
const openFiles = (): string[] => readdirSync('/proc/self/fd').flatMap(fd => linkOf(`/proc/self/fd/${fd}`))

function linkOf(path: string): string[] {
  try {
    return [readlinkSync(path)]
  } catch {
    // The descriptor of the listing itself is closed by now.
    return []
  }
}

async function content(key: Buffer, path: string, first?: number, last?: number): Promise<Buffer> {
  const file = await openSealed(key, await fileSource(path))
  const chunks: Buffer[] = []
  for await (const chunk of file.read(first ?? 0, last ?? file.bytes - 1)) chunks.push(chunk)
  return Buffer.concat(chunks)
}

t.test('an encrypted file can be read from any byte, and every change to it is detected', async t => {
  const folder = mkdtempSync(join(tmpdir(), 'strowger-sealed-'))
  t.teardown(() => rmSync(folder, { recursive: true, force: true }))
  const [plain, sealed] = [join(folder, 'plain'), join(folder, 'sealed')]
  for (const bytes of [0, 1, 65_535, 65_536, 65_537, 200_000]) {
    const written = randomBytes(bytes)
    writeFileSync(plain, written)
    t.equal(await sealFile(KEY, plain, sealed), bytes)
    t.same(await content(KEY, sealed), written, `${bytes} bytes`)
  }
  const written = readFileSync(plain)
  for (const [first, last] of [
    [0, 0],
    [65_535, 65_536],
    [65_536, 131_071],
    [1000, 199_999],
    [199_999, 199_999],
  ] as const)
    t.same(await content(KEY, sealed, first, last), written.subarray(first, last + 1), `${first} to ${last}`)
  const good = readFileSync(sealed)
  t.notOk(good.includes(written.subarray(0, 32)), 'the content is not readable on disk')
  const changed = (change: (bytes: Buffer) => Buffer) => {
    writeFileSync(sealed, change(Buffer.from(good)))
    return content(KEY, sealed)
  }
  const flip = (at: number) => (bytes: Buffer) => {
    bytes[at] = (bytes[at] ?? 0) ^ 1
    return bytes
  }
  const chunk = 65_536 + 16
  await t.rejects(changed(flip(0)), /known version/, 'a changed magic number')
  await t.rejects(changed(flip(23)), /./, 'a changed length')
  await t.rejects(changed(flip(30)), /./, 'a changed salt')
  await t.rejects(changed(flip(5000)), /./, 'a changed byte of content')
  await t.rejects(
    changed(bytes => bytes.subarray(0, -1)),
    /shorter/,
    'a truncated file',
  )
  const swap = (bytes: Buffer) =>
    Buffer.concat([bytes.subarray(0, 40), bytes.subarray(40 + chunk, 40 + 2 * chunk), bytes.subarray(40, 40 + chunk)])
  await t.rejects(
    changed(bytes => Buffer.concat([swap(bytes), bytes.subarray(40 + 2 * chunk)])),
    /./,
    'order',
  )
  writeFileSync(sealed, good)
  await t.rejects(content(Buffer.alloc(32, 2), sealed), /./, 'another key')
})

async function recorded(w: ControlPlane, changes: { call_sid?: string; created_ms?: number } = {}) {
  const sid = newId.recording()
  const file = `recordings/${sid}.wav`
  const audio = randomBytes(150_000)
  mkdirSync(join(w.settings.data_dir, 'recordings'), { recursive: true })
  writeFileSync(join(w.settings.data_dir, file), audio)
  const { call_sid = newId.call(), created_ms = Date.now() } = changes
  const row = { sid, call_sid, project_id: w.demo.project_id, source: 'RecordVerb', file, channels: 1 }
  await insertRecording(w.state.db, { ...row, track: 'inbound' }, created_ms)
  const end = { status: 'completed', duration_ms: 9000, bytes: audio.length, sha256: 'cd'.repeat(32) } as const
  await updateRecording(w.state.db, sid, end, created_ms)
  return { sid, file, audio, path: join(w.settings.data_dir, file) }
}

const rowOf = (w: ControlPlane, sid: string) =>
  w.state.db.selectFrom('recording').selectAll().where('sid', '=', sid).executeTakeFirstOrThrow()

t.test('a symbolic link or a pipe in place of a recording is neither encrypted nor downloaded', async t => {
  const folder = t.testdir({ 'master.key': 'secret', 'other.txt': 'kept' })
  const [link, pipe, plain] = [join(folder, 'RE1.wav'), join(folder, 'RE2.wav'), join(folder, 'RE3.wav')]
  symlinkSync(join(folder, 'master.key'), link)
  execFileSync('mkfifo', [pipe])
  const services = { settings: { data_dir: folder, master_key: KEY }, objects: null } as never
  for (const [path, why] of [
    [link, /ELOOP/],
    [pipe, /is not a file/],
  ] as const) {
    await t.rejects(sealFile(KEY, path, `${path}.sealed`), why, 'not encrypted')
    await t.rejects(openRecording(services, basename(path)), why, 'not downloaded')
    t.notOk(existsSync(`${path}.sealed`))
  }
  writeFileSync(plain, 'sound')
  symlinkSync(join(folder, 'other.txt'), `${plain}.sealed.part`)
  await sealFile(KEY, plain, `${plain}.sealed`)
  t.equal(readFileSync(join(folder, 'other.txt'), 'utf8'), 'kept', 'nothing is written through a link')
  t.equal((await content(KEY, `${plain}.sealed`)).toString(), 'sound')
})

t.test('a finished recording is encrypted on disk and downloads unchanged', async t => {
  const w = await controlPlane(t)
  const { sid, file, audio, path } = await recorded(w)
  const download = (range?: string) =>
    w.voice('GET', `/Recordings/${sid}.wav`, undefined, range === undefined ? {} : { Range: range })
  const before = await download()
  await recordingSealing.run(w)
  t.notOk(existsSync(path), 'the plain file is deleted')
  t.match(await rowOf(w, sid), { file: `${file}.sealed`, status: 'completed' })
  t.notOk(readFileSync(`${path}.sealed`).includes(audio.subarray(0, 64)))
  const after = await download()
  for (const name of ['etag', 'content-length', 'last-modified'])
    t.equal(after.headers.get(name), before.headers.get(name), name)
  t.equal(after.text, before.text)
  const part = await download('bytes=65530-65545')
  t.equal(part.status, 206)
  t.equal(part.text, new TextDecoder().decode(audio.subarray(65_530, 65_546)))
  const stale = await openRecording(w, file)
  t.equal(stale.bytes, audio.length, 'a stale row names the deleted plain file: the encrypted one is read')
  await stale.close()
  const unread = await openRecording(w, file)
  t.ok(openFiles().includes(`${path}.sealed`))
  unread.stream(0, 9).destroy()
  await until('a stream that nobody reads closes its file', () => !openFiles().includes(`${path}.sealed`))
  writeFileSync(path, audio)
  await recordingFiles.run(w)
  t.notOk(existsSync(path), 'a plain file that a crash left behind is deleted')
  t.equal(await storedBytes(w.state.db, w.demo.project_id), audio.length)
})

t.test('a machine leaves the recordings of another machine alone', async t => {
  const w = await controlPlane(t)
  const theirs = await recorded(w)
  const changed = (set: object) => w.state.db.updateTable('recording').set(set).where('sid', '=', theirs.sid).execute()
  await changed({ machine_id: 'mac_other' })
  rmSync(theirs.path)
  await recordingSealing.run(w)
  t.match(await rowOf(w, theirs.sid), { file: theirs.file, status: 'completed' })
  t.equal((await w.voice('GET', `/Recordings/${theirs.sid}.wav`)).status, 503)
  await changed({ status: 'deleted' })
  await recordingFiles.run(w)
  t.equal((await rowOf(w, theirs.sid)).file, theirs.file, 'its own machine deletes it')
})

t.test('a recording answers preconditions, as does each resource with an ETag', async t => {
  const w = await controlPlane(t)
  const { sid } = await recorded(w)
  const ways: Record<string, (headers: Record<string, string>, method?: string) => ReturnType<typeof w.ask>> = {
    voice: (headers, method = 'GET') => w.voice(method, `/Recordings/${sid}.wav`, undefined, headers),
    'v1 audio': (headers, method = 'GET') => w.ask(method, `/v1/recordings/${sid}.wav`, { headers }),
    'v1 resource': (headers, method = 'GET') => w.ask(method, '/v1/voice-account', { headers }),
  }
  for (const [name, ask] of Object.entries(ways)) {
    const whole = await ask({})
    const etag = whole.headers.get('etag') ?? ''
    t.equal(whole.status, 200, name)
    for (const method of ['GET', 'HEAD']) {
      const same = await ask({ 'If-None-Match': `"x", W/${etag}`, Range: 'bytes=0-9' }, method)
      t.same(
        [same.status, same.text, same.headers.get('etag')],
        [304, '', etag],
        `${name} ${method} of the same version`,
      )
      t.notOk(same.headers.get('content-type'), 'a 304 has no content')
      t.equal((await ask({ 'If-Match': '"other"' }, method)).status, 412, `${name} ${method} of another version`)
    }
    t.equal((await ask({ 'If-None-Match': '"other"' })).text, whole.text)
    t.equal((await ask({ 'If-Match': `${etag}, "other"` })).text, whole.text)
    t.equal((await ask({ 'If-Match': '*' })).status, 200)
  }
  const audio = ways['voice'] as (typeof ways)[string]
  const modified = (await audio({})).headers.get('last-modified') ?? ''
  const earlier = new Date(Date.parse(modified) - 1000).toUTCString()
  t.equal((await audio({ 'If-Modified-Since': modified })).status, 304)
  t.equal((await audio({ 'If-Modified-Since': earlier })).status, 200)
  t.equal((await audio({ 'If-Modified-Since': modified, 'If-None-Match': '"other"' })).status, 200, 'the tag decides')
  t.equal((await audio({ 'If-Unmodified-Since': earlier })).status, 412)
  t.equal((await audio({ 'If-Modified-Since': 'yesterday' })).status, 200, 'what is no date is ignored')
  t.match((await audio({ 'If-Match': '"other"' })).body, { code: 20412, status: 412 })
  t.match((await (ways['v1 audio'] as (typeof ways)[string])({ 'If-Match': '"x"' })).body, {
    code: 'precondition_failed',
  })
})

t.test('a recording that came to nothing is no resource', async t => {
  const w = await controlPlane(t)
  const call_sid = newId.call()
  const { sid } = await recorded(w, { call_sid })
  await w.state.db.updateTable('recording').set({ status: 'absent' }).where('sid', '=', sid).execute()
  t.equal((await w.voice('GET', `/Recordings/${sid}.json`)).status, 404)
  t.equal((await w.ask('GET', `/v1/recordings/${sid}`)).status, 404)
  t.same((await w.ask('GET', '/v1/recordings')).body.data, [])
  for (const number of [11100, 12200, 13227])
    t.equal((await w.ask('GET', `/docs/errors/${number}`, { key: null })).status, 200, `the page of ${number}`)
})

t.test('a project at its quota cannot place recorded calls, but can place calls without recording', async t => {
  const w = await controlPlane(t)
  const now = iso(Date.now())
  await putSandboxCarrier(w.state, { machine_id: 'mac_1', host: '127.0.0.1', port: 5999, now })
  const consent = { project_id: w.demo.project_id, accepted_at: now, accepted_by: 'mem_x', terms_version: '1' }
  await w.state.transaction(trx => acceptRecordingConsent(trx, consent))
  const form = { To: '+2348030000001', From: w.demo.numbers[0] ?? '', Twiml: '<Response/>' }
  const { sid } = await recorded(w)
  t.equal((await w.voice('POST', '/Calls.json', { ...form, Record: 'true' })).status, 201)
  await w.state.db.updateTable('recording').set({ bytes: 1_000_000 }).where('sid', '=', sid).execute()
  t.match(await w.voice('POST', '/Calls.json', { ...form, Record: 'true' }), {
    status: 403,
    body: { code: 20403, details: { reason: 'limit_reached' } },
  })
  t.equal((await w.voice('POST', '/Calls.json', form)).status, 201)
  t.ok(await hasRoomForRecording(w.state.db, w.demo.project_id, null), 'without a quota there is always room')
})

t.test('a recording that cannot be encrypted does not block the others', async t => {
  const w = await controlPlane(t)
  const lost = await recorded(w)
  const good = await recorded(w)
  rmSync(lost.path)
  await recordingSealing.run(w)
  t.match((await rowOf(w, good.sid)).file, /\.sealed$/)
  t.equal((await w.voice('GET', `/Recordings/${lost.sid}.wav`)).status, 404)
  t.equal((await w.voice('GET', `/Recordings/${good.sid}.wav`)).status, 200)
})

t.test(
  'recordings are kept for the days that their policy sets, then the file and the resource are both deleted',
  async t => {
    const w = await controlPlane(t)
    const call_sid = newId.call()
    const now = iso(Date.now())
    const day_ms = 86_400_000
    const ceilings = {
      concurrency: null,
      cps: null,
      daily_spend_limit_minor: null,
      calling_hours: null,
      max_call_duration_seconds: null,
    }
    const recording = { recording_mode: 'all', recording_channels: 2, recording_retention_days: 30 } as const
    await w.state.transaction(trx =>
      insertPolicy(trx, {
        id: 'pol_30',
        project_id: w.demo.project_id,
        name: 'thirty days',
        status: 'active',
        system_default: 0,
        billing_group: 'default',
        ...ceilings,
        max_destination_rate_minor: null,
        ...recording,
        revision: 1,
        created_at: now,
        created_by: null,
        updated_at: now,
      }),
    )
    await w.state.db
      .insertInto('lease')
      .values({
        call_sid,
        part: 'outbound',
        node_id: 'node_x',
        subtrunk_id: null,
        trunk_id: null,
        policy_id: 'pol_30',
        parent_policy_id: null,
        subaccount_id: null,
        project_id: w.demo.project_id,
        begun_at: now,
        ended_at: null,
      })
      .execute()
    const old = Date.now() - 31 * day_ms
    const by_policy = await recorded(w, { call_sid, created_ms: old })
    const without = await recorded(w, { created_ms: old })
    const ancient = await recorded(w, { created_ms: Date.now() - 366 * day_ms })
    const deleted = await recorded(w)
    await w.state.db.updateTable('recording').set({ status: 'deleted' }).where('sid', '=', deleted.sid).execute()
    await recordingSealing.run(w)
    await recordingRetention.run(w)
    await recordingFiles.run(w)
    for (const { sid, path } of [by_policy, ancient, deleted]) {
      t.match(await rowOf(w, sid), { status: 'deleted', file: '' })
      t.notOk(existsSync(path))
      t.notOk(existsSync(`${path}.sealed`))
      t.equal((await w.voice('GET', `/Recordings/${sid}.wav`)).status, 404)
      t.equal((await w.voice('GET', `/Recordings/${sid}.json`)).status, 404)
    }
    t.equal((await w.voice('GET', `/Recordings/${without.sid}.wav`)).status, 200)
    t.equal((await rowOf(w, without.sid)).expires_at, iso(old + 365 * day_ms))
  },
)

t.test('a thousand recordings that expire together are deleted some in each transaction', async t => {
  const w = await controlPlane(t)
  const { project_id } = w.demo
  const hook = { url: 'https://hooks.example.com/', event_kinds: ['recording.deleted'] }
  const headers = { 'Idempotency-Key': freshKey() }
  const { status, text } = await w.ask('POST', '/v1/webhook-endpoints', { body: hook, headers })
  t.equal(status, 201, text)
  const now = iso(Date.now() - 1000)
  const rows = Array.from({ length: 1000 }, () => ({
    ...{ sid: newId.recording(), call_sid: newId.call(), project_id, source: 'RecordVerb', file: '', channels: 1 },
    ...({ track: 'both', status: 'completed' } as const),
    ...{ started_at: now, created_at: now, updated_at: now, expires_at: now },
  }))
  await w.state.db.insertInto('recording').values(rows.slice(0, 500)).execute()
  await w.state.db.insertInto('recording').values(rows.slice(500)).execute()
  const deleted = async (): Promise<number> =>
    (await w.state.db.selectFrom('recording').select('sid').where('status', '=', 'deleted').execute()).length
  const counts = [0]
  const state = afterEachTransaction(w.state, async () => void counts.push(await deleted()))
  await recordingRetention.run({ ...w, state }, () => false)
  t.ok((await deleted()) < 1000, 'the end of the process does not wait for all')
  await recordingRetention.run({ ...w, state })
  const most = Math.max(...counts.map((count, at) => count - (counts[at - 1] ?? 0)))
  t.ok(most <= 100, `${most} in one transaction`)
  t.equal(await deleted(), 1000)
  const events = await w.state.db.selectFrom('webhook_delivery').select('payload').execute()
  t.equal(new Set(events.map(({ payload }) => JSON.parse(payload).data.id)).size, 1000, 'an event for each')
})
