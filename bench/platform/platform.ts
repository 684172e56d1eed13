import { spawn } from 'node:child_process'
import { bumpConfiguration } from '../../core/state/configuration/bump.ts'
import { putTrunkSetting } from '../../core/state/configuration/settings.ts'
import { openState, type State } from '../../core/state/index.ts'
import { insertPriceBook } from '../../core/state/money/rates.ts'
import { type LoadResult, runSipp } from '../edge/world.ts'
import { freePort, type Made, startUp } from '../up.ts'

// The platform as users start it, with a trunk between two SIPp processes. Every call passes admission with all
// ceilings, has a price and four media ports, and leaves a CDR and a charge.

export const PEER_IP = '127.0.0.2'
export const TARGET_IP = '127.0.0.3'
/** The number that SIPp's short calls call. */
export const CALLED = '+2348030004711'
/**
 * Each call has two pairs, and a port is quarantined for half a minute. This range suffices for 500 calls per second.
 */
const RTP_PORTS = '2000-64999'

export interface Platform {
  readonly pids: Readonly<Record<string, number>>
  readonly base_url: string
  readonly folder: string
  readonly sip_port: number
  /** Runs a load and waits for its records. A call without a CDR, a price or an answer counts as failed. */
  calls(rate: number, calls: number, hold_ms: number): Promise<LoadResult>
  stop(): Promise<void>
}

export async function startPlatform(settings: Readonly<Record<string, string>> = {}): Promise<Platform> {
  const target_port = await freePort()
  const { folder, sip_port, pids, made, stop } = await startUp('platform', {
    STROWGER_RTP_PORTS: RTP_PORTS,
    // The sandbox would take one of those ports.
    STROWGER_SANDBOX: 'off',
    ...settings,
  })
  const state = await openState({ data_dir: folder })
  const trunk_id = await addTrunk(made, target_port)
  await priceAll(state, trunk_id, made.numbers[0] ?? '')
  // -aa answers our OPTIONS.
  const target = spawn('sipp', ['-sn', 'uas', '-i', TARGET_IP, '-p', String(target_port), '-aa', '-nostdin'], {
    cwd: folder,
    stdio: 'ignore',
  })
  return {
    pids,
    base_url: made.base_url,
    folder,
    sip_port,
    async calls(rate, calls, hold_ms) {
      const before = await recorded(state)
      const load = { folder, port: sip_port, rate, calls, hold_ms, transport: 'udp', local_ip: PEER_IP } as const
      const { failed, retransmissions } = await runSipp({ ...load, called: CALLED })
      const wanted = before + calls - failed
      for (let looks = 0; looks < 50 && (await recorded(state)) < wanted; looks++)
        await new Promise(resolve => setTimeout(resolve, 100))
      return { failed: failed + Math.max(0, wanted - (await recorded(state))), retransmissions }
    },
    async stop() {
      target.kill('SIGKILL')
      await state.close()
      await stop()
    },
  }
}

export async function addTrunk({ base_url, api_key }: Made, port: number): Promise<string> {
  const headers = { authorization: `Bearer ${api_key}`, 'content-type': 'application/json', 'idempotency-key': 'bench' }
  const trunk = {
    name: 'Bench',
    direction: 'both',
    auth_mode: 'ip_allow_list',
    sources: [`${PEER_IP}/32`],
    codecs: ['PCMU', 'PCMA'],
    media_security: 'rtp',
    require_tls: false,
    source_validation: 'relaxed',
    limits: { concurrency: 10_000, cps: 10_000, max_call_duration_seconds: 3600 },
    targets: [{ sip_uri: `sip:${TARGET_IP}:${port}`, transport: 'udp', priority: 10, weight: 100 }],
  }
  const created = await fetch(`${base_url}/v1/trunks`, { method: 'POST', headers, body: JSON.stringify(trunk) })
  const answer = (await created.json()) as { trunk?: { id: string } }
  if (!answer.trunk) throw new Error(`no trunk: ${JSON.stringify(answer)}`)
  const { id } = answer.trunk
  for (;;) {
    const got = await fetch(`${base_url}/v1/trunks/${id}`, { headers })
    const { apply } = (await got.json()) as { apply: { state: string } }
    if (apply.state === 'applied') return id
    await new Promise(resolve => setTimeout(resolve, 50))
  }
}

/** Prices all calls. Presents the trunk's own number, because SIPp's callers have none. */
export async function priceAll(state: State, trunk_id: string, default_caller: string): Promise<void> {
  const at = new Date(Date.now() - 60_000).toISOString()
  const book = { project_id: null, name: 'Bench', direction: 'outbound', currency: 'NGN' } as const
  const increments = { increment_initial_seconds: 10, increment_additional_seconds: 10 }
  await state.transaction(trx =>
    insertPriceBook(trx, { ...book, effective_from: at, created_at: at }, [
      { prefix: '234', label: 'Nigeria', rate_micro: 60_000_000, rate_unit: 'minute', ...increments },
    ]),
  )
  await state.transaction(async trx => {
    await putTrunkSetting(trx, { trunk_id, country: 'NG', default_caller })
    await trx.updateTable('project').set({ sandbox: 0 }).execute()
    await bumpConfiguration(trx)
  })
}

/** Returns the number of answered calls with a record and a charge. */
async function recorded(state: State): Promise<number> {
  const { n } = await state.db
    .selectFrom('cdr')
    .innerJoin('ledger', 'ledger.call_sid', 'cdr.call_sid')
    .select(eb => eb.fn.countAll<number>().as('n'))
    .where('cdr.status', '=', 'completed')
    .executeTakeFirstOrThrow()
  return Number(n)
}
