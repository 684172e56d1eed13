import { addTrunk, untilBye } from '../b2bua-world.ts'
import type { Test } from '../harness/index.ts'
import { audioSdp } from '../sip-steps.ts'
import { callee, signals, sipp } from '../sipp.ts'
import { until } from '../wait.ts'
import type { World } from '../world.ts'

/**
 * Stories of what a B2BUA must do between two legs (issue "Edge", item 7). In each, a scripted peer of a trunk calls
 * and a scripted target of the same trunk is called. No message to either side may contain an address of the other;
 * `play` checks that in every story.
 */

type StoryTransport = 'udp' | 'tcp'

export interface Story {
  readonly title: string
  readonly peer: readonly string[]
  readonly target?: readonly string[]
  /** The only transport of this story; without it, the story runs over both. */
  readonly only?: StoryTransport
  /** Fields of the call's row after its end. */
  readonly row?: Readonly<Record<string, unknown>>
  /** What the message trace of a side must contain, or must not. */
  readonly atPeer?: RegExp
  readonly notAtPeer?: RegExp
  readonly atTarget?: RegExp
  readonly notAtTarget?: RegExp
  /** Calls that the target sees; default 1. */
  readonly calls?: number
}

export const sdpOf = (port: number, version = 1): string => audioSdp({ version }).replace('[rtp_port]', String(port))

const withBody = (step: string, text: string): string =>
  step.replace('Content-Length: 0\n', `Content-Type: application/sdp\nContent-Length: [len]\n\n${text}`)
const tagged = (step: string, tag: string): string =>
  step.replace(';tag=[pid]callee[call_number]', `;tag=[pid]${tag}[call_number]`)

/** A provisional response with SDP from the fork with this tag. */
export const provisionalOf = (tag: string, status: number, text: string, headers = ''): string =>
  tagged(withBody(callee.respond(status, 'Progress', headers === '' ? {} : { headers }), text), tag)
export const finalOf = (tag: string, text: string): string => tagged(withBody(callee.respond(200, 'OK'), text), tag)

let scenes = 0

/** Plays a story. Each story has its own addresses for peer and target, so that many can run concurrently. */
export async function play(t: Test, w: World, story: Story, transport: StoryTransport): Promise<void> {
  const n = ++scenes
  const [peer_ip, target_ip] = [`127.0.1.${n}`, `127.0.2.${n}`]
  const between = signals(t)
  const target = await sipp(t, {
    steps: story.target ?? untilBye,
    local_ip: target_ip,
    ...(story.calls === undefined ? {} : { calls: story.calls }),
    transport,
    signals: between,
  })
  const trunk_id = await addTrunk(
    w,
    [{ sip_uri: `sip:${target_ip}:${target.port}`, transport, priority: 1, weight: 1 }],
    { sources: [`${peer_ip}/32`] },
  )
  const peer = await sipp(t, {
    steps: story.peer,
    to: w.sip,
    service: '+2348030004711',
    local_ip: peer_ip,
    keys: { from: w.numbers[1] ?? '' },
    transport,
    signals: between,
  })
  const peerDone = peer.done.then(ended => {
    // Our OPTIONS keep a target waiting for a call that will not come.
    if (!ended.ok) target.stop()
    return ended
  })
  const [near, far] = await Promise.all([peerDone, target.done])
  for (const [name, { ok, errors, messages }] of Object.entries({ peer: near, target: far }))
    t.ok(ok, `the ${name}: ${ok ? '' : `${errors.slice(0, 1500)}\n${messages.slice(-6000)}`}`)
  t.notOk(near.messages.includes('127.0.2.'), 'the peer sees nothing of the target')
  t.notOk(far.messages.includes('127.0.1.'), 'the target sees nothing of the peer')
  if (story.atPeer) t.match(near.messages, story.atPeer)
  if (story.notAtPeer) t.notMatch(near.messages, story.notAtPeer)
  if (story.atTarget) t.match(far.messages, story.atTarget)
  if (story.notAtTarget) t.notMatch(far.messages, story.notAtTarget)
  // The newest one: a peer calls again while the platform is too busy to decide, and that call has a row, too.
  const row = await until('the call has ended', async () => {
    const calls = w.state.db.selectFrom('call').selectAll().where('trunk_id', '=', trunk_id)
    const newest = await calls.orderBy('position', 'desc').executeTakeFirst()
    return newest?.ended_at ? newest : undefined
  })
  if (story.row) t.match(row, story.row)
  const attempts = await w.state.db
    .selectFrom('call_attempt')
    .select('target')
    .where('call_sid', '=', row.sid)
    .execute()
  t.equal(attempts.length, 1, 'the target is called once')
}
