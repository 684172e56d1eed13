import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { bootstrap } from '../../bin/bootstrap.ts'
import { loadConfig } from '../../core/runtime/config.ts'
import { openState } from '../../core/state/index.ts'
import { readWavFile, strongestHz } from '../support/audio.ts'
import { sidOf } from '../support/busy.ts'
import { runCommand } from '../support/command-line.ts'
import t from '../support/harness/index.ts'
import { breakable } from '../support/postgres.ts'
import { refusal } from '../support/refusal.ts'
import { openSoftphone } from '../support/softphone.ts'
import { until } from '../support/wait.ts'
import { webServer } from '../support/web.ts'
import { world } from '../support/world.ts'

// A platform whose state is in PostgreSQL: from an empty database to calls, files and bills, a backup that is restored,
// and a server that breaks off while calls run.

const SANDBOX_TONE = '+2348030004711'

t.test('a platform on PostgreSQL', async t => {
  const server = await breakable(t)
  const w = await world(t, { STROWGER_DATABASE_URL: server.url })
  const { db } = w.state
  const env = { STROWGER_DATA: w.data_dir, STROWGER_DATABASE_URL: server.url }
  const [number = '', own = ''] = w.numbers

  await t.test('a first call is recorded, told by callbacks, listed, exported and billed', async t => {
    const web = await webServer(t, { '/status': { status: 204 } })
    const { status, body } = await w.voice('POST', '/Calls.json', {
      From: number,
      To: SANDBOX_TONE,
      InlineMarkup: '<Response><Record maxLength="2" playBeep="false" timeout="0" trim="do-not-trim"/></Response>',
      StatusCallback: `${web.url}/status`,
      StatusCallbackEvent: ['initiated', 'answered', 'completed'],
    })
    t.equal(status, 201, JSON.stringify(body))
    const { sid } = body
    t.match(await w.ended(sid), { status: 'completed' })
    const steps = await until('the last callback', () => {
      const told = web.requests.map(({ fields }) => fields.get('CallStatus'))
      return told.includes('completed') && told
    })
    t.same(steps, ['initiated', 'in-progress', 'completed'])
    const tape = await until('the recording is whole', async () => {
      const [one] = (await w.voice('GET', `/Calls/${sid}/Recordings.json`)).body.recordings
      return one?.status === 'completed' && one
    })
    const { bytes } = await w.voice('GET', `/Recordings/${tape.sid}.wav`)
    const wav = readWavFile(join(t.testdir({ 'tape.wav': bytes }), 'tape.wav'))
    t.equal(strongestHz(wav.channels[0] ?? new Int16Array(1), wav.rate_hz), 440)
    const listed = await w.manage('GET', '/calls')
    t.same(
      listed.body.data.map(({ id }: { id: string }) => id),
      [sid],
    )
    t.match((await w.manage('GET', '/billing/usage')).body.total, { calls: 1 })
    const { body: job } = await w.manage('POST', '/exports', { format: 'csv' }, { 'idempotency-key': 'one' })
    await until('the export is written', async () => {
      const { body: now } = await w.manage('GET', `/exports/${job.id}`)
      return now.state === 'completed' && now
    })
    const file = (await w.manage('GET', `/exports/${job.id}/file`)).bytes.toString('utf8').split('\r\n')
    t.equal(file.length, 3)
    t.match(file[1], new RegExp(`\\b${sid}\\b`))
  })

  await t.test('its commands find the state, and no other installation takes it over', async t => {
    const folder = t.testdir({ bare: {}, other: {}, restored: {} })
    t.match(await runCommand(['calls', 'list', '--json'], { env }), {
      code: 0,
      stdout: new RegExp(SANDBOX_TONE.slice(1)),
    })
    t.match(await runCommand(['migrate'], { env }), { code: 0, stdout: /\/voice has the schema of this version\n$/ })
    t.match((await runCommand(['status'], { env })).stdout, /PostgreSQL at 127\.0\.0\.1:\d+\/voice/)
    const left_out = await runCommand(['calls', 'list'], { env: { STROWGER_DATA: w.data_dir } })
    t.match(left_out, { code: 1, stderr: /is in PostgreSQL: set STROWGER_DATABASE_URL/ })
    const upgrade = await runCommand(['upgrade', '--check', folder], { env })
    t.match(upgrade, { code: 1, stderr: /is no release: it has no bin\/strowger/ })
    const foreign = loadConfig({ ...env, STROWGER_DATA: join(folder, 'other') })
    await t.rejects(bootstrap(foreign), { message: /^the master key is not that of the database/ })

    const archive = join(folder, 'backup.tar.gz')
    const made = await runCommand(['backup', archive], { env })
    t.equal(made.code, 0, made.stderr)
    const again = { STROWGER_DATA: join(folder, 'restored'), STROWGER_DATABASE_URL: await server.another() }
    const here = await runCommand(['restore', archive], { env: { STROWGER_DATA: join(folder, 'bare') } })
    t.match(here, { code: 1, stderr: /has a PostgreSQL database: set STROWGER_DATABASE_URL to an empty one/ })
    const filled = await runCommand(['restore', archive], { env: { ...again, STROWGER_DATABASE_URL: server.url } })
    t.match(filled, { code: 1, stderr: /voice is not empty/ })
    const restored = await runCommand(['restore', archive], { env: again })
    t.equal(restored.code, 0, restored.stderr)
    const state = await openState({ data_dir: again.STROWGER_DATA, database_url: again.STROWGER_DATABASE_URL })
    t.teardown(() => state.close())
    for (const table of ['call', 'cdr', 'audit_event', 'ledger', 'voice_account'] as const) {
      const rows = async (of: typeof db) =>
        (await of.selectFrom(table).selectAll().execute()).map(row => JSON.stringify(row))
      t.same((await rows(state.db)).sort(), (await rows(db)).sort(), table)
    }
    const key = (data_dir: string) => readFileSync(join(data_dir, 'master.key'), 'utf8')
    t.equal(key(again.STROWGER_DATA), key(w.data_dir))
    t.equal((await runCommand(['calls', 'list'], { env: again })).code, 0)
  })

  await t.test('calls outlive a server that breaks off; new ones are refused until it is back', async t => {
    const desk = await openSoftphone(t, '127.0.0.74')
    await w.addTrunk(desk.address)
    const call = async () => {
      const line = await desk.dial(`sip:${SANDBOX_TONE}@${w.sip.host}:${w.sip.port}`, { from: own })
      await line.answered()
      line.hum(700)
      await line.hears(440)
      return { line, sid: await sidOf(db, line) }
    }
    type Talk = Awaited<ReturnType<typeof call>>
    const hears = async ({ line }: Talk): Promise<void> => {
      line.rtp.received.length = 0
      await line.hears(440)
      t.equal(line.ended, null)
    }
    const recordOf = ({ sid }: Talk) => db.selectFrom('cdr').selectAll().where('call_sid', '=', sid).executeTakeFirst()
    const pids = () => (['signaling', 'media', 'edge', 'control'] as const).map(w.pid)
    const [stays, leaves] = [await call(), await call()]
    const before = pids()

    await server.breakOff()
    const refused = await refusal(t, desk.address, `sip:${SANDBOX_TONE}@${w.sip.host}:${w.sip.port}`, own)
    t.match(refused, { status: 503, reason: /"state_unavailable"/, retry_after: /^\d+$/ })
    const by_rest = await w.voice('POST', '/Calls.json', {
      From: number,
      To: SANDBOX_TONE,
      InlineMarkup: '<Response/>',
    })
    t.equal(by_rest.status, 503)
    await until('the platform is not ready', async () => (await fetch(`${w.base_url}/readyz`)).status === 503)
    leaves.line.hangUp()
    t.equal(await leaves.line.over(), 'us')
    await hears(stays)

    await server.comeBack()
    t.match(await until('the end is written', () => recordOf(leaves)), { status: 'completed', reason: null })
    await hears(stays)
    const next = await call()
    t.same(pids(), before, 'no process had to start again')
    for (const talk of [stays, next]) {
      talk.line.hangUp()
      t.match(await until('its record', () => recordOf(talk)), { status: 'completed' })
    }

    // The process that had to write an end is killed before it could.
    const unwritten = await call()
    const kept = () => existsSync(join(w.data_dir, 'unwritten-ends', `${unwritten.sid}.json`))
    await server.breakOff()
    unwritten.line.hangUp()
    await until('its end is in a file', kept)
    await w.kill('signaling', () => server.comeBack())
    const record = await until('its record', () => recordOf(unwritten))
    t.match(record, { status: 'completed', reason: null }, 'not lost with its node')
    await until('the file is gone', () => !kept())
  })
})
