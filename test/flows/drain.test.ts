import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { SipMessage } from '../../signaling/edge/sip/message.ts'
import type { UserAgentCall } from '../../signaling/edge/useragent/call.ts'
import { type Agent, openAgent, place, sdpOf } from '../support/agents.ts'
import { type Ended, strowger as run } from '../support/child.ts'
import t, { type Test } from '../support/harness/index.ts'
import { freeBlock } from '../support/ports.ts'
import { until } from '../support/wait.ts'
import { type WebServer, webServer } from '../support/web.ts'
import { type World, world } from '../support/world.ts'

// Draining a platform (user-asks 14): no running call is cut, no new call is admitted by any entry, and the processes
// end with the last call.

const CALLS = 50
const CALLED = '+2348030004711'
/** Each call has its own number, which identifies its other side. */
const calledOf = (at: number): string => `+23480300${String(10_000 + at)}`

interface Town {
  readonly w: World
  readonly peer: Agent
  readonly target: Agent
  readonly supervisor: number
  strowger(...words: string[]): Promise<Ended>
  /** The same, with its output so far. */
  follow(...words: string[]): ReturnType<typeof run>
  invite(called?: string): ReturnType<typeof place>
  /** Waits until the node answers OPTIONS with this code. */
  answers(status: 200 | 503): Promise<unknown>
}

async function town(t: Test, subnet: number, env: Record<string, string> = {}): Promise<Town> {
  const rtp = await freeBlock(6 * CALLS)
  const STROWGER_RTP_PORTS = `${rtp.first}-${rtp.last}`
  const w = await world(t, { STROWGER_SANDBOX: 'off', STROWGER_LOG: 'warn', STROWGER_RTP_PORTS, ...env })
  const peer = await openAgent(t, { ip: `127.0.${subnet}.1` })
  const target = await openAgent(t, { ip: `127.0.${subnet}.2` })
  await w.addTrunk(peer.ip, {
    targets: [{ sip_uri: `sip:${target.ip}:${target.port}`, transport: 'udp', priority: 1, weight: 1 }],
    limits: { concurrency: 2 * CALLS, cps: 10 * CALLS, max_call_duration_seconds: 3600 },
  })
  const follow: Town['follow'] = (...words) => run(words, { ...w.place })
  return {
    ...{ w, peer, target },
    supervisor: Number(readFileSync(join(w.data_dir, 'run', 'supervisor.pid'), 'utf8')),
    follow,
    strowger: (...words) => follow(...words).ended,
    answers: status =>
      until(`OPTIONS is answered ${status}`, async () => {
        const answer = await peer.ua.request('OPTIONS', `sip:${w.sip.host}`, { hop: `sip:${w.sip.host}:${w.sip.port}` })
        return answer?.status === status
      }),
    invite: (called = CALLED) => place(peer, `sip:${called}@${w.sip.host}`, { to: w.sip, caller: w.numbers[1] ?? '' }),
  }
}

const runs = (pid: number): boolean => existsSync(`/proc/${pid}`)

/** Starts both sides of the calls from trunk to target. */
const legsOf = ({ target }: Town, near: readonly UserAgentCall[]): UserAgentCall[] => [
  ...near,
  ...target.invites.map(({ call }) => call),
]

const sayDraining = (t: Test, response: SipMessage | undefined): void => {
  t.equal(response?.status, 503)
  t.match(response?.lines('retry-after')[0], /^\d+$/, 'with Retry-After')
  t.match(response?.lines('reason')[0], /text="draining"/)
}

/** Checks that every entry refuses calls with the reason. */
async function nothingNewBegins(t: Test, { w, target, invite }: Town): Promise<void> {
  const before = target.invites.length
  sayDraining(t, (await invite()).response)
  sayDraining(t, (await invite(w.numbers[2])).response)
  const Twiml = '<Response/>'
  const created = await w.voice('POST', '/Calls.json', { From: w.numbers[0] ?? '', To: CALLED, Twiml })
  t.match(created, { status: 503, body: { code: 20503 } })
  t.match(created.headers.get('retry-after'), /^\d+$/)
  t.equal((await fetch(`${w.base_url}/readyz`)).status, 503)
  t.equal(target.invites.length, before, 'no INVITE has left')
}

/** A script on a live call dials. The Dial reports a failure, and the script continues. */
async function dialIsRefused(t: Test, { w, target }: Town, web: WebServer, sid: string): Promise<void> {
  const before = target.invites.length
  const [Url, StatusCallback] = [`${web.url}/dials`, `${web.url}/status`]
  const asked = await w.voice('POST', `/Calls/${sid}.json`, { Url, StatusCallback })
  t.equal(asked.status, 200, JSON.stringify(asked.body))
  t.equal((await web.seen('/dialled')).fields.get('DialCallStatus'), 'failed')
  t.equal(target.invites.length, before, 'no INVITE has left for Dial')
}

t.test('`strowger drain` with 50 live calls loses none, admits none, and ends with the last one', async t => {
  const made = await town(t, 71)
  const { w, target, strowger, follow, invite, answers, supervisor } = made
  const talk = '<Response><Gather timeout="600"/></Response>'
  const web = await webServer(t, {
    ...{ '/voice': talk, '/dialled': talk, '/status': { status: 204 } },
    '/dials': `<Response><Dial action="/dialled">${CALLED}</Dial></Response>`,
  })
  await w.routeToApplication(w.numbers[2] ?? '', `${web.url}/voice`)
  const [scripted, ...placed] = await Promise.all([
    invite(w.numbers[2]),
    ...Array.from({ length: CALLS - 1 }, (_value, at) => invite(calledOf(at))),
  ])
  t.same([...new Set([scripted, ...placed].map(one => one?.status))], [200])
  const sid = (await web.seen('/voice')).fields.get('CallSid') ?? ''
  const near = placed.map(({ call }) => call)
  const legs = legsOf(made, near)
  t.equal(legs.length, 2 * (CALLS - 1))

  t.match(await strowger('drain'), { code: 0, stdout: /^no new call is taken; 50 calls go on/ })
  await nothingNewBegins(t, made)
  await dialIsRefused(t, made, web, sid)
  t.match((await strowger('top', '--once')).stdout, /signaling draining/)

  t.match(await strowger('drain', '--cancel'), { code: 0, stdout: /new calls are taken again/ })
  const again = await invite()
  t.equal(again.status, 200)
  again.call.hangUp()
  await until('its other side is hung up', () => target.invites.at(-1)?.call.state === 'ended')

  const waiting = follow('drain', '--wait')
  await answers(503)
  await until('it has told of all calls', () => /^50 calls$/m.test(waiting.printed()))
  const reinvited = await Promise.all(near.map(call => call.send('INVITE', { body: sdpOf('127.0.71.1') })))
  t.ok(
    reinvited.every(answer => answer?.status === 200),
    'a re-INVITE of a running call is answered',
  )
  t.same([...new Set(legs.map(call => call.state))], ['answered'], 'all calls are there')
  near.slice(0, 25).forEach(call => void call.hangUp())
  // The others in the order in which they were placed, which may differ from their order of arrival.
  for (let at = 25; at < CALLS - 1; at++)
    void target.invites.find(({ uri }) => uri.includes(calledOf(at)))?.call.hangUp()
  await until('both sides of all have ended', () => legs.every(call => call.state === 'ended'))
  t.ok(runs(supervisor), 'one call is left, and the platform is there for it')
  t.equal((await w.voice('POST', `/Calls/${sid}.json`, { Status: 'completed' })).status, 200)

  const { code, stdout } = await waiting.ended
  t.equal(code, 0, stdout)
  t.match(stdout, /50 calls\n[\s\S]*stopped\n$/)
  // Its last act is to remove the file with its number, which is what the command looks for.
  await until('the platform has ended', () => !runs(supervisor))
  t.match((await web.seen('/status')).fields.get('CallStatus'), 'completed', 'the last callback has left before')
  const cdrs = await w.state.db.selectFrom('cdr').selectAll().where('status', '=', 'completed').execute()
  t.equal(cdrs.length, CALLS + 1)
  t.same([...new Set(cdrs.map(({ reason }) => reason))], [null], 'all ended because one side or the API said so')
  t.same(await w.state.db.selectFrom('lease').select('call_sid').where('ended_at', 'is', null).execute(), [])
  t.match(await strowger('drain'), { code: 1 }, 'nothing runs any more')
})

t.test('SIGTERM drains for the configured time; a second one ends the calls at once, with a reason', async t => {
  const made = await town(t, 72, { STROWGER_DRAIN_SECONDS: '600' })
  const { w, supervisor, invite, answers } = made
  const { call } = await invite()
  process.kill(supervisor, 'SIGTERM')
  await answers(503)
  // Signaling drains before its row says so, which the API reads.
  await until('the row says so', () =>
    w.state.db.selectFrom('node').select('id').where('draining_at', 'is not', null).executeTakeFirst(),
  )
  await nothingNewBegins(t, made)
  t.equal((await call.send('OPTIONS'))?.status, 200, 'the call is there')
  process.kill(supervisor, 'SIGTERM')
  await until('both sides are told', () => legsOf(made, [call]).every(leg => leg.state === 'ended'))
  await until('the platform has ended', () => !runs(supervisor))
  t.match(await w.state.db.selectFrom('cdr').selectAll().where('status', '=', 'completed').execute(), [
    { reason: 'draining', ended_by: 'platform' },
  ])
})

t.test('a node killed while draining: both sides get BYE, no call begins, the platform stops', async t => {
  const made = await town(t, 73)
  const { w, supervisor, invite, answers, strowger } = made
  const { call } = await invite()
  t.equal((await strowger('drain')).code, 0)
  await answers(503)
  process.kill(w.pid('signaling'), 'SIGKILL')
  await until('both sides are told', () => legsOf(made, [call]).every(leg => leg.state === 'ended'))
  await until('the platform has ended', () => !runs(supervisor))
  t.match(await w.state.db.selectFrom('cdr').selectAll().where('status', '=', 'completed').execute(), [
    { reason: 'node_lost' },
  ])
  t.equal(made.target.invites.length, 1)
})

t.test('a stop while signaling is down: its successor drains, both sides get BYE, the platform stops', async t => {
  const made = await town(t, 74, { STROWGER_DRAIN_SECONDS: '600' })
  const { w, supervisor, invite } = made
  const { call } = await invite()
  process.kill(w.pid('signaling'), 'SIGKILL')
  process.kill(supervisor, 'SIGTERM')
  await until('both sides are told', () => legsOf(made, [call]).every(leg => leg.state === 'ended'))
  await until('the platform has ended', () => !runs(supervisor))
  // It may have been killed before it wrote that the call was answered.
  t.same(await w.state.db.selectFrom('cdr').select('reason').execute(), [{ reason: 'node_lost' }])
})
