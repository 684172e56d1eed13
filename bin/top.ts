import { setTimeout as sleep } from 'node:timers/promises'
import { Command } from 'commander'
import { dayOf } from '../core/domain/rating/index.ts'
import { oneLine } from '../core/domain/text/visible.ts'
import { iso } from '../core/runtime/clock.ts'
import { StartRefused } from '../core/runtime/start-refused.ts'
import { figureSteps } from '../core/state/calls/call-steps.ts'
import { spentOn } from '../core/state/calls/counters.ts'
import { callsNow, newestLiveCalls, nodesSeen, stateOfNode } from '../core/state/calls/project-steps.ts'
import type { State } from '../core/state/index.ts'
import { backlog } from '../core/state/maintenance/backlog.ts'
import { ladderText } from './ladder.ts'
import { browse, hasScreen } from './screen/browse.ts'
import type { View } from './screen/browsing.ts'
import { withState } from './state.ts'
import { type Column, shortened, shortId, table } from './table.ts'
import { give, show, terminal } from './terminal.ts'

/** Printed calls, and calls of a screen that a person looks through. */
const [PRINTED_CALLS, SHOWN_CALLS] = [20, 500]

/** The current activity of all projects. Money is in minor units. */
interface Top {
  readonly at: string
  readonly live_calls: number
  /** Calls that began in the last second, and in the last minute. */
  readonly cps: number
  readonly calls_last_minute: number
  /** Answer ratio of the calls that ended within the last hour; null without any. */
  readonly asr_1h_pct: string | null
  readonly acd_1h_seconds: number | null
  readonly projects: readonly {
    readonly id: string
    readonly name: string
    readonly live_calls: number
    readonly spend_today_minor: number
    readonly currency: string
  }[]
  readonly alerts_open: number
  readonly containments_open: number
  readonly nodes: readonly {
    readonly id: string
    readonly kind: string
    readonly state: ReturnType<typeof stateOfNode>
  }[]
  /** Newest first. */
  readonly calls: readonly {
    readonly id: string
    readonly direction: string
    readonly from: string
    readonly to: string
    readonly status: string
    readonly trunk: string | null
    readonly seconds: number
  }[]
}

/** Shows live calls, calls per second, answer ratio and spend in the terminal. */
export function topCommand(): Command {
  return new Command('top')
    .option('--once', 'one look, then end')
    .option('--json', 'as JSON, a line for each look')
    .option('--every <seconds>', 'how often to look', '1')
    .action((options: { once?: true; json?: true; every: string }) =>
      withState(async (state, config) => {
        const every_ms = Number(options.every) * 1000
        if (!(every_ms >= 200 && every_ms <= 3_600_000))
          throw new StartRefused(`--every ${options.every}: expected 0.2 to 3600 seconds`)
        if (hasScreen() && !options.json && !options.once) {
          const look = async () => viewOf(await lookAt(state, SHOWN_CALLS), terminal().columns ?? 80)
          const opened = ({ id }: Live) => ladderText(state.db, config, id, terminal().columns ?? 80)
          return browse({ look, every_ms, opened })
        }
        const over = new AbortController()
        for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => over.abort())
        // The reader has gone, as with `| head`.
        process.stdout.once('error', () => over.abort())
        for (;;) {
          const top = await lookAt(state, PRINTED_CALLS)
          if (options.json) give(`${JSON.stringify(top)}\n`)
          else show(render(top, terminal().columns ?? 120))
          if (options.once) return
          await sleep(every_ms, undefined, { signal: over.signal }).catch(() => undefined)
          if (over.signal.aborted) return
        }
      }),
    )
}

async function lookAt({ db, clock }: State, most_calls: number): Promise<Top> {
  const now_ms = clock.now()
  const found = await db
    .selectFrom('project')
    .innerJoin('organization', 'organization.id', 'project.organization_id')
    .select(['project.id', 'project.name', 'project.currency', 'organization.time_zone'])
    .where('project.status', '=', 'active')
    .orderBy('project.name')
    .limit(1000)
    .execute()
  const projects = []
  const sums = { live: 0, second: 0, minute: 0, attempts: 0, answered: 0, busy_seconds: 0 }
  for (const { id, name, currency, time_zone } of found) {
    const { live, recent } = await callsNow(db, id, now_ms - 60_000)
    sums.live += live
    sums.minute += recent
    sums.second += (await callsNow(db, id, now_ms - 1000)).recent
    for (const { figures } of await figureSteps(db, { kind: 'project', id }, '1h', now_ms)) {
      sums.attempts += figures.attempts
      sums.answered += figures.answered
      sums.busy_seconds += figures.answered_seconds
    }
    const spend_today_minor = await spentOn(db, 'project', id, dayOf(now_ms, time_zone))
    projects.push({ id, name, live_calls: live, spend_today_minor, currency })
  }
  const waiting = await backlog(db, iso(now_ms))
  return {
    at: iso(now_ms),
    live_calls: sums.live,
    cps: sums.second,
    calls_last_minute: sums.minute,
    asr_1h_pct: sums.attempts === 0 ? null : ((100 * sums.answered) / sums.attempts).toFixed(1),
    acd_1h_seconds: sums.answered === 0 ? null : Math.round(sums.busy_seconds / sums.answered),
    projects,
    alerts_open: waiting.alerts_open,
    containments_open: waiting.containments_open,
    nodes: (await nodesSeen(db)).map(node => ({ id: node.id, kind: node.kind, state: stateOfNode(node, now_ms) })),
    calls: (await newestLiveCalls(db, most_calls)).map(row => ({
      id: row.sid,
      direction: row.direction,
      from: row.from_number,
      to: row.to_number,
      status: row.status,
      trunk: row.trunk_name,
      seconds: Math.max(0, Math.floor((now_ms - Date.parse(row.answered_at ?? row.queued_at)) / 1000)),
    })),
  }
}

type Live = Top['calls'][number]

/** The list of live calls below the figures. */
const viewOf = (top: Top, width: number): View<Live> => ({
  head: [...headOf(top, width), ''],
  rows: top.calls,
  columns: COLUMNS,
  key: ({ id }) => id,
})

/** Returns the lines of a look, none longer than `width`. */
export const render = (top: Top, width: number): string[] => [
  ...headOf(top, width),
  '',
  ...table(top.calls, COLUMNS, width),
]

function headOf(top: Top, width: number): string[] {
  const money = top.projects.map(one => `${one.name} ${one.currency} ${(one.spend_today_minor / 100).toFixed(2)}`)
  const nodes = top.nodes.map(node => `${node.kind} ${node.state}`)
  const head = [
    `strowger top  ${top.at}`,
    `live ${top.live_calls}   cps ${top.cps}   last minute ${top.calls_last_minute}   ` +
      `asr 1h ${top.asr_1h_pct === null ? '-' : `${top.asr_1h_pct} %`}   ` +
      `acd 1h ${top.acd_1h_seconds === null ? '-' : `${top.acd_1h_seconds} s`}`,
    `alerts ${top.alerts_open}   closed prefixes ${top.containments_open}   nodes ${nodes.join(', ') || 'none'}`,
    `spent today: ${money.join(', ') || '-'}`,
  ]
  return head.map(line => shortened(oneLine(line), width))
}

const clockOf = (seconds: number): string => `${Math.floor(seconds / 60)}:${String(seconds % 60).padStart(2, '0')}`

/** What a narrow terminal loses last stands first. */
const COLUMNS: readonly Column<Live>[] = [
  { title: 'CALL', text: call => shortId(call.id), least: 8 },
  { title: 'FROM', text: call => call.from, least: 10, rank: 1 },
  { title: 'TO', text: call => call.to, least: 10 },
  { title: 'STATUS', text: call => call.status, states: true },
  { title: 'TIME', text: call => clockOf(call.seconds), right: true },
  { title: 'TRUNK', text: call => call.trunk ?? '-', least: 8, rank: 1 },
  { title: 'DIRECTION', text: call => call.direction, rank: 3 },
]
