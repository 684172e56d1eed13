import { setTimeout as pause } from 'node:timers/promises'
import type { UserAgentCall } from '../../signaling/edge/useragent/call.ts'
import type { MessageParts } from '../../signaling/edge/useragent/message-parts.ts'
import { type Agent, openAgent, type Placed, place, sdpOf } from '../support/agents.ts'
import t, { type Test } from '../support/harness/index.ts'
import { freeBlock } from '../support/ports.ts'
import { until } from '../support/wait.ts'
import { type ProcessName, type World, world } from '../support/world.ts'

// Many calls between a trunk's peer and its target while one of our processes is killed or stopped (threats §7): both
// sides of each call are notified, each call has its CDR, and every port and slot is released.

const CALLS = 20
const CALLED = '+2348030004711'

interface Pair {
  readonly near: UserAgentCall
  readonly far: UserAgentCall
}

async function connect(w: World, peer: Agent, target: Agent): Promise<Pair[]> {
  const before = target.invites.length
  // On hold from the start, so that missing media does not end them on a slow machine.
  const placed = await Promise.all(Array.from({ length: CALLS }, () => invite(w, peer, held(peer))))
  const statuses = placed.map(({ status }) => status)
  if (statuses.some(status => status !== 200)) throw new Error(`not all were answered: ${statuses.join(' ')}`)
  await until('the rows say so', async () => {
    const rows = await w.state.db.selectFrom('call').select('sid').where('status', '=', 'in-progress').execute()
    return rows.length === CALLS
  })
  const taken = target.invites.slice(before)
  return placed.map(({ call }, index) => {
    const far = taken[index]?.call
    if (!far) throw new Error('a call did not reach the target')
    return { near: call, far }
  })
}

const invite = (w: World, peer: Agent, body = sdpOf(peer.ip)): Promise<Placed> =>
  place(peer, `sip:${CALLED}@${w.sip.host}`, { to: w.sip, caller: w.numbers[1] ?? '', body })

const held = (peer: Agent): string => sdpOf(peer.ip).concat('a=inactive\r\n')

/** A re-INVITE that holds the call. */
const hold = (peer: Agent): MessageParts => ({ body: held(peer).replace(' 1 1 IN', ' 1 2 IN') })

const live = (pairs: readonly Pair[]): number =>
  pairs.flatMap(({ near, far }) => [near, far]).filter(call => call.state !== 'ended').length

/** Waits until the rows, slots, dialogs and media of all calls have ended. */
async function allEnded(t: Test, w: World, reason: string | null): Promise<void> {
  const { db } = w.state
  const cdrs = await until('a CDR each', async () => {
    const rows = await db.selectFrom('cdr').selectAll().orderBy('call_sid').execute()
    return rows.length === (await db.selectFrom('call').select('sid').execute()).length && rows
  })
  const last = cdrs.filter(row => row.reason === reason)
  t.ok(last.length >= CALLS, `${last.length} CDRs say ${reason}`)
  t.ok(last.every(row => row.status === 'completed'))
  t.same(await db.selectFrom('call').select('sid').where('ended_at', 'is', null).execute(), [])
  t.same(await db.selectFrom('lease').select('call_sid').where('ended_at', 'is', null).execute(), [])
  await w.untilNone('live_calls', 'dialogs', 'edge_dialogs', 'media_legs', 'media_ports_in_use')
}

t.test('many calls of two legs', async t => {
  // A port is not reused for 30 s after a call. This range is large enough for all calls of the test.
  const { first, last } = await freeBlock(20 * CALLS)
  const w = await world(t, {
    STROWGER_SANDBOX: 'off',
    STROWGER_DEAD_CALL_SECONDS: '10',
    STROWGER_RTP_PORTS: `${first}-${last}`,
  })
  const peer = await openAgent(t, { ip: '127.0.0.61' })
  const target = await openAgent(t, { ip: '127.0.0.62' })
  const trunk_id = await w.addTrunk(peer.ip, {
    targets: [{ sip_uri: `sip:${target.ip}:${target.port}`, transport: 'udp', priority: 1, weight: 1 }],
    limits: { concurrency: 2 * CALLS, cps: 10 * CALLS, max_call_duration_seconds: 3600 },
  })
  const ready = () =>
    until('the platform is ready', async () => (await fetch(`${w.base_url}/readyz`).catch(() => null))?.ok)

  for (const victim of ['media', 'signaling'] as const satisfies ProcessName[])
    t.test(`kill -9 of ${victim}: both sides of every call are told, and as many new ones fit in`, async t => {
      await ready()
      const pairs = await connect(w, peer, target)
      t.equal(live(pairs), 2 * CALLS)
      await w.kill(victim)
      await until('everybody is told', () => live(pairs) === 0)
      await allEnded(t, w, 'node_lost')
      await ready()
    })

  t.test('a call without media ends, unless it is on hold', async t => {
    const calls = [await invite(w, peer), await invite(w, peer)] as const
    const [dead, waiting] = calls.map(({ call }, index) => ({ near: call, far: target.invites.at(index - 2)?.call }))
    t.equal((await waiting?.near.send('INVITE', hold(peer)))?.status, 200)
    await until('both sides of the dead call are told', () =>
      [dead?.near, dead?.far].every(call => call?.state === 'ended'),
    )
    const cdr = await until('its CDR', () =>
      w.state.db.selectFrom('cdr').selectAll().where('reason', '=', 'media_timeout').executeTakeFirst(),
    )
    t.match(cdr, { status: 'completed', ended_by: 'platform' })
    t.equal(waiting?.near.state, 'answered', 'the held one goes on')
    waiting?.near.hangUp()
    await until('and ends when it is hung up', () => waiting?.far?.state === 'ended')
  })

  t.test('a call ends at its trunk’s maximum duration, with BYE to both sides', async t => {
    await w.state.transaction(async trx => {
      await trx.updateTable('trunk').set({ max_call_duration_seconds: 2 }).where('id', '=', trunk_id).execute()
    })
    const { call } = await invite(w, peer)
    const far = target.invites.at(-1)?.call
    await until('both are hung up', () => call.state === 'ended' && far?.state === 'ended')
    const cdr = await until('its CDR', () =>
      w.state.db.selectFrom('cdr').selectAll().where('reason', '=', 'max_duration').executeTakeFirst(),
    )
    t.match(cdr, { status: 'completed' })
    t.ok(cdr.duration_seconds >= 2, `${cdr.duration_seconds} s`)
    await w.state.db.updateTable('trunk').set({ max_call_duration_seconds: 3600 }).where('id', '=', trunk_id).execute()
  })

  t.test('a call continues after all of its processes stall for five seconds', async t => {
    const pairs = await connect(w, peer, target)
    const pids = (['signaling', 'media', 'edge'] as const).map(name => w.pid(name))
    for (const pid of pids) process.kill(pid, 'SIGSTOP')
    await pause(5000)
    for (const pid of pids) process.kill(pid, 'SIGCONT')
    const answers = await Promise.all(pairs.map(({ near }) => near.send('OPTIONS')))
    t.ok(answers.every(answer => answer?.status === 200))
    t.equal(live(pairs), 2 * CALLS)
    for (const { near } of pairs) near.hangUp()
    await until('the other sides are hung up', () => live(pairs) === 0)
    await allEnded(t, w, null)
  })
})
