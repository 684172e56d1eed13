import type { Test } from './harness/index.ts'
import { answerKeepingTo, endsWhenCued, inDialog, KEPT_TO, receiveInvite } from './sip-steps.ts'
import { callee, caller, cued, provisionals, receive, type Signals, type SippPeer, sipp } from './sipp.ts'
import { until } from './wait.ts'
import { trunkApplied, type World } from './world.ts'

/**
 * What the B2BUA stories share: a trunk's peer at 127.0.0.2 and the trunk's targets at 127.0.0.3, both SIPp.
 */

export const PEER = '127.0.0.2'
export const TARGET = '127.0.0.3'
export const WORLD = '+2348030004711'

export const answered = [...provisionals, receive.response(200, { dialog: true }), caller.ack]
export const hangUp = (cseq: number): string[] => [inDialog('BYE', cseq), receive.response(200)]
/** Steps of a caller that waits for the answer and hangs up when cued. */
export const hangsUpOnCue = [
  caller.invite(),
  ...provisionals,
  answerKeepingTo,
  caller.ack,
  cued,
  inDialog('BYE', 2, { to: KEPT_TO }),
  receive.response(200),
]
export const refusedWith = (status: number): string[] => [
  ...provisionals,
  receive.response(status),
  caller.ackOfFailure,
]

/** Steps of a target that answers. */
export const answers = [
  receive.request('INVITE'),
  callee.respond(180, 'Ringing'),
  callee.respond(200, 'OK', { sdp: true }),
  receive.request('ACK'),
]
/** Steps of a target that answers and, unless it gets a BYE first, hangs up when cued. */
export const answersUntilCued = [receiveInvite, ...answers.slice(1), ...endsWhenCued]
export const untilBye = [...answers, receive.request('BYE'), callee.ok]

interface TargetRow {
  readonly sip_uri: string
  readonly transport: string
  readonly priority: number
  readonly weight: number
  readonly redirects?: 'off' | 'same_host' | 'listed'
}

export const targetOf = (peer: SippPeer, priority = 1, transport = 'udp'): TargetRow => ({
  sip_uri: `sip:${TARGET}:${peer.port}`,
  transport,
  priority,
  weight: 1,
})

let trunks = 0

/** Adds a trunk for one story. It removes the sources of earlier stories' trunks, so that no story uses another's. */
export async function trunkOf(
  w: World,
  targets: readonly TargetRow[],
  over: Record<string, unknown> = {},
): Promise<string> {
  await w.state.db.deleteFrom('trunk_source').where('cidr', '=', `${PEER}/32`).execute()
  return addTrunk(w, targets, over)
}

/** Adds a trunk and waits until it is applied and its targets have answered OPTIONS. */
export async function addTrunk(w: World, targets: readonly TargetRow[], over: Record<string, unknown> = {}) {
  const { status, body } = await w.manage(
    'POST',
    '/trunks',
    {
      name: `PBX ${++trunks}`,
      direction: 'both',
      auth_mode: 'ip_allow_list',
      sources: [`${PEER}/32`],
      codecs: ['PCMU', 'PCMA'],
      media_security: 'rtp',
      require_tls: false,
      source_validation: 'relaxed',
      targets,
      ...over,
    },
    { 'idempotency-key': `b2bua-${trunks}-${Math.random()}` },
  )
  if (status !== 201) throw new Error(`trunk refused: ${JSON.stringify(body)}`)
  const id: string = body.trunk.id
  await trunkApplied(w.manage, id)
  await healthy(w, id, targets.length)
  return id
}

/** Routes a number to a trunk. The change takes effect when the next trunk is applied. */
export const routeToTrunk = async (w: World, e164: string, trunk_id: string): Promise<void> => {
  await w.state.db
    .updateTable('number')
    .set({ route_kind: 'trunk', route_id: trunk_id })
    .where('e164', '=', e164)
    .execute()
}

/** Waits until each target has answered its first OPTIONS, so that the next request it gets is the INVITE. */
export const healthy = (w: World, trunk_id: string, count: number) =>
  until('the targets have answered OPTIONS', async () => {
    const rows = await w.state.db
      .selectFrom('target_evidence')
      .innerJoin('termination_target', 'termination_target.id', 'target_evidence.target_id')
      .select('state')
      .where('trunk_id', '=', trunk_id)
      .execute()
    return rows.filter(row => row.state === 'healthy').length === count
  })

/** Starts a target. */
export const waiting = (
  t: Test,
  steps: readonly string[],
  options: { rtp_port?: number; calls?: number; transport?: 'udp' | 'tcp'; local_ip?: string; signals?: Signals } = {},
) => {
  const { rtp_port, local_ip = TARGET, ...others } = options
  return sipp(t, { ...others, steps, local_ip, keys: rtp_port === undefined ? {} : { rtp_port } })
}

/** Starts a peer that calls and runs the given steps. */
export async function story(
  t: Test,
  w: World,
  steps: readonly string[],
  options: { service?: string; transport?: 'udp' | 'tcp' } = {},
): Promise<string> {
  const { ok, errors, messages } = await (await begin(t, w, steps, options)).done
  t.ok(ok, `${errors}\n${ok ? '' : messages}`)
  return messages
}

export function begin(
  t: Test,
  w: World,
  steps: readonly string[],
  options: { service?: string; transport?: 'udp' | 'tcp'; from?: string } = {},
): Promise<SippPeer> {
  const { service = WORLD, transport = 'udp', from = w.numbers[1] ?? '' } = options
  return sipp(t, { steps, to: w.sip, service, local_ip: PEER, keys: { from }, transport })
}

export const lastCall = async (w: World) =>
  w.state.db.selectFrom('call').selectAll().orderBy('position', 'desc').executeTakeFirstOrThrow()

export const endOf = (w: World, sid: string) =>
  until('the call has ended', () =>
    w.state.db
      .selectFrom('call')
      .selectAll()
      .where('sid', '=', sid)
      .where('ended_at', 'is not', null)
      .executeTakeFirst(),
  )

/** Returns the port of our media in the first answer with SDP that this peer received. */
export const mediaPort = (peer: SippPeer): Promise<number> =>
  until('an answer with SDP', () => {
    const answer = peer
      .messages()
      .split(/^-{5,}.*$/m)
      .find(text => /SIP\/2\.0 200/.test(text) && /m=audio/.test(text))
    return Number(/m=audio (\d+)/.exec(answer ?? '')?.[1]) || undefined
  })

/** Returns the port of our media in the INVITE that this target received. */
export const offeredPort = (peer: SippPeer): Promise<number> =>
  until('an INVITE with SDP', () => {
    const offer = peer
      .messages()
      .split(/^-{5,}.*$/m)
      .find(text => /^INVITE /m.test(text) && /m=audio/.test(text))
    return Number(/m=audio (\d+)/.exec(offer ?? '')?.[1]) || undefined
  })

/** Asserts that ended calls leave nothing: no open row, no dialog, no media leg, no slot. */
export async function nothingLeft(t: Test, w: World): Promise<void> {
  await w.untilNone('live_calls', 'dialogs', 'media_legs')
  t.same(await w.state.db.selectFrom('call').select('sid').where('ended_at', 'is', null).execute(), [])
  t.same(await w.state.db.selectFrom('lease').select('call_sid').where('ended_at', 'is', null).execute(), [])
}
