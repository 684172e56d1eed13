import type { Db } from '../../core/state/db.ts'
import type { SipMessage } from '../../signaling/edge/sip/message.ts'
import type { UserAgentCall } from '../../signaling/edge/useragent/call.ts'
import type { UserAgent } from '../../signaling/edge/useragent/user-agent.ts'
import type { Line } from './softphone.ts'
import { PATIENCE_MS, until } from './wait.ts'
import type { World } from './world.ts'

// A platform that is too busy to decide refuses a call within 2 s, by a 503 that names the time of the next attempt
// (RFC 3261 §21.5.4). A peer fails over then. A test has no other node, so it calls again at that time.

/** Returns after how long to call again, in ms, when the platform was too busy to decide; else null. */
export function busyFor(status: number, reason: string, retry_after: string): number | null {
  if (status !== 503 || !reason.includes('"state_unavailable"')) return null
  return Number(/\d+/.exec(retry_after)?.[0] ?? 1) * 1000
}

/** Like `busyFor`, for a final response; undefined when none came. */
export const againAfter = (response: SipMessage | undefined): number | null =>
  busyFor(response?.status ?? 0, response?.get('reason') ?? '', response?.get('retry-after') ?? '')

/**
 * Calls, and calls again while the platform is too busy to decide. Returns the first call; `again` gets each later one,
 * and `events.failed` the response that stands.
 */
export function callUntilDecided(
  ua: UserAgent,
  uri: string,
  options: NonNullable<Parameters<UserAgent['call']>[1]>,
  again: (call: UserAgentCall) => void,
): UserAgentCall {
  const deadline_ms = performance.now() + PATIENCE_MS
  const { events = {} } = options
  const failed = (response: SipMessage | undefined): void => {
    const again_ms = againAfter(response)
    if (again_ms === null || performance.now() > deadline_ms) events.failed?.(response)
    else setTimeout(() => again(place()), again_ms)
  }
  const place = (): UserAgentCall => ua.call(uri, { ...options, events: { ...events, failed } })
  return place()
}

/**
 * Reports whether the platform decided the call of a row. A call that the platform admits after it has refused its
 * caller has a row too: the platform ends it, and the caller has called again.
 */
export const wasDecided = ({ reason }: { readonly reason: string | null }): boolean => reason !== 'state_unavailable'

/** Waits for the row of a line's call. The line has another Call-ID once it calls again. */
export const sidOf = (db: Db, line: Pick<Line, 'call'>): Promise<string> =>
  until('the row of the call', async () => {
    const rows = await db
      .selectFrom('call')
      .select(['sid', 'reason'])
      .where('sip_call_id', '=', line.call?.call_id ?? '')
      .execute()
    return rows.find(wasDecided)?.sid
  })

/** Returns the CDRs of a project's calls that the platform decided. */
export const decidedCdrs = async ({ state, project_id }: Pick<World, 'state' | 'project_id'>) =>
  (await state.db.selectFrom('cdr').selectAll().where('project_id', '=', project_id).execute()).filter(wasDecided)
