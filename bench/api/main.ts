// `npm run bench -- api`: measures requests per second and CPU per request of the management API, as ratios to a bare
// Koa route that returns the same bytes and, for writes, runs a bare SQLite transaction. Both run in turns. Then
// measures how soon a write takes effect for SIP: from its answer to the 200 of an INVITE that it admits.
//   --seconds 3   --connections 16   --trunks 100000   --rounds 15
import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { Pool } from 'undici'
import { iso } from '../../core/runtime/clock.ts'
import { newId } from '../../core/runtime/ids.ts'
import { hashOfNothing } from '../../core/runtime/secrets.ts'
import { addAdminKey, ensureDemo } from '../../core/state/configuration/bootstrap.ts'
import { openState, type State } from '../../core/state/index.ts'
import { freePort } from '../up.ts'
import { measureInForce, medianOf } from './in-force.ts'

const root = fileURLToPath(new URL('../../../', import.meta.url))
const { values: options } = parseArgs({
  options: {
    seconds: { type: 'string', default: '3' },
    connections: { type: 'string', default: '16' },
    trunks: { type: 'string', default: '100000' },
    rounds: { type: 'string', default: '15' },
    out: { type: 'string', default: join(root, 'bench/results/api.json') },
  },
})
const seconds = Number(options.seconds)
const connections = Number(options.connections)
const TURNS = 6
/** Requests that both sides answer before measuring, so that compilation does not count. */
const WARM_UP = 6000
/** The limits of the issue "Management API". */
const BARS = { read: 3, patch: 4, list_growth: 1.5 } as const
const IN_FORCE_MS = 250

interface Measured {
  readonly requests_per_second: number
  readonly cpu_us_per_request: number
}

/** A measured process and the connections to it. */
interface Subject {
  readonly child: ChildProcess
  readonly pool: Pool
}

const data_dir = mkdtempSync(join(tmpdir(), 'bench-api-'))
const started: ChildProcess[] = []
try {
  await main()
} finally {
  for (const child of started) child.kill('SIGTERM')
  rmSync(data_dir, { recursive: true, force: true })
}

async function main(): Promise<void> {
  const { state, keys, project_id } = await prepared()
  await addTrunks(state, project_id, 1000)
  const ids = (await state.db.selectFrom('trunk').select('id').limit(connections).execute()).map(row => row.id)
  const control = await startControl()
  const headers = (at: number) => ({ authorization: `Bearer ${keys[at % keys.length]}` })
  const [first = ''] = ids
  const bytes = await textOf(control, `/v1/trunks/${first}`, headers(0))
  const reference = await startReference(bytes)

  const revisions = new Map(ids.map(id => [id, 1]))
  const save = (at: number, worker: number): Ask => {
    const id = ids[worker] ?? first
    const revision = revisions.get(id) ?? 1
    revisions.set(id, revision + 1)
    return {
      path: `/v1/trunks/${id}`,
      method: 'PATCH',
      body: JSON.stringify(settings(`name ${at}`)),
      headers: { ...headers(at), 'content-type': 'application/json', 'if-match': `"${revision}"` },
    }
  }
  const [bare_read, read] = await inTurns(
    [reference, () => ({ path: '/' })],
    [control, at => ({ path: `/v1/trunks/${first}`, headers: headers(at) })],
  )
  const [bare_patch, patch] = await inTurns(
    [reference, () => ({ path: '/', method: 'PATCH', body: JSON.stringify(settings('x')) })],
    [control, save],
  )
  const list = (at: number) => ({ path: '/v1/trunks?limit=50', headers: headers(at) })
  const list_1000 = await measure(control, list)
  const list_all = await measure(control, at => ({ path: '/v1/trunks', headers: headers(at) }), 1)
  const many = Number(options.trunks)
  await addTrunks(state, project_id, many - 1000)
  const list_many = await measure(control, list)
  await state.close()
  const { in_force_ms, setup_ms } = await measureInForce(Number(options.rounds))

  const ratio = (a: Measured, b: Measured): number => Number((a.cpu_us_per_request / b.cpu_us_per_request).toFixed(2))
  const ratios = {
    read: ratio(read, bare_read),
    patch: ratio(patch, bare_patch),
    list_growth: ratio(list_many, list_1000),
  }
  const results = {
    taken_at: iso(Date.now()),
    connections,
    seconds,
    trunks: many,
    measured: { bare_read, read, bare_patch, patch, list_1000, list_many, list_all },
    ratios,
    in_force_ms: { median: medianOf(in_force_ms), all: in_force_ms, setup_median: medianOf(setup_ms) },
    bars: { ...BARS, in_force_ms: IN_FORCE_MS },
  }
  for (const [name, value] of Object.entries(results.measured))
    console.log(
      `${name.padEnd(12)} ${value.requests_per_second.toFixed(0).padStart(7)} /s ${value.cpu_us_per_request.toFixed(0).padStart(8)} us CPU a request`,
    )
  for (const [name, value] of Object.entries(ratios)) {
    const bar = BARS[name as keyof typeof BARS]
    console.log(`${name.padEnd(12)} ${value} x the reference, at most ${bar}: ${value <= bar ? 'met' : 'MISSED'}`)
  }
  const { median, setup_median } = results.in_force_ms
  console.log(
    `in force     ${median.toFixed(0)} ms from a write's answer to the 200 of an INVITE that it admits (median of ${in_force_ms.length}, ` +
      `${setup_median.toFixed(0)} ms of it the call's own set-up), at most ${IN_FORCE_MS}: ${median <= IN_FORCE_MS ? 'met' : 'MISSED'}`,
  )
  mkdirSync(dirname(options.out), { recursive: true })
  writeFileSync(options.out, `${JSON.stringify(results, null, 2)}\n`)
}

async function prepared() {
  const state = await openState({ data_dir })
  const now = iso(Date.now())
  const hashOfPassword = async () => hashOfNothing()
  const demo = await ensureDemo(state, { master_key: Buffer.alloc(32, 1), now, hashOfPassword })
  const keys: string[] = []
  // A key allows a thousand requests per second, so the generator uses several keys.
  for (let at = 0; at < 32; at += 1) keys.push(await addAdminKey(state.db, demo.project_id, now, null))
  return { state, keys, project_id: demo.project_id }
}

function settings(name: string) {
  return {
    auth_mode: 'ip_allow_list',
    codecs: ['PCMA'],
    direction: 'both',
    media_security: 'rtp',
    name,
    require_tls: false,
    source_validation: 'relaxed',
  }
}

async function addTrunks(state: State, project_id: string, count: number): Promise<void> {
  const now = iso(Date.now())
  for (let made = 0; made < count; made += 500)
    await state.db
      .insertInto('trunk')
      .values(
        Array.from({ length: Math.min(500, count - made) }, () => {
          const id = newId.trunk()
          return {
            id,
            project_id,
            subaccount_id: null,
            name: `Trunk ${id}`,
            status: 'enabled' as const,
            direction: 'both' as const,
            auth_mode: 'ip_allow_list' as const,
            require_tls: 0 as const,
            source_validation: 'relaxed' as const,
            transfers: 'consume' as const,
            media_security: 'rtp' as const,
            codecs: '["PCMA"]',
            concurrency: 10,
            cps: 10,
            max_call_duration_seconds: 3600,
            signaling_fqdn: `${id}.sip.localhost`,
            revision: 1,
            created_at: now,
            updated_at: now,
          }
        }),
      )
      .execute()
}

async function startControl(): Promise<Subject> {
  const port = await freePort()
  const env = { ...process.env, STROWGER_DATA: data_dir, STROWGER_HTTP_PORT: String(port), STROWGER_LOG: 'error' }
  const child = fork(join(root, 'build/bundle/control/process.js'), { env })
  started.push(child)
  await once(child, 'message')
  return { child, pool: new Pool(`http://127.0.0.1:${port}`, { connections }) }
}

async function startReference(bytes: string): Promise<Subject> {
  const file = join(data_dir, 'bytes.json')
  writeFileSync(file, bytes)
  const child = fork(fileURLToPath(new URL('./reference.js', import.meta.url)), [
    file,
    join(data_dir, 'reference.sqlite'),
  ])
  started.push(child)
  const [{ port }] = (await once(child, 'message')) as [{ port: number }]
  return { child, pool: new Pool(`http://127.0.0.1:${port}`, { connections }) }
}

interface Ask {
  readonly path: string
  readonly method?: 'GET' | 'PATCH'
  readonly body?: string
  readonly headers?: Record<string, string>
}

async function textOf({ pool }: Subject, path: string, headers: Record<string, string>): Promise<string> {
  const { body } = await pool.request({ path, method: 'GET', headers })
  return body.text()
}

type Side = readonly [subject: Subject, next: (at: number, worker: number) => Ask]

/** Measures two sides in short turns, so that the machine's other work affects both. */
async function inTurns(...sides: readonly [Side, Side]): Promise<[Measured, Measured]> {
  const taken = sides.map(() => ({ requests: 0, cpu_s: 0, elapsed_s: 0 }))
  for (const [subject, next] of sides) await asked(subject, next, { requests: WARM_UP, span: 30 })
  for (let turn = 0; turn < TURNS; turn += 1)
    for (const [at, [subject, next]] of sides.entries()) {
      const sum = taken[at]
      if (!sum) continue
      const cpu = cpuOf(subject.child)
      const begun = performance.now()
      sum.requests += await asked(subject, next, { requests: Number.POSITIVE_INFINITY, span: seconds / TURNS })
      sum.elapsed_s += (performance.now() - begun) / 1000
      sum.cpu_s += cpuOf(subject.child) - cpu
    }
  const [first, second] = taken.map(({ requests, cpu_s, elapsed_s }) => ({
    requests_per_second: requests / elapsed_s,
    cpu_us_per_request: (cpu_s * 1e6) / requests,
  }))
  if (!first || !second) throw new Error('two sides were measured')
  return [first, second]
}

/**
 * Measures with one client per connection, each waiting for its answer. A warm-up of a fifth of the time comes first.
 */
async function measure(subject: Subject, next: Side[1], span = seconds): Promise<Measured> {
  await asked(subject, next, { requests: Number.POSITIVE_INFINITY, span: span / 5 })
  const cpu = cpuOf(subject.child)
  const begun = performance.now()
  const requests = await asked(subject, next, { requests: Number.POSITIVE_INFINITY, span })
  const elapsed_s = (performance.now() - begun) / 1000
  return {
    requests_per_second: requests / elapsed_s,
    cpu_us_per_request: ((cpuOf(subject.child) - cpu) * 1e6) / requests,
  }
}

/** Sends requests until the time or the number of requests is reached. Returns the number of answers. */
async function asked(
  { pool }: Subject,
  next: Side[1],
  limit: { readonly requests: number; readonly span: number },
): Promise<number> {
  const ends = performance.now() + limit.span * 1000
  let done = 0
  const worker = async (number: number): Promise<void> => {
    while (performance.now() < ends && done < limit.requests) {
      const { path, method = 'GET', body, headers } = next(done, number)
      const answer = await pool.request({ path, method, ...(body ? { body } : {}), ...(headers ? { headers } : {}) })
      const text = await answer.body.text()
      if (answer.statusCode !== 200) throw new Error(`${method} ${path}: ${answer.statusCode} ${text.slice(0, 300)}`)
      done += 1
    }
  }
  await Promise.all(Array.from({ length: connections }, (_, number) => worker(number)))
  return done
}

/** Returns the CPU seconds that all threads of a process have used. */
function cpuOf(child: ChildProcess): number {
  const fields = readFileSync(`/proc/${child.pid}/stat`, 'utf8')
    .replace(/^.*\) /, '')
    .split(' ')
  return (Number(fields[11]) + Number(fields[12])) / 100
}
