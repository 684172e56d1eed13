import pino from 'pino'
import { projectRow, targetRow, trunkRow } from '../../bench/admission/rows.ts'
import { readBody } from '../../core/domain/sip/body.ts'
import { readConfiguration } from '../../core/state/configuration/snapshot.ts'
import { insertApplication } from '../../core/state/configuration/voice-applications.ts'
import type { DialChild } from '../../markup/interpreter/types.ts'
import type { AdmissionContext } from '../../signaling/admission/context.ts'
import { decideInvite } from '../../signaling/admission/decide-invite.ts'
import type { CallingPeer } from '../../signaling/admission/peer.ts'
import { placeChild } from '../../signaling/admission/place.ts'
import { planOf } from '../../signaling/admission/plan.ts'
import { readRequest } from '../../signaling/admission/read-request.ts'
import { InviteRefused } from '../../signaling/admission/refuse.ts'
import { placeTransferred } from '../../signaling/admission/transfer-target.ts'
import type { Call } from '../../signaling/b2bua/call.ts'
import type { HuntHop } from '../../signaling/b2bua/hunt.ts'
import { OutboundCall } from '../../signaling/b2bua/outbound-call.ts'
import { readReferTo } from '../../signaling/b2bua/refer-to.ts'
import { CallRegistry } from '../../signaling/b2bua/registry.ts'
import type { ScriptedCall } from '../../signaling/b2bua/scripted-call.ts'
import type { SecondRoute } from '../../signaling/b2bua/second-route.ts'
import type { TransferRequest } from '../../signaling/b2bua/transfer-placing.ts'
import type { InboundInvite } from '../../signaling/drachtio/types.ts'
import { compileSnapshot, EMPTY_SNAPSHOT } from '../../signaling/trunks/snapshot.ts'
import { type AdmissionWorld, NOW_MS } from './admission-world.ts'

/**
 * The admission of a node, with real rows, decisions and routes. A call that it places is kept in place of being sent:
 * its row, and its INVITEs as hops.
 */

interface Placed {
  readonly row: ScriptedCall['row_now']
  readonly hops: readonly HuntHop[]
  readonly second: SecondRoute | null
}

/** The call of a document, or the one whose leg asks for a transfer. */
type Parent = Pick<Placed, 'row'>

export async function admissionNode(w: AdmissionWorld) {
  const { snapshot } = compileSnapshot(await readConfiguration(w.state), EMPTY_SNAPSHOT)
  const timer = () => ({ cancel: () => undefined })
  const clock = { now: () => NOW_MS, monotonic_ms: () => 0, after: timer, every: timer }
  const stamped = (asks: readonly object[]) => ({
    requests: asks.map(ask => ({ ...ask, node_id: 'node_1', now_ms: NOW_MS })),
    now_ms: NOW_MS,
  })
  const ctx = {
    ...{ node_id: 'node_1', config: { domain: 'strowger.test' }, clock, log: pino({ level: 'silent' }) },
    ...{ state: w.state, snapshot: () => snapshot, draining: () => false, calls: new CallRegistry() },
    ...{ media: { connected: true }, bus: { ring: () => undefined }, metrics: { refusals: { inc: () => undefined } } },
    gate: { stamped, decide: (transaction: () => Promise<unknown>) => transaction() },
    health: { address: () => null, degraded: () => false },
    shares: { next: () => () => 0 },
    registrar: {
      contacts: () => [],
      clientContacts: (_project_id: string, client: string) => [
        { uri: `sip:${client}@127.0.0.9`, proxy: null, proven_host: null, transport: 'udp' },
      ],
    },
    // A signature is the attestation alone.
    stir: { verify: async () => null, identity: ({ attest }: { readonly attest: string }) => attest },
  } as unknown as AdmissionContext
  const session = { hold: () => undefined }
  /** Keeps a call in place of beginning it. */
  const keep =
    (placed: Placed[]) =>
    (call: Call): void => {
      const begin = (hops: readonly HuntHop[] = [], options: { readonly second?: SecondRoute | null } = {}) => {
        const second = options.second ?? null
        placed.push({ row: call.row_now, hops: call instanceof OutboundCall ? hops : [], second })
      }
      Object.assign(call, { begin })
    }
  const scripted = ({ row }: Parent) =>
    ({
      ...{ sid: row.sid, project_id: row.project_id, row_now: row, session, divertsBecause: 'unconditional' },
    }) as unknown as ScriptedCall
  const only = (placed: readonly Placed[]): Placed => {
    const [one] = placed
    if (!one || placed.length > 1) throw new Error(`${placed.length} calls were placed`)
    return one
  }

  return {
    snapshot,
    trunk: (id: string): CallingPeer => {
      const trunk = snapshot.trunks.get(id)
      if (!trunk) throw new Error(`no trunk ${id}`)
      return { kind: 'trunk', trunk }
    },
    carrier: (changes: object = {}): CallingPeer =>
      ({ kind: 'carrier', carrier: { id: 'car_1', enabled: true, registration: null, ...changes } }) as CallingPeer,
    client: (project_id: string, caller: string): CallingPeer => ({
      kind: 'client',
      project_id,
      client: 'ada',
      caller,
    }),

    /** An INVITE of a peer; the reason when it is refused. */
    async invite(peer: CallingPeer, to: string, headers: Readonly<Record<string, string>> = {}) {
      const invite = inviteOf(to, headers)
      const request = readRequest(ctx, invite, peer)
      if (request instanceof InviteRefused) return reasonOf(request)
      const admitted = await decideInvite(ctx, invite, request)
      if (admitted instanceof InviteRefused) return reasonOf(admitted)
      const { row, decided, asked, destination, asks, foreign } = admitted
      const plan = planOf(ctx, row.sid, invite, asked, destination, decided, foreign, asks)
      return { row, ...(plan.kind === 'bridge' ? plan : { hops: [], second: null }) }
    },

    /** A Dial in the document of a call. */
    async dial(parent: Parent, target: DialChild['target'], changes: Partial<DialChild> = {}) {
      const placed: Placed[] = []
      const command: DialChild = {
        ...{ type: 'dial_child', child: 'one', target, caller_id: parent.row.from_number },
        ...{ caller_id_source: 'parent', status_callback: null, machine_detection: null, ...changes },
      }
      const options = { command, prefer: {}, created: keep(placed), watcher: {} }
      const refused = await placeChild(ctx, scripted(parent), options as unknown as Parameters<typeof placeChild>[2])
      return refused ? refused.refused : only(placed)
    },

    /** A REFER of a trunk's peer in a call; the reason when it is refused. */
    async refer(trunk_id: string, parent: Parent, refer_to: string) {
      const placed: Placed[] = []
      const reading = readReferTo(refer_to, snapshot.trunks.get(trunk_id)?.country)
      if ('refused' in reading) throw new Error(`refused with ${reading.refused}`)
      const leg = { session }
      const party = { call: scripted(parent), leg }
      const asked = {
        ...{ target: reading.target, trunk_id, transferor: party, transferee: party },
        ...{ created: keep(placed), watcher: {} },
      } as unknown as TransferRequest
      const answer = await placeTransferred(ctx, asked)
      return answer.kind === 'refused' ? answer.reason : only(placed)
    },
  }
}

function inviteOf(to: string, headers: Readonly<Record<string, string>>): InboundInvite {
  const all: Readonly<Record<string, string>> = {
    to: `<sip:${to}@strowger.test>`,
    ...Object.fromEntries(Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value])),
  }
  return {
    ...{ method: 'INVITE', uri: `sip:${to}@strowger.test`, call_id: 'c', headers, body: '' },
    header: (name: string) => all[name.toLowerCase()] ?? null,
    content: () => readBody('', { type: null, disposition: null, encoding: null }),
    source: { address: '192.0.2.1', port: 5060, transport: 'udp' },
  } as unknown as InboundInvite
}

const reasonOf = ({ why }: InviteRefused): string => (why.kind === 'reason' ? why.reason : why.kind)

/** The call, which was not refused. */
export function placed<T>(found: T): Extract<T, Parent> {
  if (typeof found === 'object' && found !== null && 'row' in found) return found as Extract<T, Parent>
  throw new Error(`no call: ${JSON.stringify(found)}`)
}

/** Adds a trunk at 127.0.0.`host`; a `country` is that of its numbers. */
export async function addTrunk(
  { state: { db } }: AdmissionWorld,
  given: { readonly id: string; readonly project_id: string; readonly host: number | null; readonly country?: string },
): Promise<void> {
  const { id, project_id, host, country } = given
  const ceilings = { concurrency: 100, cps: 100, signaling_fqdn: `${id}.sip.localhost` }
  await db
    .insertInto('trunk')
    .values(trunkRow({ id, project_id, name: id, ...ceilings }))
    .execute()
  if (host !== null)
    await db
      .insertInto('termination_target')
      .values(targetRow({ id: `tgt_${id}`, trunk_id: id, sip_uri: `sip:127.0.0.${host}` }))
      .execute()
  if (country !== undefined)
    await db.insertInto('trunk_setting').values({ trunk_id: id, country, default_caller: null }).execute()
}

/** Adds another project, of another customer as far as calls go. */
export const addProject = ({ state: { db } }: AdmissionWorld, id: string) =>
  db
    .insertInto('project')
    .values(projectRow({ id, organization_id: 'org_1', name: id, billing_account_id: 'bil_1' }))
    .execute()

export const addApplication = ({ state }: AdmissionWorld, id: string, project_id: string): Promise<void> => {
  const at = new Date(NOW_MS).toISOString()
  const row = {
    ...{ id, project_id, name: id, voice_url: 'http://customer.example/', voice_method: 'POST' as const },
    ...{ fallback_url: null, fallback_method: 'POST' as const, stt: null, tts: null, revision: 1, deleted_at: null },
    ...{ status_callback_url: null, status_callback_method: 'POST' as const, created_at: at, updated_at: at },
  }
  return state.transaction(trx => insertApplication(trx, row))
}
