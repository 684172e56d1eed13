import { EventEmitter, once } from 'node:events'
import { request } from 'node:http'
import { connect, type Socket } from 'node:net'
import { setTimeout } from 'node:timers/promises'
import t from '../support/harness/index.ts'
import { openPhone } from '../support/phone.ts'
import { sharedWorld } from '../support/shared-world.ts'
import { PATIENCE_MS, until } from '../support/wait.ts'
import type { World } from '../support/world.ts'

// The promises of the management API, observed from outside with all processes running: a write takes effect for SIP,
// its reported progress is true, and no kill reverts what was committed.

const CALLED = '+2348030000001'
const SOURCE = '127.0.0.41'

t.test('the management API of a running platform', async t => {
  const w = await sharedWorld(t)
  const trunk_id = await w.addTrunk('127.0.0.40')
  const trunk = async () => (await w.manage('GET', `/trunks/${trunk_id}`)).body
  const write = async (method: string, path: string, body?: unknown) => {
    const { revision } = await trunk()
    const headers = { 'if-match': `"${revision}"`, 'idempotency-key': `key-${Math.random()}` }
    const answer = await w.manage(method, `/trunks/${trunk_id}${path}`, body, headers)
    if (answer.status >= 300) throw new Error(`${method} ${path}: ${JSON.stringify(answer.body)}`)
    return answer
  }
  const inForce = () => until('the write is in force', async () => (await trunk()).apply.state === 'applied')

  t.test('a source admits INVITEs exactly while its write is reported as applied', async t => {
    const phone = await openPhone(t, { ...w.sip, local_ip: SOURCE })
    const invite = async () => {
      const call = phone.anew()
      const { status } = await call.invite({ called: CALLED, caller: w.numbers[0] ?? '', cseq: 1 })
      if (status === 200) await call.bye(2)
      return status
    }
    t.not(await invite(), 200, 'a stranger')
    await write('POST', '/ip-credentials', { cidr: `${SOURCE}/32` })
    await inForce()
    t.equal(await invite(), 200, 'a source')
    const { data } = (await w.manage('GET', `/trunks/${trunk_id}/ip-credentials`)).body
    const { id } = data.find((source: { cidr: string }) => source.cidr === `${SOURCE}/32`)
    await write('DELETE', `/ip-credentials/${id}`)
    await inForce()
    t.not(await invite(), 200, 'a source that was removed')
  })

  t.test('effective_revision stays behind while the signaling node stalls', async t => {
    await inForce()
    const { apply: before } = await trunk()
    const pid = w.pid('signaling')
    // The test holds the write lock here. A process that stops while it holds that lock keeps all others from writing.
    await w.state.transaction(async () => process.kill(pid, 'SIGSTOP'))
    t.teardown(() => process.kill(pid, 'SIGCONT'))
    const { body } = await write('PATCH', '', { ...settings, name: 'Written while it stood still' })
    t.match(body.apply, { state: 'applying', desired_revision: before.desired_revision + 1 })
    t.equal(body.apply.effective_revision, before.effective_revision, 'the node runs what it ran before')
    t.match(await trunk(), { name: 'Written while it stood still', apply: { state: 'applying' } })
    process.kill(pid, 'SIGCONT')
    await inForce()
    t.equal((await trunk()).apply.effective_revision, before.desired_revision + 1)
  })

  t.test('kill -9 of control between commit and answer: the replay repeats the outcome', async t => {
    const cuts = await killWhileCreating(w)
    for (const cut of cuts) {
      const replay = await w.manage('POST', '/trunks', newTrunk(cut.name), { 'idempotency-key': cut.name })
      t.equal(replay.status, 201, `${cut.name}: ${JSON.stringify(replay.body).slice(0, 200)}`)
      t.equal(replay.headers.get('idempotent-replayed'), cut.committed === null ? null : 'true')
      t.equal(replay.body.trunk.id, cut.committed ?? replay.body.trunk.id, 'the replay tells what was committed')
      t.equal(cut.answered ?? cut.committed, cut.committed, 'what was answered had been committed')
      t.equal((await made(w, cut.name)).length, 1, 'one trunk')
    }
    const between = cuts.filter(({ committed, answered }) => committed !== null && answered === null)
    t.comment(`${between.length} of ${cuts.length} were committed and not answered`)
    t.ok(between.length > 0, 'the kill fell between commit and answer')
  })
})

const AT_ONCE = 12
/** This many responses of this size fill all buffers between the two ends of a connection. */
const LARGE_PAGE = '/docs/assets/swagger-ui-bundle.js'
const LARGE_PAGES = 12
const settings = {
  direction: 'both',
  auth_mode: 'ip_allow_list',
  codecs: ['PCMU', 'PCMA'],
  media_security: 'rtp',
  require_tls: false,
  source_validation: 'relaxed',
}
const newTrunk = (name: string) => ({ ...settings, name, sources: [], targets: [] })

/** A create that was interrupted by a kill. */
interface Cut {
  readonly name: string
  readonly committed: string | null
  readonly answered: string | null
}

const made = async (w: World, name: string): Promise<string[]> =>
  (await w.state.db.selectFrom('trunk').select('id').where('name', '=', name).execute()).map(({ id }) => id)

/** The server of PostgreSQL ends a transaction that asks nothing for 3 s. */
const ASKS_MS = 500

/** Holds the turn of writers until `release`. */
async function holdWriters({ state }: World): Promise<{ release(): Promise<void> }> {
  const [begun, released] = [new EventEmitter(), new AbortController()]
  const held = once(begun, 'held')
  const over = state.transaction(async trx => {
    begun.emit('held')
    while (!released.signal.aborted) {
      await trx.selectFrom('configuration').select('id').execute()
      await setTimeout(ASKS_MS, null, { signal: released.signal }).catch(() => undefined)
    }
  })
  await Promise.race([held, over])
  return {
    async release() {
      released.abort()
      await over
    },
  }
}

/**
 * Creates trunks concurrently, kills control as soon as one is committed whose response is blocked, and waits until
 * control is back. The test holds the lock that all creates wait for, so that they commit in direct succession.
 */
async function killWhileCreating(w: World): Promise<Cut[]> {
  const names = Array.from({ length: AT_ONCE }, (_, at) => `Trunk ${at}`)
  const [unread = '', ...read] = names
  const old = w.pid('control')
  const writers = await holdWriters(w)
  const answers = read.map(name => create(w, name))
  const [unread_socket] = await Promise.all([createUnread(w, unread), ...answers.map(({ sent }) => sent)])
  // This response needs no state. When it arrives, the earlier creates have started.
  await w.manage('GET', '/openapi.json')
  await writers.release()
  const begun_ms = performance.now()
  while ((await made(w, unread)).length === 0) {
    if (performance.now() - begun_ms > PATIENCE_MS) throw new Error('the create that nobody reads is not committed')
  }
  process.kill(old, 'SIGKILL')
  unread_socket.destroy()
  const answered = [null, ...(await Promise.all(answers.map(({ answered }) => answered)))]
  const cuts = await Promise.all(
    names.map(async (name, at) => ({
      name,
      committed: (await made(w, name))[0] ?? null,
      answered: answered[at] ?? null,
    })),
  )
  await until('control is back', () => w.pid('control') !== old)
  await until('it answers', async () => (await fetch(`${w.base_url}/readyz`).catch(() => null))?.ok)
  return cuts
}

/**
 * Resolves when the request has been sent. Its response stays in control, because responses are sent in the order of
 * the requests (RFC 9112 section 9.3.2), and the client reads none of the earlier ones.
 */
function createUnread(w: World, name: string): Promise<Socket> {
  const { hostname, port } = new URL(w.base_url)
  const body = JSON.stringify(newTrunk(name))
  const post = [
    ...['POST /v1/trunks HTTP/1.1', `Host: ${hostname}`, `Authorization: Bearer ${w.api_key}`],
    ...['Content-Type: application/json', `Idempotency-Key: ${name}`, `Content-Length: ${body.length}`, '', body],
  ].join('\r\n')
  const page = `GET ${LARGE_PAGE} HTTP/1.1\r\nHost: ${hostname}\r\n\r\n`
  return new Promise(resolve => {
    const text = page.repeat(LARGE_PAGES) + post
    const socket = connect(Number(port), hostname, () => socket.write(text, () => resolve(socket)))
    // Control is killed during the request.
    socket.on('error', () => undefined)
    socket.pause()
  })
}

/** `answered` is the id of the trunk; null when the connection ended before. */
function create(w: World, name: string): { readonly sent: Promise<void>; readonly answered: Promise<string | null> } {
  const headers = {
    authorization: `Bearer ${w.api_key}`,
    'content-type': 'application/json',
    'idempotency-key': name,
  }
  const asked = request(`${w.base_url}/v1/trunks`, { method: 'POST', headers, agent: false })
  const answered = new Promise<string | null>(resolve => {
    asked.on('error', () => resolve(null))
    asked.on('response', answer => {
      const chunks: Buffer[] = []
      answer.on('data', chunk => chunks.push(chunk))
      answer.on('error', () => resolve(null))
      answer.on('end', () => resolve(JSON.parse(Buffer.concat(chunks).toString('utf8')).trunk?.id ?? null))
    })
  })
  const sent = new Promise<void>(resolve => asked.end(JSON.stringify(newTrunk(name)), resolve))
  return { sent, answered }
}
