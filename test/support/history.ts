import { seeded } from '../../bench/random.ts'
import { ending } from '../../core/domain/calls/endings.ts'
import type { Schema, State } from '../../core/state/index.ts'
import { callProcedure } from '../../core/state/port.ts'
import type { In, ProcedureName } from '../../core/state/procedures/table.ts'
import { type AdmissionWorld, NOW_MS } from './admission-world.ts'

/** A random history of a project: calls that are admitted, run and end, and ceilings that change meanwhile. */
interface History {
  readonly seed: number
  readonly steps: readonly Step[]
}

type Step =
  | { readonly procedure: ProcedureName; readonly input: unknown }
  | { readonly table: 'trunk' | 'outbound_policy' | 'subtrunk'; readonly id: string; readonly changes: object }

const STORE_MS = 5_000_000_000
const SUBTRUNK = 'stk_0'
const SHARED_NUMBER = '+2342010000002'
const POLICY = 'pol_1'

/** Gives a world what a history needs, from ids that are the same in each world. */
export async function prepareHistory(w: AdmissionWorld): Promise<void> {
  await w.subtrunk({ velocity_cap_minor: 90, daily_spend_cap_minor: 200 })
  await w.policy({ daily_spend_limit_minor: 400 })
  await w.rule(POLICY, 'deny', '1')
  await w.number(SHARED_NUMBER, { route_kind: 'subtrunk', route_id: SUBTRUNK })
  await w.prepaid(500)
  const at = new Date(NOW_MS).toISOString()
  await w.state.db
    .insertInto('webhook_endpoint')
    .values({
      ...{ id: 'whe_1', project_id: w.project_id, url: 'http://customer.example/', enabled: 1, revision: 1 },
      ...{ event_kinds: '["call.ended"]', secret_sealed: '', created_at: at, updated_at: at },
    })
    .execute()
}

export function randomHistory(w: AdmissionWorld, seed: number, length: number): History {
  const random = seeded(seed)
  const pick = <T>(...of: readonly T[]): T => of[Math.floor(random() * of.length)] as T
  let [elapsed_ms, next] = [0, 0]
  const running: string[] = []
  const admit = (): Step => {
    const sid = `CA_${seed}_${next++}`
    running.push(sid)
    const own = pick('+2342010000001', SHARED_NUMBER)
    const to = pick('+2348031234567', '+2348031234567', '+2348131234568', '+12025550123', '112', 'nobody', own)
    const inbound = random() < 0.2
    const request = w.request({
      ...{ call_sid: sid, caller: inbound ? '+2348031234567' : own, called: inbound ? own : to },
      ...{ part: inbound ? ('inbound' as const) : ('outbound' as const), now_ms: NOW_MS + elapsed_ms },
      store_ms: STORE_MS + elapsed_ms,
    })
    const call = {
      ...{ sid, project_id: w.project_id, account_sid: 'AC1', origin: 'trunk' as const, trunk_id: w.trunk_id },
      ...{ direction: inbound ? ('inbound' as const) : ('outbound-api' as const), status: 'queued' as const },
      ...{ from_number: request.caller, to_number: request.called, queued_at: iso(NOW_MS + elapsed_ms) },
      request: JSON.stringify({
        status_callback: 'http://customer.example/status',
        status_callback_events: ['initiated', 'answered', 'completed'],
      }),
    }
    return stepOf('admit_call', { call, requests: [request], verstat: null, now_ms: NOW_MS + elapsed_ms })
  }
  const end = (sid: string): Step => {
    const at_ms = NOW_MS + elapsed_ms
    const answered = random() < 0.7
    return stepOf('write_call', {
      sid,
      steps: [
        { step: 'initiated', at_ms, changes: {} },
        ...(answered ? ([{ step: 'answered', at_ms }] as const) : []),
        {
          step: 'end',
          facts: {
            ending: ending({ cause: pick('caller_hung_up', 'called_hung_up'), answered }),
            ended_ms: at_ms + Math.floor(random() * 90_000),
            ...{ pdd_ms: 700, media: null },
          },
        },
      ],
    })
  }
  const steps = Array.from({ length }, (): Step => {
    elapsed_ms += Math.floor(random() * 900)
    const sid = pick(...running)
    const kind = random()
    if (sid === undefined || kind < 0.45) return admit()
    if (kind < 0.65) return end(sid)
    if (kind < 0.75)
      return stepOf('extend_reservation', {
        ...{ call_sid: sid, elapsed_seconds: pick(9, 20, 40), ahead_seconds: pick(5, 15, 60) },
        store_ms: STORE_MS + elapsed_ms,
      })
    if (kind < 0.82) {
      const now_ms = NOW_MS + elapsed_ms
      return stepOf('release_admission', { call_sid: sid, answered: random() < 0.5, duration_seconds: 25, now_ms })
    }
    if (kind < 0.85)
      return stepOf('take_admission', {
        request: w.request({ call_sid: sid, now_ms: NOW_MS + elapsed_ms, store_ms: STORE_MS + elapsed_ms }),
        dry_run: true,
      })
    const concurrency = pick(1, 2, 3, 100)
    if (kind < 0.9) return { table: 'trunk', id: w.trunk_id, changes: { concurrency, cps: pick(1, 2, 100) } }
    if (kind < 0.95)
      return { table: 'outbound_policy', id: POLICY, changes: { concurrency, daily_spend_limit_minor: pick(60, 400) } }
    return { table: 'subtrunk', id: SUBTRUNK, changes: { concurrency, velocity_cap_minor: pick(20, 90, null) } }
  })
  return { seed, steps }
}

const stepOf = <Name extends ProcedureName>(procedure: Name, input: In<Name>): Step => ({ procedure, input })
const iso = (ms: number): string => new Date(ms).toISOString()

/** Procedures that are asked for at once. A store runs them in the order in which they were asked for. */
const MOST_AT_ONCE = 4

/** Runs a history and returns the result of each step. */
export async function live({ db }: State, { steps }: History): Promise<string[]> {
  const results: string[] = []
  const asked: Promise<string>[] = []
  const answered = async () => results.push(...(await Promise.all(asked.splice(0))))
  for (const step of steps)
    if ('procedure' in step) {
      const result = callProcedure(db, step.procedure, step.input as never)
      asked.push(result.then(value => `${step.procedure} ${JSON.stringify(value)}`))
      if (asked.length === MOST_AT_ONCE) await answered()
    } else {
      await answered()
      await db.updateTable(step.table).set(step.changes).where('id', '=', step.id).execute()
      results.push(`${step.table} ${JSON.stringify(step.changes)}`)
    }
  await answered()
  return ranked(results)
}

/** Tables that the procedures write. */
const WRITTEN = [
  ...(['level_use', 'spend_day', 'spend_minute', 'billing_account', 'lease', 'reservation', 'ledger', 'call'] as const),
  ...(['cdr', 'call_step', 'call_step_failure', 'refusal_day', 'outbox', 'webhook_delivery'] as const),
] satisfies readonly (keyof Schema)[]

/** A turn that was lost has used positions: only their order is the same in each state. */
function ranked(lines: readonly string[]): string[] {
  const position = /("position",?:?)(\d+)/g
  const found = new Set(lines.flatMap(line => [...line.matchAll(position)].map(([, , number]) => Number(number))))
  const ranks = new Map([...found].sort((one, other) => one - other).map((number, rank) => [number, rank]))
  return lines.map(line => line.replace(position, (_, name, number) => `${name}#${ranks.get(Number(number))}`))
}

/** Ids that a procedure draws: each state has its own. */
const DRAWN = /(evt_|whd_)?[0-9a-f]{8}-[0-9a-f-]{27}/g

/** Returns all rows that a history has written, with the columns in order and without drawn ids. */
export async function written({ db }: State): Promise<Record<string, string[]>> {
  const rows: Record<string, string[]> = {}
  for (const table of WRITTEN)
    rows[table] = ranked(
      (await db.selectFrom(table).selectAll().execute())
        .map(row => JSON.stringify(Object.entries(row).sort(([one], [other]) => (one < other ? -1 : 1))))
        .map(row => row.replace(DRAWN, 'drawn')),
    ).sort()
  return rows
}
