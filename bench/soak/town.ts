import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { openState, type State } from '../../core/state/index.ts'
import { type LoadResult, runSipp } from '../edge/world.ts'
import { addTrunk, CALLED, PEER_IP, priceAll } from '../platform/platform.ts'
import { freePort, type Made, startUp } from '../up.ts'
import { openTalks, type Talks } from './talks.ts'

// A platform and its surroundings: a trunk's peer and target with sound, SIPp for short calls, a client that creates
// calls through the API, and the web server that receives their callbacks.

/** Each call has two pairs, and a port is quarantined for half a minute. The load generator uses lower ports. */
const STROWGER_RTP_PORTS = '16000-31999'
const SCRIPT = '<Response><Say>Soak.</Say><Record maxLength="2" playBeep="false"/></Response>'
const API_CALLED = '+2348030004712'

export interface Town {
  readonly folder: string
  readonly made: Made
  readonly state: State
  readonly talks: Talks
  /** Runs short calls, which their callers hang up. */
  short(rate: number, calls: number, hold_ms: number): Promise<LoadResult>
  /** Creates a call through the API that speaks and records. Returns its sid after a 201, otherwise null. */
  create(): Promise<string | null>
  /** Sids of calls whose end the web server has received. */
  readonly told: ReadonlySet<string>
  stop(): Promise<void>
}

export async function startTown(): Promise<Town> {
  const told = new Set<string>()
  const web = createServer(async (request, response) => {
    let body = ''
    for await (const chunk of request) body += chunk
    const fields = new URLSearchParams(body)
    if (fields.get('CallStatus') !== null) told.add(fields.get('CallSid') ?? '')
    response.writeHead(204).end()
  })
  await new Promise<void>(resolve => web.listen(0, '127.0.0.1', resolve))
  const StatusCallback = `http://127.0.0.1:${(web.address() as AddressInfo).port}/status`
  const target_port = await freePort()
  const { folder, sip_port, made, stop } = await startUp('soak', { STROWGER_RTP_PORTS })
  const state = await openState({ data_dir: folder })
  const trunk_id = await addTrunk(made, target_port)
  await routeToTrunk(state, made.numbers[1] ?? '', trunk_id)
  await priceAll(state, trunk_id, made.numbers[0] ?? '')
  const talks = await openTalks({ folder, sip_port, target_port })
  const authorization = `Basic ${Buffer.from(`${made.account_sid}:${made.auth_token}`).toString('base64')}`
  const calls_url = `${made.base_url}/2010-04-01/Accounts/${made.account_sid}/Calls.json`
  return {
    folder,
    made,
    state,
    talks,
    told,
    short: (rate, calls, hold_ms) =>
      runSipp({
        folder,
        port: sip_port,
        rate,
        calls,
        hold_ms,
        transport: 'udp',
        local_ip: PEER_IP,
        called: CALLED,
      }),
    async create() {
      const body = new URLSearchParams({
        From: made.numbers[1] ?? '',
        To: API_CALLED,
        InlineMarkup: SCRIPT,
        StatusCallback,
      })
      const signal = AbortSignal.timeout(5000)
      // A platform that has just been killed does not answer. It then promised nothing.
      const answer = await fetch(calls_url, { method: 'POST', headers: { authorization }, body, signal }).catch(
        () => null,
      )
      if (answer?.status !== 201) return null
      const created = (await answer.json().catch(() => null)) as { sid: string } | null
      return created?.sid ?? null
    },
    async stop() {
      talks.close()
      await state.close()
      await stop()
      web.close()
      web.closeAllConnections()
    },
  }
}

/** Routes the API calls of this number through the trunk. */
const routeToTrunk = (state: State, e164: string, route_id: string) =>
  state.db.updateTable('number').set({ route_kind: 'trunk', route_id }).where('e164', '=', e164).execute()
