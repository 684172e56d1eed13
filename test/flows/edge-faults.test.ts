import { readdirSync, readlinkSync } from 'node:fs'
import type { CallEvents, UserAgentCall } from '../../signaling/edge/useragent/call.ts'
import { UserAgent } from '../../signaling/edge/useragent/user-agent.ts'
import { callUntilDecided } from '../support/busy.ts'
import t, { type Test } from '../support/harness/index.ts'
import { openPhone } from '../support/phone.ts'
import { UNHEARD_PORT } from '../support/ports.ts'
import { audioSdp } from '../support/sip-steps.ts'
import { TRACEABLE } from '../support/tracing.ts'
import { until } from '../support/wait.ts'
import { type World, world } from '../support/world.ts'

// Persistent strangers leave nothing behind.  A process is killed during a trunk's calls, and no far end keeps a dead
// call. Without its signaling node the edge refuses new calls at once, and sends BYE to both far ends of every call
// after the grace of 5 s; the restarted node has no old calls. A restarted edge ends the dialogs of its last run, up to
// the moment of its death.

const PEER = '127.0.0.2'
const TARGET = '127.0.0.3'
const WORLD = '+2348030004711'
/** Rings without end. */
const RINGS = '+2348030004712'

/** The outcome of a call, at the calling or at the called end. */
interface Far {
  call: UserAgentCall
  end: string
}

async function agent(t: Test, host: string, incoming: (call: UserAgentCall) => void): Promise<UserAgent> {
  const opened = await UserAgent.open({
    listeners: [
      { protocol: 'udp', host, port: 0 },
      { protocol: 'tcp', host, port: 0, same_port: true },
    ],
    incoming,
    request: options => options.answer(200),
  })
  t.teardown(() => opened.close())
  return opened
}

const sdp = (host: string): string =>
  audioSdp()
    .replaceAll('[local_ip]', host)
    .replaceAll('[local_ip_type]', '4')
    .replaceAll('[media_ip_type]', '4')
    .replaceAll('[rtp_port]', String(UNHEARD_PORT))
    .replaceAll('\n', '\r\n')

t.test('strangers and killed processes during a trunk’s calls', async t => {
  const w = await world(t, { STROWGER_SANDBOX: 'off', ...TRACEABLE })
  const taken: Far[] = []
  const target = await agent(t, TARGET, call => {
    const far: Far = { call, end: '' }
    taken.push(far)
    call.events.ended = why => {
      far.end = why
    }
    call.ring(180)
    if (!call.invite?.uri.includes(RINGS.slice(1))) call.answer({ body: sdp(TARGET) })
  })
  const peer = await agent(t, PEER, call => call.reject(486))
  /** Places a call, and places it again while the platform is too busy to decide. */
  const place = (called: string, over: 'udp' | 'tcp' = 'udp'): Far => {
    const uri = `sip:${called}@${w.sip.host}:${w.sip.port}${over === 'tcp' ? ';transport=tcp' : ''}`
    const events: CallEvents = {
      failed: response => {
        far.end = `${response?.status}`
      },
      ended: why => {
        far.end = why
      },
    }
    const options = { from: `<sip:${w.numbers[1]}@${PEER}>`, body: sdp(PEER), events }
    const call = callUntilDecided(peer, uri, options, next => {
      far.call = next
    })
    const far: Far = { end: '', call }
    return far
  }
  await w.addTrunk(PEER, {
    targets: [{ sip_uri: `sip:${TARGET}:${target.port('udp')}`, transport: 'udp', priority: 1, weight: 1 }],
  })

  const ready = () =>
    until('the platform is ready', async () => (await fetch(`${w.base_url}/readyz`).catch(() => null))?.ok)
  /** Retries while no node is there. Readiness follows heartbeats, which remain valid for 6 s after the node's end. */
  const calledAgain = (): Promise<Far> =>
    until('a new call is up', async () => {
      const next = place(WORLD)
      await until('it is answered or refused', () => next.call.state === 'answered' || next.end !== '')
      return next.call.state === 'answered' && next
    })
  const reasons = async (): Promise<readonly (string | null)[]> =>
    (await w.state.db.selectFrom('cdr').select('reason').execute()).map(row => row.reason)

  t.test('a persistent stranger leaves no row behind, and the trunk’s calls work', async t => {
    const phone = await openPhone(t, { ...w.sip, local_ip: '127.0.0.66' })
    const attempt = () => phone.anew().invite({ called: WORLD, caller: '+2340000000000', cseq: 1 })
    // No trunk has a password here, so there is no challenge. Signaling refuses the first requests.
    const answers = await Promise.all(Array.from({ length: 50 }, attempt))
    t.same([...new Set(answers.map(({ status }) => status))], [403])
    const heard = place(WORLD)
    await until('the trunk calls', () => heard.call.state === 'answered')
    heard.call.hangUp()
    await until('its end', () => taken[0]?.end === 'peer')
    taken.length = 0
    const rows = await until('the messages of its call are kept', async () => {
      const found = await w.state.db.selectFrom('sip_message').select(['remote', 'sip_call_id', 'text']).execute()
      return found.some(({ text }) => text.startsWith('BYE ')) && found
    })
    t.same(
      rows.filter(({ remote }) => remote.startsWith('127.0.0.66:')),
      [],
      'and none of the stranger',
    )
    // A busy edge leaves its metrics out of one answer.
    const metric = await until('the edge reports its metrics', async () => {
      const found = await w.metrics()
      return !Number.isNaN(found('edge_blocked_sources')) && found
    })
    t.equal(metric('edge_blocked_sources'), 0, 'who costs nothing need not be blocked')
    t.ok(metric('edge_strangers_answered_total') >= 50)
  })

  t.test('kill -9 of the signaling node', async t => {
    const up = [place(WORLD), place(WORLD), place(WORLD, 'tcp')]
    await until('the calls are up', () => up.every(far => far.call.state === 'answered') && taken.length === 3)
    const ringing = place(RINGS)
    await until('one rings', () => taken.length === 4)

    // The edge itself refuses between the loss of the link and the node's return. That needs no trunk.
    await w.kill('signaling', async () => {
      const refused = await until('a new call is refused', () => refusedNow(w))
      t.equal(refused, 503)
    })
    await until('every end is told', () => [...up, ringing, ...taken].every(far => far.end !== ''))
    t.same(
      up.map(far => far.end),
      ['peer', 'peer', 'peer'],
      'who called gets BYE',
    )
    t.same(
      taken.map(far => far.end),
      ['peer', 'peer', 'peer', 'cancelled'],
      'who was called gets BYE, or CANCEL where it rang',
    )
    t.equal(ringing.end, '503', 'who heard it ring gets a final answer')

    await ready()
    const next = await calledAgain()
    next.call.hangUp()
    await until('the records', async () => (await reasons()).filter(reason => reason === 'node_lost').length === 4)
    await w.untilNone('edge_dialogs')
  })

  t.test('kill -9 of the edge', async t => {
    await ready()
    taken.length = 0
    const ringing = [place(RINGS), place(RINGS, 'tcp')]
    await until('two ring', () => taken.length === 2)
    const up = [place(WORLD), place(WORLD), place(WORLD, 'tcp')]
    await until('the calls are up', () => up.every(far => far.call.state === 'answered') && taken.length === 5)
    // At once, before the ladder has written the responses.
    await w.kill('edge')
    const all = [...ringing, ...up, ...taken]
    await until('every end is told', () => all.every(far => far.end !== ''))
    const rang = (far: Far): boolean => far.call.invite?.uri.includes(RINGS.slice(1)) ?? false
    t.same(
      { callers: up.map(far => far.end), called: taken.filter(far => !rang(far)).map(far => far.end) },
      { callers: Array(3).fill('peer'), called: Array(3).fill('peer') },
      'both ends of each call get BYE',
    )
    t.same(
      { callers: ringing.map(far => far.end), called: taken.filter(rang).map(far => far.end) },
      { callers: ['503', '503'], called: ['cancelled', 'cancelled'] },
      'where it rang, the caller is refused and the callee stops ringing',
    )
    await ready()
    const next = await calledAgain()
    next.call.hangUp()
    await w.untilNone('edge_dialogs')
    t.same(opened(w.pid('edge'), 'strowger.sqlite'), [], 'the edge opens no database')
  })
})

/** Returns the open files of a process with this name. */
const opened = (pid: number, name: string): string[] =>
  readdirSync(`/proc/${pid}/fd`).flatMap(fd => {
    try {
      const file = readlinkSync(`/proc/${pid}/fd/${fd}`)
      return file.includes(name) ? [file] : []
    } catch {
      // The file was closed after the folder was read.
      return []
    }
  })

/** Tries one call. Returns undefined when a node, the old or the new one, refused it for another reason. */
async function refusedNow(w: World): Promise<number | undefined> {
  const asking = await UserAgent.open({ listeners: [{ protocol: 'udp', host: PEER, port: 0 }] })
  try {
    return await new Promise<number | undefined>(resolve => {
      asking.call(`sip:${WORLD}@${w.sip.host}:${w.sip.port}`, {
        from: `<sip:nobody@${PEER}>`,
        events: { failed: response => resolve(response?.status === 503 ? 503 : undefined) },
      })
    })
  } finally {
    asking.close()
  }
}
