import { validateRequest } from 'twilio/lib/webhooks/webhooks.js'
import { type Open, openOf, stillOpen } from '../../bench/descriptors.ts'
import { unseal } from '../../core/runtime/secrets.ts'
import type { State } from '../../core/state/index.ts'
import { brokenInvariants } from '../../core/state/maintenance/invariants.ts'
import { PATIENCE_MS, SCRAPE_AGAIN_MS, until } from './wait.ts'
import { type WebRequest, webRequests } from './web.ts'

/** Metrics that count resources of live calls. Without a call each must be 0. */
const OF_CALLS = [
  ...['media_sessions', 'media_legs', 'media_ports_in_use', 'media_recordings', 'media_listeners'],
  ...['live_calls', 'dialogs', 'calls_waiting', 'conferences', 'queued_callers', 'sandbox_calls'],
  ...['edge_dialogs', 'edge_connections'],
]

/** Timers of a transaction: its retransmission and its end (RFC 3261 §17), and its user's wait for an answer. */
const TIMERS_EACH = 3

/** Longer than a transaction lives (RFC 3261 §17: 32 s), on a machine that is busy too. */
const ON_ITS_WAY_MS = PATIENCE_MS

/**
 * Throws unless all invariants hold at the end of a story: those of the rows, valid signatures on requests to
 * customers' web servers, and, when no call is up, no resources of calls.
 */
export async function assertInvariants(w: {
  readonly state: State
  readonly master_key: Buffer
  /** Reports whether the platform still runs; a test may have stopped it. */
  readonly runs: () => boolean
  readonly metrics: () => Promise<(name: string) => number>
  readonly data_dir: string
  /** What the processes had open before their first request. */
  readonly rest: Open
}): Promise<void> {
  let broken: string[] = []
  const holds = async (): Promise<boolean> => {
    broken = await brokenInvariants(w.state.db)
    const calls = await w.state.db.selectFrom('call').select('sid').where('ended_at', 'is', null).execute()
    if (w.runs() && calls.length === 0) {
      const left = (value: (name: string) => number): string[] => {
        const ports = value('media_ports_in_use') + value('media_ports_quarantined')
        return [...leftOver(value), ...stillOpen(w.rest, openOf(w.data_dir), ports)]
      }
      broken.push(...(await w.metrics().then(left, notTold)))
    }
    return broken.length === 0
  }
  // Calls that have just ended still release their resources.
  await until('the invariants hold', holds, ON_ITS_WAY_MS, SCRAPE_AGAIN_MS).catch(error => {
    throw broken.length === 0 ? error : new Error(broken.join('; '))
  })
  const foreign = await wronglySigned(w.state, w.master_key)
  if (foreign.length > 0) throw new Error(`not signed with its own project’s secret: ${foreign.join(', ')}`)
}

function leftOver(value: (name: string) => number): string[] {
  const transactions = value('edge_client_transactions') + value('edge_server_transactions')
  const timers = value('edge_timers')
  return [
    ...OF_CALLS.filter(name => value(name) > 0).map(name => `${value(name)} ${name} without a call`),
    ...(timers > TIMERS_EACH * transactions ? [`${timers} timers of ${transactions} transactions`] : []),
  ]
}
const notTold = (error: Error): string[] => [`/metrics does not answer: ${error.message}`]

/** Returns the URLs of requests that the account they name did not sign. */
async function wronglySigned({ db }: State, master_key: Buffer): Promise<string[]> {
  const rows = await db.selectFrom('voice_account').select(['account_sid', 'auth_token_sealed']).execute()
  const tokens = new Map(rows.map(row => [row.account_sid, unseal(master_key, row.auth_token_sealed)]))
  return webRequests.filter(request => !signedByItsAccount(request, tokens)).map(({ url }) => url)
}

function signedByItsAccount(request: WebRequest, tokens: ReadonlyMap<string, string>): boolean {
  const account = request.fields.get('AccountSid')
  const signature = request.headers['x-twilio-signature']
  if (account === null || signature === undefined) return true
  const token = tokens.get(account)
  // The account belongs to another platform of the same test file.
  if (token === undefined) return true
  const form = request.headers['content-type']?.includes('urlencoded')
    ? new URLSearchParams(request.body.toString())
    : []
  const fields: Record<string, string | string[]> = {}
  for (const [name, value] of form) {
    const so_far = fields[name]
    fields[name] = so_far === undefined ? value : [so_far, value].flat()
  }
  return validateRequest(token, String(signature), request.url, fields)
}
